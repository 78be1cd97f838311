"""The producer: order, repeats and crashes of the broker."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from exacta.client.errors import DeadlineExceeded, KafkaError
from exacta.client.producer import IdempotentProducer
from exacta.client.routing import Client
from exacta.client.transactions import TopicPartition, end_transaction, init_producer_id
from exacta.protocol.errors import ErrorCode
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
            writer.append(TopicPartition(topic, row % 3), row, None, b"%d" % row, [("h", b"x")] if row % 7 else [])
        writer.flush()
        writer.close()
        end_transaction(client, producer, commit=True)
    found = [[], [], []]
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
                    writer.append(TopicPartition(topic, row % 2), row, None, b"%d" % row)
                writer.flush()
                for kill in kills:
                    kill.result()
            writer.close()
            assert len(kills) >= KILLS
            end_transaction(client, producer, commit=True)
        found = [[], []]
        for partition, _, value in read_committed(broker.bootstrap, topic):
            found[partition].append(int(value))
        assert found == [list(range(partition, ROWS, 2)) for partition in range(2)]


def test_a_record_that_the_broker_refuses_is_not_repeated(bootstrap):
    topic = new_topic(bootstrap, 1)
    with Client(bootstrap) as client:
        producer = init_producer_id(client, f"{topic}-a", transaction_timeout_ms=60_000)
        writer = IdempotentProducer(client, producer)
        writer.append(TopicPartition(topic, 0), 1, None, os.urandom(3_000_000))
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
        writer.append(TopicPartition(topic, 0), 1, None, b"x")
        writer.flush()
        broker.kill()
        writer.append(TopicPartition(topic, 0), 1, None, b"y")
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
            writer.append(TopicPartition(topic, 0), 1, None, b"%d" % row * 10)
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
        writer.append(TopicPartition(topic, 0), 1, None, b"x")
        writer.flush()
        end_transaction(client, producer, commit=False)  # an operator's tool: the epoch stays
        assert read_committed(bootstrap, topic) == []  # Apache Kafka takes writes until the markers are there
        writer.append(TopicPartition(topic, 0), 1, None, b"y")
        with pytest.raises(KafkaError) as refused:
            writer.flush()
        writer.close()
    assert refused.value.code in (ErrorCode.INVALID_TXN_STATE, ErrorCode.TRANSACTION_ABORTABLE)
    assert read_committed(bootstrap, topic) == []
