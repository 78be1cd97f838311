"""One rule for all topics that a sink needs: option `topic`, column `topic`, `transaction.marker.topic`."""

import os
from contextlib import closing

import pyarrow as pa
import pytest

import exacta
from exacta.client.routing import Client
from exacta.client.transactions import new_producer
from exacta.spark.options import SinkOptions
from exacta.spark.sink.errors import SinkError
from exacta.spark.sink.row_writer import RowWriter
from exacta.spark.sink.sink import marker_of


def wants_option(client, topic):
    assert marker_of(client, SinkOptions(bootstrap=client.bootstrap, topic=topic)) == (topic, 0)


def wants_marker_topic(client, topic):
    assert marker_of(client, SinkOptions(bootstrap=client.bootstrap, marker_topic=topic)) == (topic, 0)


def wants_column(client, topic):
    options = SinkOptions(bootstrap=client.bootstrap, marker_topic="unused")
    writer = RowWriter(client, options, new_producer(client), rotation=0)
    with closing(writer):
        writer.write(pa.RecordBatch.from_pydict({"topic": [topic], "value": [b"x"]}))
        writer.flush()


@pytest.mark.parametrize("want", [wants_option, wants_marker_topic, wants_column])
def test_it_is_created_where_the_cluster_creates_topics_on_demand(bootstrap, want):
    topic = f"wanted-{os.urandom(4).hex()}"
    with Client(bootstrap) as client:
        want(client, topic)
        assert client.partitions([topic])[topic] > 0


@pytest.mark.parametrize("want", [wants_option, wants_marker_topic, wants_column])
def test_it_is_refused_elsewhere_by_a_sentence_that_names_the_command(want):
    with exacta.Broker(auto_create_topics_enable=False) as broker:
        at = broker.bootstrap_servers
        with Client(at, call_timeout_ms=400) as client, pytest.raises(SinkError) as refused:
            want(client, "wanted")
        assert str(refused.value) == (
            f"topic 'wanted' does not exist on {at}, and the cluster creates none on demand: create it first (kafka-"
            f"topics.sh --bootstrap-server {at} --create --topic wanted --partitions NUMBER), or look at its name"
        )
