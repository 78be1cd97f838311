"""The producer: order, repeats and crashes of the broker."""

import os
import threading

import pytest

import exacta
from exacta.client.errors import DeadlineExceeded, KafkaError
from exacta.client.producer import TransactionalProducer
from exacta.client.routing import Client
from exacta.client.transactions import TopicPartition, end_transaction, init_producer_id
from exacta.protocol.errors import ErrorCode
from tests.spark.clusters import new_topic, read_committed

ROWS = 20_000


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_order_within_each_partition(bootstrap, compression):
    topic = new_topic(bootstrap, 3)
    with Client(bootstrap) as client:
        producer = init_producer_id(client, f"{topic}-a", transaction_timeout_ms=60_000)
        writer = TransactionalProducer(client, producer, batch_size_bytes=4_000, compression=compression)
        for row in range(ROWS):
            writer.append(TopicPartition(topic, row % 3), row, None, b"%d" % row, [("h", b"x")] if row % 7 else [])
        writer.flush()
        writer.close()
        end_transaction(client, producer, commit=True)
    found = [[], [], []]
    for partition, _, value in read_committed(bootstrap, topic):
        found[partition].append(int(value))
    assert found == [list(range(partition, ROWS, 3)) for partition in range(3)]


@pytest.mark.skipif("EXACTA_TEST_BOOTSTRAP" in os.environ, reason="kills its own broker")
def test_a_broker_that_crashes_again_and_again():
    with exacta.Broker() as broker:
        topic = new_topic(broker.bootstrap_servers, 2)
        with Client(broker.bootstrap_servers) as client:
            producer = init_producer_id(client, f"{topic}-a", transaction_timeout_ms=60_000)
            writer = TransactionalProducer(client, producer, batch_size_bytes=2_000, memory_bytes=20_000)
            half_written, written = threading.Event(), threading.Event()

            def crash():
                half_written.wait()
                while not written.wait(0.2):
                    broker.kill()
                    broker.start()

            nemesis = threading.Thread(target=crash)
            nemesis.start()
            for row in range(ROWS):
                if row == ROWS // 10:
                    half_written.set()
                writer.append(TopicPartition(topic, row % 2), row, None, b"%d" % row)
            writer.flush()
            written.set()
            nemesis.join()
            writer.close()
            end_transaction(client, producer, commit=True)
        found = [[], []]
        for partition, _, value in read_committed(broker.bootstrap_servers, topic):
            found[partition].append(int(value))
        assert found == [list(range(partition, ROWS, 2)) for partition in range(2)]


def test_a_record_that_the_broker_refuses_is_not_repeated(bootstrap):
    topic = new_topic(bootstrap, 1)
    with Client(bootstrap) as client:
        producer = init_producer_id(client, f"{topic}-a", transaction_timeout_ms=60_000)
        writer = TransactionalProducer(client, producer)
        writer.append(TopicPartition(topic, 0), 1, None, os.urandom(3_000_000))
        with pytest.raises(KafkaError) as refused:
            writer.flush()
        assert refused.value.code in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
        writer.close()
        end_transaction(client, producer, commit=False)


@pytest.mark.skipif("EXACTA_TEST_BOOTSTRAP" in os.environ, reason="kills its own broker")
def test_a_broker_that_stays_away_is_given_up():
    with exacta.Broker() as broker:
        topic = new_topic(broker.bootstrap_servers, 1)
        client = Client(broker.bootstrap_servers)
        producer = init_producer_id(client, f"{topic}-a", transaction_timeout_ms=60_000)
        writer = TransactionalProducer(client, producer, delivery_timeout_ms=500)
        writer.append(TopicPartition(topic, 0), 1, None, b"x")
        writer.flush()
        broker.kill()
        writer.append(TopicPartition(topic, 0), 1, None, b"y")
        with pytest.raises(DeadlineExceeded):
            writer.flush()
        writer.close()
        client.close()
