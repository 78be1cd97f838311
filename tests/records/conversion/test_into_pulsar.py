"""Kafka's records as Pulsar's messages: field by field, in one entry or in one each."""

import base64
import random

import pytest

from exacta.ports.record_format import LogEntry
from exacta.protocol.kafka.batch_building import control_batch, emptied
from exacta.protocol.kafka.record_writing import Header, encoded_headers
from exacta.protocol.kafka.records import parse_batch_header
from exacta.protocol.pulsar.messages_pb2 import CompressionType, MessageMetadata
from exacta.records.conversion import names, to_pulsar
from exacta.records.pulsar_entries import delivery_facts, entry_of
from tests.records.conversion.batches import (
    LARGEST_ENTRY,
    MOST_BYTES,
    PulsarEntry,
    PulsarMessage,
    kafka_batch,
    pulsar_entry,
    read_pulsar,
    with_header,
)


def converted(batch: LogEntry, *, singly: bool = False, largest_entry: int = LARGEST_ENTRY) -> list[LogEntry]:
    return to_pulsar(batch, singly=singly, allowed_bytes=MOST_BYTES, largest_entry=largest_entry)


def together(batch: LogEntry) -> PulsarEntry:
    (entry,) = converted(batch)
    return read_pulsar(entry)


def one(
    key: bytes | None = b"k", value: bytes | None = b"v", headers: tuple[Header, ...] = (), *, singly: bool = False
) -> PulsarMessage:
    """Return the message of one record; it is the same in either form."""
    found = [
        read_pulsar(converted(kafka_batch([(1_000, key, value, headers)]), singly=each)[0]) for each in (False, True)
    ]
    assert found[0].messages == found[1].messages
    assert found[0].shared == found[1].shared
    return found[singly].messages[0]


def properties(*headers: Header) -> tuple[tuple[bytes, bytes], ...]:
    return one(headers=headers).properties


THREE = [(1_000, b"k", b"v", ()), (1_002, None, None, ()), (1_001, b"", b"", ())]


@pytest.mark.parametrize("singly", [False, True])
def test_messages_are_at_their_records_offsets(singly: bool) -> None:
    found = [read_pulsar(entry) for entry in converted(kafka_batch(THREE), singly=singly)]
    assert [(each.base_offset, each.last_offset) for each in found] == (
        [(40, 40), (41, 41), (42, 42)] if singly else [(40, 42)]
    )
    assert {(each.publish_time, each.producer) for each in found} == {(1_002, (-1, -1))}
    assert [message for each in found for message in each.messages] == [
        PulsarMessage(40, b"k", False, False, b"v", False, (), 1_000, None, 40),
        PulsarMessage(41, None, False, False, b"", True, (), 1_002, None, 41),
        PulsarMessage(42, b"", False, False, b"", False, (), 1_001, None, 42),
    ]


def test_together_it_is_a_batch_even_of_one() -> None:
    assert together(kafka_batch(THREE[:1])).is_batch


def test_alone_it_is_a_batch_only_where_there_is_no_payload() -> None:
    """The Go client takes an entry without a payload for a damaged one."""
    found = [read_pulsar(entry) for entry in converted(kafka_batch(THREE), singly=True)]
    assert [each.is_batch for each in found] == [False, True, True]


@pytest.mark.parametrize("singly", [False, True])
def test_it_stays_in_its_transaction_and_a_producer_alone_makes_none(singly: bool) -> None:
    for transactional in (True, False):
        batch = kafka_batch(THREE, producer=(7, 3, 0), transactional=transactional)
        for entry in converted(batch, singly=singly):
            assert parse_batch_header(entry.batch).transactional == transactional
            assert read_pulsar(entry).producer == ((7, 3) if transactional else (-1, -1))
            assert read_pulsar(entry).shared == {"producer_name": "kafka-7"}


def test_where_the_time_is_the_brokers_there_is_no_other() -> None:
    found = together(kafka_batch(THREE, log_append_ms=5_000))
    assert found.publish_time == 5_000
    assert {message.event_time for message in found.messages} == {0}


@pytest.mark.parametrize(("time_ms", "event_time"), [(-9, 0), (0, 0), (7, 7)])
def test_times_before_1970_are_none(time_ms: int, event_time: int) -> None:
    assert together(kafka_batch([(time_ms, b"k", b"v", ())], first_ms=-9)).messages[0].event_time == event_time


def test_the_sum_of_a_base_and_a_delta_wraps_in_64_bits_as_for_readers() -> None:
    last_ms = (1 << 63) - 1
    batch = kafka_batch([(1_000, b"k", b"v", ()), (last_ms, b"k", b"v", ())])
    assert [each.event_time for each in together(batch).messages] == [1_000, last_ms]
    later = with_header(batch.batch, 27, (1_001).to_bytes(8))
    assert [each.event_time for each in together(batch._replace(batch=later)).messages] == [1_001, 0]


@pytest.mark.parametrize(
    ("key", "headers", "is_bytes"),
    [
        (b"k", (), False),
        ("ä".encode(), (), False),
        (b"\xff", (), True),
        (b"k", ((names.KEY_IS_BYTES, b"true"),), True),
        (b"", ((names.KEY_IS_BYTES, b"true"),), True),
        (None, ((names.KEY_IS_BYTES, b"true"),), False),
    ],
)
def test_keys(key: bytes | None, headers: tuple[Header, ...], is_bytes: bool) -> None:
    message = one(key, headers=headers)
    assert (message.key, message.key_is_bytes, message.properties) == (key, is_bytes, ())


def test_headers_are_properties_in_order() -> None:
    assert properties((b"b", b"1"), (b"a", b""), (b"", b"2")) == ((b"b", b"1"), (b"a", b""), (b"", b"2"))


@pytest.mark.parametrize(
    ("headers", "shown"),
    [
        ([(b"a", None), (b"b", b"1")], [(b"b", b"1")]),
        ([(b"a", b"\xff"), (b"b", b"1")], [(b"b", b"1")]),
        ([(b"\xff", b"a"), (b"b", b"1")], [(b"b", b"1")]),
        ([(b"a", b"1"), (b"a", b"2")], [(b"a", b"1"), (b"a", b"2")]),
        ([(names.KAFKA_HEADERS, b"1"), (b"a", b"2")], [(b"a", b"2")]),
    ],
)
def test_where_one_is_no_property_all_are_in_one(headers: list[Header], shown: list[tuple[bytes, bytes]]) -> None:
    *found, last = properties(*headers)
    assert found == shown
    assert last == (names.KAFKA_HEADERS, base64.b64encode(encoded_headers(headers)))


OF_AN_ENTRY = (
    (names.PRODUCER_NAME, b"tills"),
    (names.SCHEMA_VERSION, b"258"),
    (names.SCHEMA_ID, b"\xff"),
    (names.DELIVER_AT, b"-5"),
    (names.REPLICATED_FROM, b"east"),
    (names.REPLICATE_TO, b"west"),
    (names.REPLICATE_TO, b"north"),
)
AS_FIELDS = {
    "producer_name": "tills",
    "schema_version": b"\0\0\0\0\0\0\x01\x02",
    "schema_id": b"\xff",
    "deliver_at_time": -5,
    "replicated_from": "east",
    "replicate_to": ["west", "north"],
}


def test_what_was_a_field_is_one_again() -> None:
    headers = (
        (b"a", b"b"),
        (names.EVENT_TIME, b"7"),
        (names.ORDERING_KEY, b"\xff"),
        (names.SEQUENCE_ID, b"9"),
        *OF_AN_ENTRY,
    )
    message = one(headers=headers)
    assert message == PulsarMessage(40, b"k", False, False, b"v", False, ((b"a", b"b"),), 7, b"\xff", 9)
    assert together(kafka_batch([(1_000, b"k", b"v", headers)])).shared == AS_FIELDS


def test_a_record_that_was_a_message_has_an_event_time_only_if_it_says_one() -> None:
    assert one(headers=((names.PRODUCER_NAME, b"tills"),)).event_time == 0
    assert one().event_time == 1_000


def test_where_messages_do_not_agree_the_entrys_fields_are_properties() -> None:
    records = [(1_000, b"k", b"v", OF_AN_ENTRY), (1_000, b"k", b"v", ((names.DELIVER_AT, b"5"),))]
    batch = kafka_batch(records)
    found = together(batch)
    assert found.shared == {"producer_name": "kafka"}
    assert [dict(message.properties).get(names.DELIVER_AT) for message in found.messages] == [b"-5", b"5"]
    assert [read_pulsar(each).shared for each in converted(batch, singly=True)] == [
        AS_FIELDS,
        {"producer_name": "kafka", "deliver_at_time": 5},
    ]


@pytest.mark.parametrize(
    "header",
    [
        (names.EVENT_TIME, b"0"),
        (names.EVENT_TIME, b"07"),
        (names.EVENT_TIME, b"-7"),
        (names.EVENT_TIME, b"+7"),
        (names.EVENT_TIME, b"soon"),
        (names.EVENT_TIME, b"18446744073709551616"),
        (names.SEQUENCE_ID, b"9" * 5_000),
        (names.KEY_IS_BYTES, b"false"),
        (names.DELIVER_AT, b"9223372036854775808"),
        (names.DELIVER_AT, b"--5"),
        (names.SCHEMA_VERSION, b"0X01"),
        (names.SCHEMA_VERSION, b"0x0G"),
        (names.SCHEMA_VERSION, b"0x0000000000000001"),
        (names.SCHEMA_VERSION, b"01 02"),
    ],
)
def test_what_is_written_otherwise_is_the_users(header: Header) -> None:
    message = one(headers=(header,))
    assert message.properties == (header,)
    assert (message.event_time, message.sequence_id, message.key_is_bytes) == (1_000, 40, False)


@pytest.mark.parametrize("name", sorted(names.OF_FIELDS - {names.REPLICATE_TO}))
def test_what_comes_twice_is_the_users(name: bytes) -> None:
    assert properties((name, b"1"), (name, b"2"))[:2] == ((name, b"1"), (name, b"2"))


@pytest.mark.parametrize("name", sorted(names.OF_FIELDS))
def test_what_is_null_is_the_users(name: bytes) -> None:
    assert properties((name, None)) == ((names.KAFKA_HEADERS, base64.b64encode(encoded_headers([(name, None)]))),)


@pytest.mark.parametrize(
    ("kept", "gaps"),
    [
        ([0, 1, 2, 3, 4], ()),
        ([0, 4], ((41, 43),)),
        ([2], ((40, 41), (43, 44))),
        ([0, 2, 4], ((41, 41), (43, 43))),
        ([0, 1], ((42, 44),)),
    ],
)
def test_records_that_compaction_has_removed_are_gaps(kept: list[int], gaps: tuple[tuple[int, int], ...]) -> None:
    batch = kafka_batch([(1_000, b"k", b"v", ())] * 5, kept=kept)
    (entry,) = converted(batch)
    assert (entry.base_offset, entry.offset_count, entry.gaps) == (40, 5, gaps)
    assert [message.offset - 40 for message in read_pulsar(entry).messages] == kept
    single = converted(batch, singly=True)
    assert [(each.base_offset - 40, each.offset_count, each.gaps) for each in single] == [(at, 1, ()) for at in kept]


@pytest.mark.parametrize("codec", range(5))
def test_the_codec_stays(codec: int) -> None:
    found = together(kafka_batch([(1_000, b"k", b"apples " * 9, ())] * 9, codec=codec))
    pulsars = [
        CompressionType.NONE,
        CompressionType.ZLIB,
        CompressionType.SNAPPY,
        CompressionType.LZ4,
        CompressionType.ZSTD,
    ]
    assert found.codec == pulsars[codec]
    assert [message.payload for message in found.messages] == [b"apples " * 9] * 9


def test_what_is_too_large_is_compressed_more_and_then_opaque() -> None:
    chance = random.Random(1)
    zeros, noise = bytes(3_000), chance.randbytes(3_000)
    (entry,) = converted(kafka_batch([(1_000, b"k", zeros, ())] * 2), largest_entry=4_000)
    assert (read_pulsar(entry).codec, entry.offset_count) == (CompressionType.ZSTD, 2)
    two = kafka_batch([(1_000, b"k", noise, ()), THREE[0]])
    (opaque,) = converted(two, largest_entry=2_000)
    assert (opaque.base_offset, opaque.offset_count) == (40, 1)
    first, second = converted(two, singly=True, largest_entry=2_000)
    for each in (opaque, first):
        (message,) = read_pulsar(each).messages
        assert dict(message.properties)[names.KAFKA_OPAQUE] == b"size"
        assert names.KAFKA_SIZE in dict(message.properties)
    assert read_pulsar(second).messages[0].payload == b"v"
    for entry in (opaque, first, second):
        assert len(entry_of(entry.batch).body) <= 4_000


def test_properties_that_are_too_large_for_an_entrys_metadata_are_its_messages() -> None:
    header = (b"a", b"b" * (1 << 20))
    (entry,) = to_pulsar(
        kafka_batch([(1_000, b"k", b"v", [header])]), singly=True, allowed_bytes=1 << 22, largest_entry=1 << 22
    )
    found = read_pulsar(entry)
    assert (found.is_batch, found.messages[0].properties) == (True, (header,))


def test_a_subscription_that_shares_by_keys_finds_kafkas_and_pulsars_alike() -> None:
    for value in (b"v", b"", None):
        (entry,) = converted(kafka_batch([(1_000, b"key", value, ())]), singly=True)
        metadata = MessageMetadata(producer_name="tills", sequence_id=4, publish_time=1_000, partition_key=b"key")
        assert delivery_facts(entry.batch) == delivery_facts(pulsar_entry(metadata, b"v").batch)


def test_batches_without_data_are_no_entries() -> None:
    marker = control_batch(40, 7, 0, commit=True, coordinator_epoch=0, timestamp_ms=5)
    batch = kafka_batch(THREE)
    assert converted(LogEntry(40, 1, marker)) == []
    assert converted(batch._replace(batch=emptied(parse_batch_header(batch.batch)))) == []


def test_pulsars_own_entry_is_returned_as_it_is() -> None:
    entry = pulsar_entry(MessageMetadata(producer_name="tills", sequence_id=4, publish_time=1_000), b"apples")
    assert converted(entry) == [entry]
