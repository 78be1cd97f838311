"""Pulsar's messages as Kafka's records: field by field."""

import base64

import pytest

from exacta.core.ids import Body
from exacta.ports.record_format import LogEntry
from exacta.protocol.kafka.batch_building import emptied
from exacta.protocol.kafka.record_writing import encoded_headers
from exacta.protocol.kafka.records import parse_batch_header
from exacta.protocol.pulsar.messages_pb2 import CompressionType, MessageMetadata, Property, SingleMessageMetadata
from exacta.records.conversion import names, to_kafka
from exacta.records.conversion.opening import header_of
from tests.records.conversion.batches import (
    MOST_BYTES,
    KafkaBatch,
    KafkaRecord,
    kafka_batch,
    pulsar_entry,
    read_kafka,
    with_header,
)
from tests.records.conversion.bounds import kafka_bound


def message(**fields: object) -> SingleMessageMetadata:
    return SingleMessageMetadata(payload_size=0, **fields)  # type: ignore[arg-type]


def converted(entry: LogEntry, *, zstd: bool = True) -> KafkaBatch:
    batch = to_kafka(entry.batch, allowed_bytes=MOST_BYTES, zstd=zstd)
    assert len(batch) <= kafka_bound(entry.batch)
    return read_kafka(batch)


def sent(*messages: tuple[SingleMessageMetadata, bytes], **fields: object) -> KafkaBatch:
    metadata = {"producer_name": "tills", "sequence_id": 4, "publish_time": 1_000, **fields}
    return converted(pulsar_entry(MessageMetadata(**metadata), messages))  # type: ignore[arg-type]


def one(**fields: object) -> KafkaRecord:
    (record,) = sent((message(**fields), b"apples")).records
    return record


OWN = ((names.SEQUENCE_ID, b"4"), (names.PRODUCER_NAME, b"tills"))


def test_a_batch_keeps_its_offsets_and_its_time() -> None:
    batch = sent((message(), b"apples"), (message(partition_key=b"k"), b""))
    assert (batch.base_offset, batch.last_offset, batch.producer) == (40, 41, (-1, -1, -1))
    assert (batch.transactional, batch.log_append_time) == (False, False)
    assert batch.records == (KafkaRecord(40, 1_000, None, b"apples", OWN), KafkaRecord(41, 1_000, b"k", b"", OWN))


def test_it_stays_in_its_transaction() -> None:
    metadata = MessageMetadata(producer_name="tills", sequence_id=4, publish_time=1_000)
    batch = converted(pulsar_entry(metadata, b"apples", producer=(7, 3)))
    assert (batch.transactional, batch.producer) == (True, (7, 3, -1))


def test_where_the_time_is_the_brokers_it_stays_so() -> None:
    metadata = MessageMetadata(producer_name="tills", sequence_id=4, publish_time=1_000)
    batch = converted(pulsar_entry(metadata, b"apples", log_append_ms=5_000))
    assert (batch.log_append_time, batch.records[0].timestamp_ms) == (True, 5_000)


def test_the_time_stays_where_the_header_begins_with_a_horizon() -> None:
    metadata = MessageMetadata(producer_name="tills", sequence_id=4, publish_time=1_000)
    entry = pulsar_entry(metadata, b"apples")
    horizon = with_header(with_header(entry.batch, 21, b"\x00\x40"), 27, (1 << 62).to_bytes(8))
    batch = to_kafka(horizon, allowed_bytes=MOST_BYTES)
    assert parse_batch_header(batch).delete_horizon_ms == 1 << 62
    assert read_kafka(batch).records[0].timestamp_ms == 1_000


@pytest.mark.parametrize(
    ("fields", "key", "marked"),
    [
        ({}, None, False),
        ({"partition_key": b""}, b"", False),
        ({"partition_key": b"k"}, b"k", False),
        ({"partition_key": b"\xff"}, b"\xff", False),
        ({"partition_key": b"a2V5", "partition_key_b64_encoded": True}, b"key", True),
        ({"partition_key": b"/w==", "partition_key_b64_encoded": True}, b"\xff", False),
        ({"partition_key": b"", "partition_key_b64_encoded": True}, b"", True),
        ({"partition_key": b"no base64!", "partition_key_b64_encoded": True}, b"no base64!", True),
        ({"null_partition_key": True}, None, False),
        ({"partition_key": b"k", "null_partition_key": True}, None, False),
    ],
)
def test_keys(fields: dict[str, object], key: bytes | None, marked: bool) -> None:
    record = one(**fields)
    assert record.key == key
    assert ((names.KEY_IS_BYTES, b"true") in record.headers) == marked


def test_a_null_value_is_a_tombstone() -> None:
    assert one(null_value=True).value is None
    metadata = MessageMetadata(producer_name="tills", sequence_id=4, publish_time=1_000, null_value=True)
    assert converted(pulsar_entry(metadata, b"")).records[0].value is None


def test_what_kafka_has_no_field_for_is_in_headers() -> None:
    record = one(
        properties=[Property(key=b"a", value=b"b"), Property(key=b"a", value=b"\xff")],
        event_time=7,
        ordering_key=b"\x00",
        sequence_id=0,
    )
    assert record.headers == (
        (b"a", b"b"),
        (b"a", b"\xff"),
        (names.ORDERING_KEY, b"\x00"),
        (names.EVENT_TIME, b"7"),
        (names.SEQUENCE_ID, b"0"),
        (names.PRODUCER_NAME, b"tills"),
    )


@pytest.mark.parametrize(
    ("version", "text"), [(b"\0\0\0\0\0\0\x01\x02", b"258"), (b"", b"0x"), (b"\x01\x02\xff", b"0x0102ff")]
)
def test_what_an_entry_says_is_said_of_each_message(version: bytes, text: bytes) -> None:
    batch = sent(
        (message(), b"apples"),
        (message(sequence_id=9), b"pears"),
        schema_version=version,
        schema_id=b"\x01",
        deliver_at_time=-5,
        replicated_from="east",
        replicate_to=["west", "north"],
    )
    said = (
        (names.PRODUCER_NAME, b"tills"),
        (names.SCHEMA_VERSION, text),
        (names.SCHEMA_ID, b"\x01"),
        (names.DELIVER_AT, b"-5"),
        (names.REPLICATED_FROM, b"east"),
        (names.REPLICATE_TO, b"west"),
        (names.REPLICATE_TO, b"north"),
    )
    assert [record.headers for record in batch.records] == [
        ((names.SEQUENCE_ID, b"4"), *said),
        ((names.SEQUENCE_ID, b"9"), *said),
    ]


def test_all_of_one_message_is_in_the_entry() -> None:
    metadata = MessageMetadata(
        producer_name="tills",
        sequence_id=4,
        publish_time=1_000,
        partition_key=b"k",
        event_time=7,
        ordering_key=b"",
        properties=[Property(key=b"a", value=b"b")],
    )
    own = ((b"a", b"b"), (names.ORDERING_KEY, b""), (names.EVENT_TIME, b"7"))
    assert converted(pulsar_entry(metadata, b"apples")).records == (
        KafkaRecord(40, 1_000, b"k", b"apples", (*own, *OWN)),
    )


def test_messages_that_compaction_has_taken_out_are_holes() -> None:
    taken = (message(compacted_out=True), b"")
    batch = sent(taken, (message(), b"apples"), taken)
    assert (batch.base_offset, batch.last_offset) == (40, 42)
    assert [record.offset for record in batch.records] == [41]
    assert sent(taken, taken, compression=CompressionType.LZ4).records == ()


def test_a_batch_that_compaction_has_emptied_is_an_empty_one() -> None:
    metadata = MessageMetadata(producer_name="tills", sequence_id=4, publish_time=1_000)
    entry = pulsar_entry(metadata, [(message(), b"apples")] * 3)
    empty = emptied(parse_batch_header(entry.batch))
    batch = converted(entry._replace(batch=empty))
    assert (batch.base_offset, batch.last_offset, batch.records) == (40, 42, ())


def test_kafkas_own_batch_is_returned_as_it_is() -> None:
    batch = kafka_batch([(1, b"k", b"v", ())]).batch
    assert to_kafka(memoryview(batch), allowed_bytes=0) == batch
    assert kafka_bound(batch) == len(batch)
    assert header_of(memoryview(batch), Body.PULSAR) is None


@pytest.mark.parametrize(
    ("codec", "kafkas"),
    [
        (CompressionType.NONE, 0),
        (CompressionType.ZLIB, 1),
        (CompressionType.SNAPPY, 2),
        (CompressionType.LZ4, 3),
        (CompressionType.ZSTD, 4),
    ],
)
def test_the_codec_stays(codec: CompressionType, kafkas: int) -> None:
    metadata = MessageMetadata(producer_name="tills", sequence_id=4, publish_time=1_000, compression=codec)
    entry = pulsar_entry(metadata, [(message(), b"apples " * 9)] * 9)
    batch = converted(entry)
    assert batch.codec == kafkas
    assert [record.value for record in batch.records] == [b"apples " * 9] * 9
    assert converted(entry, zstd=False).codec == (0 if kafkas == 4 else kafkas)


def test_what_compression_makes_larger_is_not_compressed() -> None:
    metadata = MessageMetadata(
        producer_name="tills", sequence_id=4, publish_time=1_000, compression=CompressionType.ZLIB
    )
    assert converted(pulsar_entry(metadata, b"")).codec == 0


def test_headers_that_were_kafkas_come_back() -> None:
    headers = [(b"a", b"1"), (b"a", None), (b"\xff", b"\xff"), (b"", b"")]
    told = encoded_headers(headers)
    properties = [Property(key=b"a", value=b"1"), Property(key=names.KAFKA_HEADERS, value=base64.b64encode(told))]
    assert one(properties=properties).headers == (*headers, *OWN)


@pytest.mark.parametrize("value", [b"", b"no base64!", b"AAA=", b"BAIh", b"////"])
def test_a_users_own_property_of_that_name_is_a_header(value: bytes) -> None:
    """Among them are headers that end too early, and bytes behind them."""
    assert one(properties=[Property(key=names.KAFKA_HEADERS, value=value)]).headers == (
        (names.KAFKA_HEADERS, value),
        *OWN,
    )


def test_a_name_that_is_no_text_is_made_one() -> None:
    assert one(properties=[Property(key=b"\xc3\xa4\xff\xfe", value=b"b")]).headers[0] == (b"\xc3\xa4??", b"b")
