"""A batch that cannot be opened goes over as one message that says why, at its first offset; nothing of it is lost."""

import base64
import struct
from collections.abc import Mapping

import pytest

from exacta.ports.record_format import LogEntry
from exacta.protocol.kafka.records import HEADER_SIZE, parse_batch_header
from exacta.protocol.pulsar.compression import compress
from exacta.protocol.pulsar.entries import build_batch, build_body, parse_body
from exacta.protocol.pulsar.frames import LARGEST_MESSAGE
from exacta.protocol.pulsar.messages_pb2 import (
    CompressionType,
    EncryptionKeys,
    MessageMetadata,
    Property,
    SingleMessageMetadata,
)
from exacta.records.conversion import names, to_kafka, to_pulsar
from exacta.records.conversion.opening import OpaqueReason
from exacta.records.pulsar_entries import entry_of
from tests.records.conversion.batches import (
    LARGEST_ENTRY,
    MOST_BYTES,
    in_the_log,
    kafka_batch,
    pulsar_entry,
    read_kafka,
    read_pulsar,
    with_header,
)
from tests.records.conversion.bounds import kafka_bound

ZEROS = bytes(2_000_000)
RECORDS = [(1_000, b"k", b"v" * 50, ()), (1_001, None, b"w" * 50, ())]
LARGE = Property(key=b"a", value=bytes(LARGEST_MESSAGE))
COUNT_AT, DELTA_AT, ATTRIBUTES_AT = 57, 23, 21
"""The places in a batch's header."""


def metadata(**fields: object) -> MessageMetadata:
    return MessageMetadata(producer_name="tills", sequence_id=4, publish_time=1_000, **fields)  # type: ignore[arg-type]


def three(**fields: object) -> LogEntry:
    """Return a batch of three messages."""
    return pulsar_entry(metadata(**fields), [(SingleMessageMetadata(payload_size=0), b"apples")] * 3)


def with_body(said: MessageMetadata, payload: bytes) -> LogEntry:
    return in_the_log(build_body(said, payload))


UNKNOWN_CODEC = metadata().SerializeToString() + b"\x40\x09"
DAMAGED_LZ4 = metadata(compression=CompressionType.LZ4, uncompressed_size=20)
KEYS = [EncryptionKeys(key="k", value=b"v")]
CHUNK = {"uuid": "tills-4", "num_chunks_from_msg": 3, "chunk_id": 1, "total_chunk_msg_size": 20}

PULSARS: Mapping[str, tuple[OpaqueReason, LogEntry]] = {
    "encrypted": (
        OpaqueReason.ENCRYPTED,
        with_body(metadata(encryption_keys=KEYS, num_messages_in_batch=3), b"secret"),
    ),
    "an encrypted chunk": (OpaqueReason.ENCRYPTED, with_body(metadata(encryption_keys=KEYS, **CHUNK), b"secret")),
    "a chunk": (OpaqueReason.CHUNK, with_body(metadata(**CHUNK), b"part")),
    "an unknown codec": (
        OpaqueReason.CODEC,
        in_the_log(struct.pack(">I", len(UNKNOWN_CODEC)) + UNKNOWN_CODEC + b"payload"),
    ),
    "too few offsets": (OpaqueReason.COUNT, three()._replace(batch=with_header(three().batch, DELTA_AT, bytes(4)))),
    "too many messages": (
        OpaqueReason.COUNT,
        with_body(metadata(num_messages_in_batch=1_000_001, compression=1, uncompressed_size=9), b"x"),
    ),
    "too large decompressed": (OpaqueReason.SIZE, pulsar_entry(metadata(compression=CompressionType.ZSTD), ZEROS)),
    "too large converted": (
        OpaqueReason.SIZE,
        pulsar_entry(metadata(), [(SingleMessageMetadata(payload_size=0), b"")] * 10_000),
    ),
    "too large metadata of a message": (
        OpaqueReason.SIZE,
        pulsar_entry(metadata(), [(SingleMessageMetadata(payload_size=0, properties=[LARGE]), b"apples")]),
    ),
    "no metadata": (OpaqueReason.DAMAGED, three()._replace(batch=bytes(three().batch[:HEADER_SIZE]) + b"\xff" * 20)),
    "no entry": (OpaqueReason.DAMAGED, three()._replace(batch=three().batch[:HEADER_SIZE])),
    "cut off": (OpaqueReason.DAMAGED, three()._replace(batch=three().batch[:-3])),
    "more behind": (OpaqueReason.DAMAGED, three()._replace(batch=bytes(three().batch) + b"x")),
    "damaged compression": (OpaqueReason.DAMAGED, with_body(DAMAGED_LZ4, b"\xff" * 9)),
    "less than it says": (
        OpaqueReason.DAMAGED,
        with_body(DAMAGED_LZ4, compress(CompressionType.LZ4, b"apples")),
    ),
    "more than it says": (
        OpaqueReason.DAMAGED,
        with_body(DAMAGED_LZ4, compress(CompressionType.LZ4, b"apples" * 9)),
    ),
}


@pytest.mark.parametrize("case", PULSARS)
def test_an_entry_that_cannot_be_opened_is_one_record_that_says_why(case: str) -> None:
    reason, entry = PULSARS[case]
    before = parse_batch_header(entry.batch)
    batch = to_kafka(entry.batch, allowed_bytes=MOST_BYTES)
    assert len(batch) <= kafka_bound(entry.batch, allowed_bytes=MOST_BYTES)
    after = parse_batch_header(batch)
    assert (after.base_offset, after.last_offset_delta) == (40, before.last_offset_delta)
    (record,) = read_kafka(batch).records
    assert (record.offset, record.timestamp_ms) == (40, before.max_timestamp)
    headers = dict(record.headers)
    assert headers[names.OPAQUE] == reason.encode()
    body = bytes(entry.batch[HEADER_SIZE:])
    told = headers.get(names.METADATA)
    assert record.value is not None
    kept = record.value if told is None else struct.pack(">I", len(told)) + told + record.value
    assert kept == body


def test_every_reason_is_met() -> None:
    assert {reason for reason, _ in PULSARS.values()} == set(OpaqueReason)
    assert {reason for reason, _, _ in KAFKAS.values()} == set(OpaqueReason) - {
        OpaqueReason.ENCRYPTED,
        OpaqueReason.CHUNK,
    }


def test_one_encrypted_message_has_its_key_and_its_properties() -> None:
    said = metadata(
        encryption_keys=KEYS,
        partition_key=b"k",
        properties=[Property(key=b"a", value=b"b")],
        event_time=7,
        ordering_key=b"o",
    )
    (record,) = read_kafka(to_kafka(with_body(said, b"secret").batch, allowed_bytes=MOST_BYTES)).records
    assert (record.key, record.value) == (b"k", b"secret")
    assert record.headers == (
        (b"a", b"b"),
        (names.ORDERING_KEY, b"o"),
        (names.EVENT_TIME, b"7"),
        (names.SEQUENCE_ID, b"4"),
        (names.PRODUCER_NAME, b"tills"),
        (names.OPAQUE, b"encrypted"),
        (names.METADATA, said.SerializeToString()),
    )


def test_a_chunk_says_which_one_it_is() -> None:
    (record,) = read_kafka(to_kafka(PULSARS["a chunk"][1].batch, allowed_bytes=MOST_BYTES)).records
    headers = dict(record.headers)
    assert record.value == b"part"
    assert headers[names.CHUNK_UUID] == b"tills-4"
    assert (headers[names.CHUNK_ID], headers[names.CHUNK_COUNT], headers[names.CHUNK_TOTAL_SIZE]) == (b"1", b"3", b"20")


def changed(batch: LogEntry, at: int, data: bytes) -> LogEntry:
    return batch._replace(batch=with_header(batch.batch, at, data))


PLAIN = kafka_batch(RECORDS)

KAFKAS: Mapping[str, tuple[OpaqueReason, LogEntry, bool]] = {
    "an unknown codec": (OpaqueReason.CODEC, changed(PLAIN, ATTRIBUTES_AT, b"\x00\x05"), False),
    "more records than offsets": (OpaqueReason.COUNT, changed(PLAIN, COUNT_AT, struct.pack(">i", 3)), False),
    "too many offsets": (OpaqueReason.COUNT, changed(PLAIN, DELTA_AT, struct.pack(">i", 1_000_000)), False),
    "fewer offsets than none": (OpaqueReason.COUNT, changed(PLAIN, DELTA_AT, struct.pack(">i", -1)), False),
    "many offsets": (OpaqueReason.SIZE, changed(PLAIN, DELTA_AT, struct.pack(">i", 500_000)), False),
    "many entries": (OpaqueReason.SIZE, changed(PLAIN, DELTA_AT, struct.pack(">i", 5_000)), True),
    "too large decompressed, gzip": (OpaqueReason.SIZE, kafka_batch([(1, b"k", ZEROS, ())], codec=1), False),
    "too large decompressed, snappy": (OpaqueReason.SIZE, kafka_batch([(1, b"k", ZEROS, ())], codec=2), False),
    "too large decompressed, lz4": (OpaqueReason.SIZE, kafka_batch([(1, b"k", ZEROS, ())], codec=3), False),
    "too large decompressed, zstd": (OpaqueReason.SIZE, kafka_batch([(1, b"k", ZEROS, ())], codec=4), False),
    "too many headers": (OpaqueReason.SIZE, kafka_batch([(1, b"k", b"v", ((b"", None),) * 9_000)] * 2, codec=4), False),
    "damaged compression": (OpaqueReason.DAMAGED, changed(PLAIN, ATTRIBUTES_AT, b"\x00\x04"), False),
    "fewer records than are there": (OpaqueReason.DAMAGED, changed(PLAIN, COUNT_AT, struct.pack(">i", 1)), False),
    "cut off": (OpaqueReason.DAMAGED, PLAIN._replace(batch=PLAIN.batch[:-3]), False),
}


@pytest.mark.parametrize("case", KAFKAS)
def test_a_batch_that_cannot_be_opened_is_one_message_that_says_why(case: str) -> None:
    reason, batch, singly = KAFKAS[case]
    (entry,) = to_pulsar(batch, singly=singly, allowed_bytes=MOST_BYTES, largest_entry=LARGEST_ENTRY)
    assert (entry.base_offset, entry.offset_count, entry.gaps) == (40, 1, ())
    found = read_pulsar(entry)
    assert not found.is_batch
    (message,) = found.messages
    properties = dict(message.properties)
    assert properties[names.KAFKA_OPAQUE] == reason.encode()
    assert base64.b64decode(properties[names.KAFKA_BATCH_HEADER]) + message.payload == batch.batch


def test_what_no_consumer_could_get_is_told_by_its_size() -> None:
    damaged = kafka_batch([(1, b"k", b"x" * 5_000, ())])
    damaged = damaged._replace(batch=damaged.batch[:-1])
    (entry,) = to_pulsar(damaged, singly=False, allowed_bytes=MOST_BYTES, largest_entry=1_000)
    (message,) = read_pulsar(entry).messages
    assert message.payload == b""
    assert dict(message.properties)[names.KAFKA_SIZE] == b"%d" % (len(damaged.batch) - HEADER_SIZE)
    assert len(entry_of(entry.batch).body) <= 1_000


def test_the_metadata_are_the_producers_own_bytes() -> None:
    """Fields that are not known here are in them."""
    said = metadata(encryption_keys=KEYS).SerializeToString() + b"\xf8\x07\x01"
    entry = in_the_log(struct.pack(">I", len(said)) + said + b"secret")
    (record,) = read_kafka(to_kafka(entry.batch, allowed_bytes=MOST_BYTES)).records
    assert dict(record.headers)[names.METADATA] == said
    assert parse_body(build_body(MessageMetadata.FromString(said), b"")).metadata.sequence_id == 4


def test_an_entry_of_the_smallest_messages_is_opened() -> None:
    entry = pulsar_entry(metadata(), [(SingleMessageMetadata(payload_size=0), b"")] * 1_000)
    assert len(build_batch([(SingleMessageMetadata(payload_size=0), b"")])) == 6
    batch = to_kafka(entry.batch, allowed_bytes=MOST_BYTES)
    assert len(read_kafka(batch).records) == 1_000
    assert len(batch) <= kafka_bound(entry.batch)
