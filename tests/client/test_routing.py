"""Brokers that are away, silent, or no longer in charge: what may not stop the others, nor the caller for long."""

import socket
import time

import pytest

from exacta.client.bulk import ask_all
from exacta.client.deadline import Deadline
from exacta.client.errors import DeadlineExceeded, KafkaError
from exacta.client.producer import IdempotentProducer
from exacta.client.routing import Client, Leader, Node
from exacta.client.security import Cluster
from exacta.client.topics import LATEST, list_offsets
from exacta.client.transactions import TopicPartition, end_transaction, init_producer_id
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k10_find_coordinator import FindCoordinatorRequest
from tests.client.appending import append
from tests.client.secured import Script, ScriptedBroker
from tests.spark.clusters import new_topic, read_committed

GONE = 4711


@pytest.fixture
def silent():
    """An address where connections are taken (by the kernel) and nothing is ever said."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def test_a_silent_bootstrap_server_costs_its_share_of_the_time_and_comes_last_from_then_on(silent):
    with ScriptedBroker(Script()) as broker, Client(f"{silent},{broker.address}", call_timeout_ms=1_000) as client:
        assert client.nodes() == [1]
        seed = client._connections._seed
        assert seed is not None
        seed.close()
        began_s = time.monotonic()
        assert client.nodes() == [1]
        assert time.monotonic() - began_s < 0.4


def test_a_broker_that_falls_silent_does_not_keep_the_others_from_answering():
    sleepy = Script()
    with (
        ScriptedBroker(sleepy) as seed,
        ScriptedBroker(Script()) as other,
        Client(seed.address, call_timeout_ms=2_000) as client,
    ):
        assert client.nodes() == [1]
        client._topology.brokers[2] = ("127.0.0.1", other.port)
        sleepy.silent = True
        assert client.nodes() == [1]
        assert client._topology.brokers[1] == ("127.0.0.1", other.port)


def test_many_requests_to_a_silent_broker_share_one_wait():
    sleepy = Script()
    with ScriptedBroker(sleepy) as broker, Client(Cluster(bootstrap=broker.address, request_timeout_ms=300)) as client:
        assert client.nodes() == [1]
        sleepy.silent = True
        requests = [(Node(1), FindCoordinatorRequest(key="x", key_type=1))] * 8
        began_s = time.monotonic()
        assert ask_all(client, requests, client.deadline()) == [None] * 8
        assert time.monotonic() - began_s < 0.9


def test_offsets_are_asked_of_the_new_leader_where_the_old_one_has_left_the_cluster(bootstrap):
    topic = new_topic(bootstrap, 1)
    with Client(bootstrap) as client:
        client.nodes()
        client._topology.leaders[topic] = {0: GONE}
        client._topology.brokers_doubtful = True
        assert list_offsets(client, [TopicPartition(topic, 0)], LATEST) == {TopicPartition(topic, 0): 0}


def test_offsets_come_in_the_order_in_which_they_are_asked_for(bootstrap):
    topic = new_topic(bootstrap, 8)
    asked = [TopicPartition(topic, partition) for partition in (5, 0, 7, 2, 6, 1, 4, 3)]
    with Client(bootstrap) as client:
        assert list(list_offsets(client, asked, LATEST)) == asked


def test_a_topic_that_may_not_be_described_is_not_waited_for(monkeypatch):
    client = Client("127.0.0.1:1")
    monkeypatch.setattr(client, "refresh", lambda topics, _: {topics[0]: ErrorCode.TOPIC_AUTHORIZATION_FAILED})
    with pytest.raises(KafkaError) as refused:
        client.resolve(Leader("t", 0), Deadline(1_000))
    assert str(refused.value) == (
        "looking up topic 't': TOPIC_AUTHORIZATION_FAILED "
        "(a client that does not log in needs the permission Describe on topic 't')"
    )


def test_a_leader_that_cannot_be_reached_holds_up_its_own_partitions_only(bootstrap, monkeypatch):
    topic = new_topic(bootstrap, 2)
    with Client(bootstrap) as client:
        producer = init_producer_id(client, f"{topic}-a", transaction_timeout_ms=60_000)
        writer = IdempotentProducer(client, producer, delivery_timeout_ms=300)
        client._topology.brokers[GONE] = ("127.0.0.1", 1)
        resolve = client.resolve
        monkeypatch.setattr(
            client, "resolve", lambda route, at: GONE if route == Leader(topic, 0) else resolve(route, at)
        )
        for index in range(2):
            append(writer, TopicPartition(topic, index), 1, b"%d" % index)
        with pytest.raises(DeadlineExceeded, match="broker 4711 is not there now"):
            writer.flush()
        writer.close()
        end_transaction(client, producer, commit=True)
    assert read_committed(bootstrap, topic) == [(1, None, b"1")]
