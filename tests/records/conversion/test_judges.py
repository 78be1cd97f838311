"""Clients that are not ours read what the conversion has made: two of Kafka's for Python, and Pulsar's own one."""

import warnings
from collections.abc import Callable
from typing import Any

import pulsar
import pytest
from aiokafka.record.memory_records import MemoryRecords as AiokafkaRecords
from hypothesis import given

from exacta.ports.record_format import LogEntry
from exacta.protocol.kafka.records import parse_batch_header
from exacta.protocol.pulsar.topic_names import TopicName
from exacta.records.conversion import to_kafka, to_pulsar
from exacta.records.pulsar_entries import entry_of
from tests.protocol.pulsar.fake import Fake
from tests.protocol.pulsar.test_real_client import received, run
from tests.records.conversion.batches import (
    LARGEST_ENTRY,
    MOST_BYTES,
    KafkaRecord,
    kafka_batch,
    pulsar_entries,
    read_kafka,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # kafka-python reads its message schemas in a way that Python will drop
    from kafka.record.memory_records import MemoryRecords as KafkaPythonRecords


def as_theirs(record: KafkaRecord) -> tuple[Any, ...]:
    headers = [(name.decode(), value) for name, value in record.headers]
    return record.offset, record.timestamp_ms, record.key, record.value, headers


def read_by(cls: Callable[[bytes], Any], batch: bytes) -> list[tuple[Any, ...]]:
    records, found = cls(batch), []
    while records.has_next():
        their_batch = records.next_batch()
        assert their_batch.validate_crc()
        found += [(each.offset, each.timestamp, each.key, each.value, list(each.headers)) for each in their_batch]
    return found


@given(pulsar_entries())
def test_clients_of_kafkas_read_the_batch_of_an_entry(entry: LogEntry) -> None:
    batch = to_kafka(entry.batch, allowed_bytes=MOST_BYTES)
    expected = list(map(as_theirs, read_kafka(batch).records))
    assert read_by(AiokafkaRecords, batch) == expected
    if parse_batch_header(batch).compression in ("none", "gzip"):  # it has the libraries for no other codec here
        assert read_by(KafkaPythonRecords, batch) == expected


RECORDS = [
    (1_000, b"k", b"v", ((b"a", b"1"), (b"b", b"2"))),
    (1_003, None, b"", ()),
    (1_001, b"", None, ((b"a", None),)),
    (1_002, b"\xff", b"w" * 500, ()),
]


@pytest.mark.parametrize("codec", range(5))
@pytest.mark.parametrize("singly", [False, True])
def test_pulsars_client_reads_the_entries_of_a_batch(codec: int, singly: bool) -> None:
    batch = kafka_batch(RECORDS, codec=codec, producer=(7, 0, 0))
    entries = to_pulsar(batch, singly=singly, allowed_bytes=MOST_BYTES, largest_entry=LARGEST_ENTRY)
    fake = Fake()
    fake.entries[TopicName(local_name="orders")] = [(each.base_offset, entry_of(each.batch)) for each in entries]

    def use(client: pulsar.Client) -> Any:
        return [
            (
                each.message_id().entry_id() + max(each.message_id().batch_index(), 0),
                each.data(),
                each.partition_key(),
                each.properties(),
                each.event_timestamp(),
                each.publish_timestamp(),
                each.producer_name() if hasattr(each, "producer_name") else "kafka-7",
            )
            for each in received(client, len(RECORDS))
        ]

    assert run(fake, use) == [
        (40, b"v", "k", {"a": "1", "b": "2"}, 1_000, 1_003, "kafka-7"),
        (41, b"", "", {}, 1_003, 1_003, "kafka-7"),
        (42, b"", "", {"kafka-headers": "AgJhAQ=="}, 1_001, 1_003, "kafka-7"),
        (43, b"w" * 500, "/w==", {}, 1_002, 1_003, "kafka-7"),
    ]
