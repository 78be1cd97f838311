"""Batches of both protocols, drawn at random or made by hand, and what they say, as values that can be compared."""

import base64
from collections.abc import Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st

from exacta.core.ids import ProducerEpoch, ProducerId
from exacta.ports.record_format import Buffer, LogEntry
from exacta.protocol.kafka import compression as kafka_codecs
from exacta.protocol.kafka.batch_building import data_batch
from exacta.protocol.kafka.record_edits import with_records
from exacta.protocol.kafka.record_keys import record_keys
from exacta.protocol.kafka.record_reading import read_records
from exacta.protocol.kafka.record_writing import Header, encoded_headers, record
from exacta.protocol.kafka.records import (
    HEADER_SIZE,
    assign_offset,
    opened,
    parse_batch_header,
    sound_batches,
    with_max_timestamp,
)
from exacta.protocol.pulsar.compression import compress, decompress
from exacta.protocol.pulsar.entries import build_batch, build_body, parse_body, partition_key, walk_batch
from exacta.protocol.pulsar.messages_pb2 import CompressionType, MessageMetadata, Property, SingleMessageMetadata
from exacta.records.pulsar_entries import entry_of, enveloped

MOST_BYTES = 1 << 20
"""The bound of tests that are about something else."""

LARGEST_ENTRY = 1 << 22

KAFKA_HEADER_NAMES = ("a", "b", "content-type", "")
LATEST_MS = (1 << 63) - 1


class KafkaRecord(NamedTuple):
    """A record, as a client sees it."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]


class KafkaBatch(NamedTuple):
    """A Kafka batch; its timestamps are those that a client sees."""

    base_offset: int
    last_offset: int
    producer: tuple[int, int, int]
    """Producer id, epoch and first sequence number."""
    transactional: bool
    log_append_time: bool
    codec: int
    records: tuple[KafkaRecord, ...]


class PulsarMessage(NamedTuple):
    """A Pulsar message, as a client sees it."""

    offset: int
    key: bytes | None
    key_is_bytes: bool
    says_null_key: bool
    payload: bytes
    is_null: bool
    properties: tuple[tuple[bytes, bytes], ...]
    event_time: int
    ordering_key: bytes | None
    sequence_id: int


class PulsarEntry(NamedTuple):
    """A Pulsar entry: what all its messages share, and those that are left of them."""

    base_offset: int
    last_offset: int
    producer: tuple[int, int]
    """Producer id and epoch of the transaction."""
    publish_time: int
    log_append_ms: int | None
    """The time that the header says instead, if it is the broker's."""
    codec: int
    is_batch: bool
    shared: dict[str, Any]
    """Fields of the metadata: the name of the producer, and what else there is."""
    messages: tuple[PulsarMessage, ...]


SHARED_FIELDS = (
    *("producer_name", "schema_version", "schema_id", "deliver_at_time", "replicated_from", "replicate_to"),
    *("highest_sequence_id", "txnid_least_bits", "txnid_most_bits"),
)


# --- reading ----------------------------------------------------------------------------------------------------------


def read_kafka(batch: Buffer) -> KafkaBatch:
    """Return what a batch of Kafka's says; it is sound."""
    header = parse_batch_header(batch, magics=frozenset({2}))
    assert sound_batches(batch, (header.base_offset,)) == (len(batch), "")
    plain = opened(batch, header, 100 * MOST_BYTES)
    found = [
        KafkaRecord(
            header.base_offset + offset_delta,
            header.max_timestamp if header.log_append_time else header.base_timestamp + time_delta,
            key,
            value,
            headers,
        )
        for offset_delta, time_delta, key, value, headers in read_records(
            plain, header.record_count, header.last_offset_delta, most_headers=MOST_BYTES
        )
    ]
    return KafkaBatch(
        header.base_offset,
        header.last_offset,
        (header.producer_id, header.producer_epoch, header.base_sequence),
        header.transactional,
        header.log_append_time,
        header.codec,
        tuple(found),
    )


def read_pulsar(entry: LogEntry) -> PulsarEntry:
    """Return what an entry in a batch of the log says; it is sound."""
    header = parse_batch_header(entry.batch, magics=frozenset({0x50}))
    assert sound_batches(entry.batch, (entry.base_offset,)) == (len(entry.batch), "")
    assert header.last_offset_delta + 1 == header.record_count == entry.offset_count
    found = entry_of(entry.batch)
    metadata = found.metadata
    assert found.message_count == entry.offset_count
    payload = decompress(
        metadata.compression, found.payload, metadata.uncompressed_size if found.is_compressed else len(found.payload)
    )
    messages = []
    if found.is_batch:
        for each in walk_batch(payload, found.message_count):
            if not each.metadata.compacted_out:
                offset = entry.base_offset + each.index
                messages.append(_message(offset, each.metadata, bytes(each.payload), metadata.sequence_id))
    else:
        messages.append(_message(entry.base_offset, metadata, payload, metadata.sequence_id))
    return PulsarEntry(
        entry.base_offset,
        entry.base_offset + entry.offset_count - 1,
        (header.producer_id, header.producer_epoch),
        metadata.publish_time,
        header.max_timestamp if header.log_append_time else None,
        metadata.compression,
        found.is_batch,
        {
            name: list(value) if name == "replicate_to" else value
            for name in SHARED_FIELDS
            if (value := getattr(metadata, name)) and (name == "replicate_to" or metadata.HasField(name))
        },
        tuple(messages),
    )


def _message(
    offset: int, metadata: MessageMetadata | SingleMessageMetadata, payload: bytes, base_sequence: int
) -> PulsarMessage:
    return PulsarMessage(
        offset,
        partition_key(metadata),
        metadata.partition_key_b64_encoded,
        metadata.null_partition_key,
        payload,
        metadata.null_value,
        tuple((each.key, each.value) for each in metadata.properties),
        metadata.event_time,
        metadata.ordering_key if metadata.HasField("ordering_key") else None,
        metadata.sequence_id if metadata.HasField("sequence_id") else base_sequence,
    )


# --- making -----------------------------------------------------------------------------------------------------------


def kafka_batch(
    records: Sequence[tuple[int, bytes | None, bytes | None, Sequence[Header]]],
    *,
    offset: int = 40,
    codec: int = 0,
    producer: tuple[int, int, int] = (-1, -1, -1),
    transactional: bool = False,
    first_ms: int = 1_000,
    log_append_ms: int | None = None,
    kept: Sequence[int] | None = None,
) -> LogEntry:
    """Return a batch of the log with these records: time, key, value, headers; of them compaction has left `kept`."""
    encoded = [
        record(place, time_ms - first_ms, key, value, encoded_headers(headers))
        for place, (time_ms, key, value, headers) in enumerate(records)
    ]
    plain = b"".join(encoded)
    batch = data_batch(
        [kafka_codecs.compress(codec, plain, kafka_codecs.LEVELS.get(codec, 0))],
        len(records),
        compression=codec,
        transactional=transactional,
        first_timestamp_ms=first_ms,
        last_timestamp_ms=max(time_ms for time_ms, *_ in records),
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
    )
    if log_append_ms is not None:
        batch = bytes(with_max_timestamp(batch, log_append_ms, log_append_time=True))
    batch = placed(batch, offset)
    if kept is not None:
        header = parse_batch_header(batch)
        batch, _ = with_records(header, plain, record_keys(plain, len(records), len(records) - 1), kept, None)
    return LogEntry(offset, len(records), batch)


def pulsar_entry(
    metadata: MessageMetadata,
    messages: Sequence[tuple[SingleMessageMetadata, bytes]] | bytes,
    *,
    offset: int = 40,
    producer: tuple[int, int] = (-1, -1),
    log_append_ms: int | None = None,
) -> LogEntry:
    """Return an entry in a batch of the log: of a batch of messages, or of one, whose payload is given."""
    metadata = MessageMetadata.FromString(metadata.SerializeToString())
    if isinstance(messages, bytes):
        payload = messages
    else:
        metadata.num_messages_in_batch = len(messages)
        payload = build_batch(messages)
    if metadata.compression != CompressionType.NONE:
        metadata.uncompressed_size = len(payload)
        payload = compress(metadata.compression, payload)
    return in_the_log(build_body(metadata, payload), offset, producer, log_append_ms)


def in_the_log(
    body: bytes, offset: int = 40, producer: tuple[int, int] = (-1, -1), log_append_ms: int | None = None
) -> LogEntry:
    """Return the body of an entry as a batch of the log."""
    entry = parse_body(body)
    batch = enveloped(entry, ProducerId(producer[0]), ProducerEpoch(producer[1]))
    if log_append_ms is not None:
        batch = bytes(with_max_timestamp(batch, log_append_ms, log_append_time=True))
    return LogEntry(offset, entry.message_count, placed(batch, offset))


def placed(batch: bytes, offset: int) -> bytes:
    """Return the batch at an offset."""
    return b"".join(assign_offset(batch, offset))


def with_header(batch: Buffer, at: int, data: bytes) -> bytes:
    """Return the batch with other bytes in its header; its checksum is wrong then, which nobody looks at."""
    assert at + len(data) <= HEADER_SIZE
    return b"".join((batch[:at], data, batch[at + len(data) :]))


# --- at random --------------------------------------------------------------------------------------------------------

times_ms = st.integers(1, LATEST_MS) | st.integers(1_700_000_000_000, 1_700_000_100_000)
small = st.binary(max_size=20) | st.text(max_size=8).map(str.encode)
values = small | st.integers(0, 400).map(lambda size: b"abc" * size)
offsets = st.integers(0, 1 << 50)

kafka_headers = st.lists(
    st.tuples(st.sampled_from(KAFKA_HEADER_NAMES).map(str.encode) | st.binary(max_size=3), st.none() | small),
    max_size=4,
)
kafka_records = st.tuples(times_ms, st.none() | small, st.none() | values, st.just(()) | kafka_headers.map(tuple))


@st.composite
def kafka_batches(draw: st.DrawFn) -> LogEntry:
    """Draw a Kafka batch."""
    records = draw(st.lists(kafka_records, min_size=1, max_size=8))
    kept = draw(st.none() | st.sets(st.integers(0, len(records) - 1), min_size=1).map(sorted))
    producer = draw(st.just((-1, -1, -1)) | st.tuples(st.integers(0, 1 << 40), st.integers(0, 9), st.integers(0, 99)))
    return kafka_batch(
        records,
        offset=draw(offsets),
        codec=draw(st.sampled_from(range(5))),
        producer=producer,
        transactional=producer[0] >= 0 and draw(st.booleans()),
        first_ms=records[0][0],
        log_append_ms=draw(st.none() | times_ms),
        kept=kept,
    )


property_names = st.text(max_size=5).map(str.encode)
properties = st.dictionaries(property_names, st.text(max_size=8).map(str.encode), max_size=3)
unsigned = st.integers(0, LATEST_MS)


@st.composite
def message_fields(draw: st.DrawFn) -> dict[str, Any]:
    """Draw the fields that a message has by itself, alone or in a batch, as clients write them."""
    fields: dict[str, Any] = {
        "properties": [Property(key=name, value=value) for name, value in draw(properties).items()],
        "event_time": draw(st.just(0) | times_ms),
        "ordering_key": draw(st.none() | small),
    }
    key = draw(st.none() | small)
    if key is not None:
        is_text = draw(st.booleans())
        try:
            key.decode()
        except UnicodeDecodeError:
            is_text = False
        fields |= {"partition_key": key} if is_text else _bytes_key(key)
    return {name: value for name, value in fields.items() if value is not None}


def _bytes_key(key: bytes) -> dict[str, Any]:
    return {"partition_key": base64.b64encode(key), "partition_key_b64_encoded": True}


@st.composite
def pulsar_entries(draw: st.DrawFn) -> LogEntry:
    """Draw a Pulsar entry, as a client writes it, or as compaction leaves it."""
    shared = {
        "producer_name": draw(st.text(max_size=8)),
        "sequence_id": draw(unsigned),
        "publish_time": draw(times_ms),
        "schema_version": draw(st.none() | st.binary(max_size=9)),
        "schema_id": draw(st.none() | st.binary(max_size=3)),
        "deliver_at_time": draw(st.none() | st.integers(-5, LATEST_MS)),
        "replicated_from": draw(st.none() | st.text(max_size=3)),
        "replicate_to": draw(st.lists(st.text(max_size=3), max_size=2)),
        "compression": draw(st.sampled_from(sorted(CompressionType.values()))),
    }
    present: dict[str, Any] = {name: value for name, value in shared.items() if value is not None}
    place: dict[str, Any] = {
        "offset": draw(offsets),
        "producer": draw(st.just((-1, -1)) | st.tuples(st.integers(0, 1 << 40), st.just(0))),
        "log_append_ms": draw(st.none() | times_ms),
    }
    if draw(st.booleans()):
        payload = draw(st.none() | values)
        fields = draw(message_fields())
        if payload is None:
            fields["null_value"] = True
        return pulsar_entry(MessageMetadata(**present, **fields), payload or b"", **place)
    messages = []
    for _ in range(draw(st.integers(1, 6))):
        payload = draw(st.none() | values)
        fields = draw(message_fields())
        if payload is None:
            fields["null_value"] = True
        sequence_id = draw(st.none() | unsigned)
        if sequence_id is not None:
            fields["sequence_id"] = sequence_id
        if draw(st.sampled_from([False, False, True])):
            fields, payload = {"compacted_out": True}, b""
        messages.append((SingleMessageMetadata(payload_size=0, **fields), payload or b""))
    return pulsar_entry(MessageMetadata(**present), messages, **place)
