"""Scenarios without transactions: what is produced is read back whole, in order, and unchanged."""

import pytest

from tests.conformance.administration import DONE, Librdkafka
from tests.conformance.clients import ClientError, Isolation, TopicPartition
from tests.conformance.scenario import Scenario, offsets_of, send_all, values, wait_until


def test_records_come_back_in_order_within_each_partition(scenario: Scenario) -> None:
    topic = scenario.topic(partitions=3)
    producer = scenario.producer()
    sent = {TopicPartition(topic, number): values(f"p{number}", 200) for number in range(3)}
    futures = {
        partition: [producer.send(topic, value, partition=partition.partition) for value in wanted]
        for partition, wanted in sent.items()
    }
    producer.flush()
    for partition, wanted in sent.items():
        assert offsets_of(futures[partition]) == list(range(200))
        assert scenario.read(partition, Isolation.UNCOMMITTED) == wanted


def test_all_parts_of_a_record_survive(scenario: Scenario) -> None:
    partition = scenario.partition()
    producer = scenario.producer()
    headers = [("trace", b"1"), ("trace", b""), ("ü", b"\xff")]
    producer.send(partition.topic, b"value", key=b"key", partition=0, headers=headers, timestamp_ms=1_600_000_000_123)
    producer.send(partition.topic, None, key=b"tombstone", partition=0)
    producer.flush()
    first, second = scenario.read_records([partition])
    assert (first.key, first.value, first.headers, first.timestamp_ms) == (
        b"key",
        b"value",
        tuple(headers),
        1_600_000_000_123,
    )
    assert (second.key, second.value, second.headers) == (b"tombstone", None, ())


def test_compressed_batches_come_back(scenario: Scenario) -> None:
    partition = scenario.partition()
    wanted: list[bytes] = []
    for compression in scenario.client.compressions:
        some = [b"0123456789" * 50 + value for value in values(compression, 100)]
        send_all(scenario.producer(compression=compression), partition, some)
        wanted += some
    assert scenario.read(partition) == wanted


def test_a_topic_is_created_when_it_is_first_written_to(scenario: Scenario) -> None:
    partition = TopicPartition(scenario.new_name("topic"))
    assert send_all(scenario.producer(), partition, [b"first"]) == [0]
    assert scenario.read(partition) == [b"first"]


def test_a_reader_that_waits_gets_a_record_as_it_comes(scenario: Scenario) -> None:
    partition = scenario.partition()
    consumer = scenario.consumer()
    consumer.assign({partition: 0})
    producer = scenario.producer()
    for number, value in enumerate(values("one-by-one", 20)):
        assert send_all(producer, partition, [value]) == [number]
        arrived: list[bytes | None] = []

        def one_came(arrived: list[bytes | None] = arrived) -> bool:
            arrived.extend(record.value for record in consumer.poll(1.0))
            return bool(arrived)

        wait_until(one_came, f"record {number}")
        assert arrived == [value]


def test_reading_may_begin_inside_a_batch(scenario: Scenario) -> None:
    partition = scenario.partition()
    producer = scenario.producer()
    send_all(producer, partition, values("batch", 10))
    consumer = scenario.consumer()
    consumer.assign({partition: 7})
    arrived: list[int] = []

    def all_came() -> bool:
        arrived.extend(record.offset for record in consumer.poll(1.0))
        return 9 in arrived

    wait_until(all_came, "the last record")
    assert arrived == [7, 8, 9]


def test_a_compacted_topic_takes_no_record_without_a_key(scenario: Scenario) -> None:
    partition = scenario.partition()
    assert Librdkafka(scenario.bootstrap).set_configs(partition.topic, {"cleanup.policy": "compact"}) == DONE
    producer = scenario.producer()
    taken: list[bytes | None] = []

    def refused() -> bool:
        sent = producer.send(partition.topic, b"no key", partition=0)
        producer.flush()
        if sent.exception() is None:
            taken.append(b"no key")
        return sent.exception() is not None

    # Apache Kafka's log may have its old settings for a moment after the new ones were acknowledged.
    wait_until(refused, "the new settings")
    with pytest.raises(ClientError):
        send_all(producer, partition, [b"no key"])
    producer = scenario.producer()  # that of kafka-python fails for ever once it was refused a record
    keyed = producer.send(partition.topic, b"a key", key=b"k", partition=0)
    producer.flush()
    assert keyed.result(0) == len(taken)
    assert scenario.read(partition) == [*taken, b"a key"]
