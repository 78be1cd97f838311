"""Reading a range: by topic id where that is possible, and what a topic that was made again does to it."""

from typing import cast

import pytest
from aiokafka.record.default_records import DefaultRecordBatch
from confluent_kafka import Producer

from exacta.client import fetcher
from exacta.client.connection import Connection
from exacta.client.deadline import Deadline
from exacta.client.fetcher import TopicReplaced, fetch_range, fetch_request, send_fetch
from exacta.client.routing import Client
from exacta.client.topics import READ_COMMITTED
from exacta.client.transactions import TopicPartition
from exacta.protocol.kafka.committed import visible_batches
from exacta.protocol.kafka.messages.k01_fetch import FetchRequest
from tests.spark.clusters import make_anew, new_topic


class Wire:
    """A connection that notes in which version a request goes out."""

    def __init__(self, newest):
        self.newest, self.sent = newest, []

    def version_of(self, request):
        return self.newest

    def send(self, request, deadline, *, version):
        self.sent.append((version, request.topics[0].topic_id))


@pytest.mark.parametrize(("newest", "topic_id", "version"), [(13, b"i" * 16, 13), (13, None, 12), (12, b"i" * 16, 12)])
def test_a_topic_is_named_by_its_id_where_both_sides_can(newest, topic_id, version):
    wire = Wire(newest)
    positions = {TopicPartition("t", 0): 5}
    request = fetch_request(positions, isolation_level=1, max_wait_ms=1, max_bytes=1, topic_id=topic_id)
    send_fetch(cast("Connection", wire), request, Deadline(100))
    assert wire.sent == [(version, topic_id or bytes(16))]


def rows(client, topic, end, topic_id, partition=0):
    found, of = [], TopicPartition(topic, partition)
    for fetched in fetch_range(client, of, 0, end, isolation_level=READ_COMMITTED, topic_id=topic_id):
        for _, batch in visible_batches(fetched.records, fetched.aborted, committed_only=True):
            found += [record.value for record in DefaultRecordBatch(bytes(batch))]
    return found


def fill(bootstrap, topic, values):
    producer = Producer({"bootstrap.servers": bootstrap})
    for value in values:
        producer.produce(topic, value=value)
    producer.flush()


def test_what_is_known_of_a_topic_may_be_older_than_its_id(bootstrap, monkeypatch):
    topic = new_topic(bootstrap, 1)
    fill(bootstrap, topic, [b"old"])
    with Client(bootstrap) as early, Client(bootstrap) as late:
        early.partitions([topic])
        old = early.topic_id(topic)
        assert rows(early, topic, 1, old) == [b"old"]
        make_anew(bootstrap, topic)
        fill(bootstrap, topic, [b"new"])
        late.partitions([topic])
        new = late.topic_id(topic)
        assert old != new
        assert early.topic_id(topic) == old
        assert rows(early, topic, 1, new) == [b"new"]
        monkeypatch.setattr(fetcher, "_OUTDATED_FOR_MS", 100.0)
        for client in (early, late):
            with pytest.raises(TopicReplaced, match=f"topic '{topic}' was deleted and created again"):
                rows(client, topic, 1, old)


def test_a_range_fetched_by_topic_id(monkeypatch):
    """The range is fetched from the mock cluster of librdkafka, which has several brokers that take ids."""
    producer = Producer({"test.mock.num.brokers": 3, "log_level": 0})
    servers = ",".join(f"{broker.host}:{broker.port}" for broker in producer.list_topics(timeout=10).brokers.values())
    for value in (b"a", b"b"):
        producer.produce("orders", value=value, partition=2)
        producer.flush()
    versions = []
    send = Connection.send

    def noted(self, request, deadline, *, version=None):
        if isinstance(request, FetchRequest):
            versions.append(version)
        send(self, request, deadline, version=version)

    monkeypatch.setattr(Connection, "send", noted)
    monkeypatch.setattr(fetcher, "_OUTDATED_FOR_MS", 100.0)
    with Client(servers) as client:
        client.partitions(["orders"])
        topic_id = client.topic_id("orders")
        assert topic_id is not None
        assert rows(client, "orders", 2, topic_id, partition=2) == [b"a", b"b"]
        assert set(versions) == {13}
        with pytest.raises(TopicReplaced):
            rows(client, "orders", 2, b"another topic id", partition=2)
        assert rows(client, "orders", 2, None, partition=2) == [b"a", b"b"]
        assert set(versions) == {12, 13}
