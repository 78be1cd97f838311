"""Reading partitions on and on: what comes, in which order, and what happens when the broker goes."""

from typing import Any

import pytest
from confluent_kafka import Producer

import exacta
from exacta.client.errors import DeadlineExceeded
from exacta.client.fetcher import OffsetOutOfRange
from exacta.client.routing import Client
from exacta.client.tail import Tail, UnreadableBatch
from exacta.client.topics import READ_COMMITTED, READ_UNCOMMITTED
from exacta.client.transactions import TopicPartition
from exacta.protocol.kafka.records import HEADER_SIZE


def fill(bootstrap, topic, values, partition=0):
    producer = Producer({"bootstrap.servers": bootstrap})
    for value in values:
        producer.produce(topic, value, partition=partition)
    assert producer.flush(30) == 0


def until(tail, count):
    found: list[Any] = []
    while len(found) < count:
        found += tail.turn()
    return [(record.partition.partition, record.offset, record.value) for record in found]


def test_each_partition_comes_in_its_order_from_its_position(client, topic):
    fill(client.bootstrap, topic, [b"a", b"b", b"c"])
    fill(client.bootstrap, topic, [b"x", b"y"], partition=1)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    tail = Tail(client, {first: 1, second: 0}, isolation_level=READ_COMMITTED)
    assert sorted(until(tail, 4)) == [(0, 1, b"b"), (0, 2, b"c"), (1, 0, b"x"), (1, 1, b"y")]
    assert tail.positions == {first: 3, second: 2}
    del tail.positions[second]
    fill(client.bootstrap, topic, [b"z"], partition=1)
    fill(client.bootstrap, topic, [b"d"])
    assert until(tail, 1) == [(0, 3, b"d")]
    tail.close()


def test_what_was_aborted_is_passed_by(client, topic):
    producer = Producer({"bootstrap.servers": client.bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    for end in (producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        producer.produce(topic, b"%d" % len(end.__name__), partition=0)
        assert producer.flush(30) == 0
        end(30)
    del producer
    at = TopicPartition(topic, 0)
    committed = Tail(client, {at: 0}, isolation_level=READ_COMMITTED)
    assert [value for *_, value in until(committed, 1)] == [b"18"]
    assert committed.positions == {at: 4}
    every = Tail(client, {at: 0}, isolation_level=READ_UNCOMMITTED)
    assert [value for *_, value in until(every, 2)] == [b"17", b"18"]
    for tail in (committed, every):
        tail.close()


def test_reading_goes_on_after_a_restart():
    with exacta.Broker(num_partitions=1) as broker, Client(broker.bootstrap_servers) as client:
        fill(broker.bootstrap_servers, "t", [b"before"])
        tail = Tail(client, {TopicPartition("t", 0): 0}, isolation_level=READ_COMMITTED)
        assert until(tail, 1) == [(0, 0, b"before")]
        broker.restart()
        fill(broker.bootstrap_servers, "t", [b"after"])
        assert until(tail, 1) == [(0, 1, b"after")]
        tail.close()


def test_what_time_does_not_mend_is_raised(client, topic):
    at = TopicPartition(topic, 0)
    beyond = Tail(client, {at: 7}, isolation_level=READ_COMMITTED)
    with pytest.raises(OffsetOutOfRange):
        until(beyond, 1)
    beyond.close()
    with exacta.Broker() as broker, Client(broker.bootstrap_servers, call_timeout_ms=300) as other:
        fill(broker.bootstrap_servers, "t", [b"x"])
        tail = Tail(other, {TopicPartition("t", 0): 0}, isolation_level=READ_COMMITTED)
        until(tail, 1)
        broker.stop()
        with pytest.raises(DeadlineExceeded):
            until(tail, 1)
        tail.close()


def test_a_batch_that_cannot_be_read_is_named(client, topic, monkeypatch):
    fill(client.bootstrap, topic, [b"x" * 50])
    monkeypatch.setattr("exacta.client.tail.opened", lambda batch, header, most: bytes(batch[HEADER_SIZE:-1]))
    tail = Tail(client, {TopicPartition(topic, 0): 0}, isolation_level=READ_COMMITTED)
    with pytest.raises(UnreadableBatch, match=f"^{topic}-0, the batch at offset 0: the batch's records cannot be read"):
        until(tail, 1)
    tail.close()
