"""The producer: order, repeats and crashes of the broker."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from exacta.client.connection import Connection
from exacta.client.errors import DeadlineExceeded, KafkaError
from exacta.client.producer import IdempotentProducer
from exacta.client.routing import Client
from exacta.client.transactions import TopicPartition, end_transaction, init_producer_id, new_producer
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k00_produce import ProduceRequest
from tests.client.appending import append
from tests.conformance.brokers import broker_process
from tests.spark.clusters import new_topic, read_committed

ROWS = 20_000


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_order_within_each_partition(bootstrap, compression):
    topic = new_topic(bootstrap, 3)
    with Client(bootstrap) as client:
        producer = init_producer_id(client, f"{topic}-a", transaction_timeout_ms=60_000)
        writer = IdempotentProducer(client, producer, batch_size_bytes=4_000, compression=compression)
        for row in range(ROWS):
            append(writer, TopicPartition(topic, row % 3), row, b"%d" % row, [("h", b"x")] if row % 7 else [])
        writer.flush()
        writer.close()
        end_transaction(client, producer, commit=True)
    found: list[list[int]] = [[], [], []]
    for partition, _, value in read_committed(bootstrap, topic):
        found[partition].append(int(value))
    assert found == [list(range(partition, ROWS, 3)) for partition in range(3)]


KILLS = 3


def test_a_broker_that_is_killed_again_and_again(tmp_path):
    with broker_process(tmp_path) as broker:
        topic = new_topic(broker.bootstrap, 2)
        with Client(broker.bootstrap) as client:
            producer = init_producer_id(client, f"{topic}-a", transaction_timeout_ms=60_000)
            writer = IdempotentProducer(client, producer, batch_size_bytes=2_000, memory_bytes=20_000)
            with ThreadPoolExecutor(1) as nemesis:
                kills = []
                for row in range(ROWS):
                    if row % (ROWS // (KILLS + 1)) == 0 and row > 0:  # while what was written last is on its way
                        kills.append(nemesis.submit(broker.restart_killed))
                    append(writer, TopicPartition(topic, row % 2), row, b"%d" % row)
                writer.flush()
                for kill in kills:
                    kill.result()
            writer.close()
            assert len(kills) >= KILLS
            end_transaction(client, producer, commit=True)
        found: list[list[int]] = [[], []]
        for partition, _, value in read_committed(broker.bootstrap, topic):
            found[partition].append(int(value))
        assert found == [list(range(partition, ROWS, 2)) for partition in range(2)]


def test_a_record_that_the_broker_refuses_is_not_repeated(bootstrap):
    topic = new_topic(bootstrap, 1)
    with Client(bootstrap) as client:
        producer = init_producer_id(client, f"{topic}-a", transaction_timeout_ms=60_000)
        writer = IdempotentProducer(client, producer)
        append(writer, TopicPartition(topic, 0), 1, os.urandom(3_000_000))
        with pytest.raises(KafkaError) as refused:
            writer.flush()
        assert refused.value.code in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
        writer.close()
        end_transaction(client, producer, commit=False)


def test_a_broker_that_stays_away_is_given_up(tmp_path):
    with broker_process(tmp_path) as broker:
        topic = new_topic(broker.bootstrap, 1)
        client = Client(broker.bootstrap)
        producer = init_producer_id(client, f"{topic}-a", transaction_timeout_ms=60_000)
        writer = IdempotentProducer(client, producer, delivery_timeout_ms=500)
        append(writer, TopicPartition(topic, 0), 1, b"x")
        writer.flush()
        broker.kill()
        append(writer, TopicPartition(topic, 0), 1, b"y")
        with pytest.raises(DeadlineExceeded):
            writer.flush()
        writer.close()
        client.close()


def test_time_that_the_caller_spends_elsewhere_is_not_counted(bootstrap, monkeypatch):
    topic = new_topic(bootstrap, 1)
    idle_s = [0.0]
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + idle_s[0], sleep=time.sleep)
    monkeypatch.setattr("exacta.client.deadline.time", clock)
    with Client(bootstrap) as client:
        producer = init_producer_id(client, f"{topic}-a", transaction_timeout_ms=60_000)
        writer = IdempotentProducer(client, producer, batch_size_bytes=200, delivery_timeout_ms=10_000)
        for row in range(60):
            idle_s[0] += 3_600
            append(writer, TopicPartition(topic, 0), 1, b"%d" % row * 10)
            if row % 20 == 0:
                idle_s[0] += 3_600
                writer.flush()
        writer.flush()
        writer.close()
        end_transaction(client, producer, commit=True)
    assert len(read_committed(bootstrap, topic)) == 60


def test_a_transaction_that_was_ended_from_outside_is_not_begun_again(bootstrap):
    """The rows of the first would be lost, and nobody would know."""
    topic = new_topic(bootstrap, 1)
    with Client(bootstrap) as client:
        producer = init_producer_id(client, f"{topic}-a", transaction_timeout_ms=60_000)
        writer = IdempotentProducer(client, producer)
        append(writer, TopicPartition(topic, 0), 1, b"x")
        writer.flush()
        end_transaction(client, producer, commit=False)  # an operator's tool: the epoch stays
        assert read_committed(bootstrap, topic) == []  # Apache Kafka takes writes until the markers are there
        append(writer, TopicPartition(topic, 0), 1, b"y")
        with pytest.raises(KafkaError) as refused:
            writer.flush()
        writer.close()
    assert refused.value.code in (ErrorCode.INVALID_TXN_STATE, ErrorCode.TRANSACTION_ABORTABLE)
    assert read_committed(bootstrap, topic) == []


@pytest.fixture
def sent(monkeypatch):
    """The record batches of each Produce request that is sent, by partition."""
    requests = []
    send = Connection.send

    def noting(connection, request, *given, **named):
        if isinstance(request, ProduceRequest):
            data = [entry for topic in request.topic_data for entry in topic.partition_data]
            requests.append({entry.index: entry.records for entry in data})
        return send(connection, request, *given, **named)

    monkeypatch.setattr(Connection, "send", noting)
    return requests


def test_no_request_grows_with_the_partitions_and_these_take_turns(bootstrap, monkeypatch, sent):
    """A broker hangs up on a request that is too large, and on each repetition."""
    monkeypatch.setattr("exacta.client.producer.MOST_REQUEST_BYTES", 10_000)
    topic = new_topic(bootstrap, 12)
    partitions = [TopicPartition(topic, index) for index in range(12)]
    with Client(bootstrap) as client:
        writer = IdempotentProducer(client, new_producer(client), batch_size_bytes=2_000)
        for partition in partitions:
            append(writer, partition, 1, b"x")
        writer.flush()  # the first batch of a partition travels alone
        sent.clear()
        with monkeypatch.context() as patched:
            patched.setattr(writer, "_pump", lambda **_: None)
            for partition in partitions:
                for _ in range(3):  # each a batch
                    append(writer, partition, 1, b"x" * 1_500)
        writer.flush()
        writer.close()
    assert all(sum(map(len, request.values())) <= 10_000 for request in sent)
    order = [index for request in sent for index in request]
    assert [sorted(order[at : at + 12]) for at in range(0, len(order), 12)] == [list(range(12))] * 3


def test_a_batch_that_is_larger_than_a_request_should_be_travels_alone(bootstrap, monkeypatch, sent):
    monkeypatch.setattr("exacta.client.producer.MOST_REQUEST_BYTES", 100)
    topic = new_topic(bootstrap, 2)
    with Client(bootstrap) as client:
        writer = IdempotentProducer(client, new_producer(client))
        for index in range(2):
            append(writer, TopicPartition(topic, index), 1, b"x" * 1_000)
        writer.flush()
        writer.close()
    assert [list(request) for request in sent] == [[0], [1]]


def test_batches_that_are_not_full_count_as_memory(bootstrap, sent):
    topic = new_topic(bootstrap, 50)
    memory_bytes, row = 20_000, b"x" * 100
    with Client(bootstrap) as client:
        writer = IdempotentProducer(client, new_producer(client), memory_bytes=memory_bytes)
        for count in range(1, 1_000):
            append(writer, TopicPartition(topic, count % 50), 1, row)
            gone = sum(len(records) for request in sent for records in request.values())
            assert count * len(row) - gone <= memory_bytes
        full = [len(records) for request in sent for records in request.values()]
        assert len(full) < 500, "the largest make way for the others, not each row for the next"
        writer.flush()
        writer.close()
