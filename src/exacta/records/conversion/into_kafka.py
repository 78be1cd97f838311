"""Pulsar's entries as Kafka's batches.

Owns the mapping of a message to a record, and the opaque batch for an entry that cannot be opened. `names.py` has the
headers for fields that Kafka does not have, and `docs/reference/conversion.md` the table.

Theory of operation. A batch keeps its offsets, its times and its transaction: they stand in its header, which is
believed, as everywhere in the log. All other bytes are a client's. A payload has exactly the size that its metadata
say, once it is decompressed, or it is damaged. So the metadata alone bound how large the result is, whatever the bytes
are (`tests/records/conversion/bounds.py`).
"""

from typing import Final

from google.protobuf.unknown_fields import UnknownFieldSet

from exacta.core.ids import Body
from exacta.ports.record_format import Buffer
from exacta.protocol.kafka import compression as kafka_codecs
from exacta.protocol.kafka.batch_building import translated
from exacta.protocol.kafka.record_writing import (
    VARINTS,
    Header,
    encoded_headers,
    record,
    sized,
    without_count,
    wrapped,
)
from exacta.protocol.kafka.records import HEADER_SIZE, BatchHeader
from exacta.protocol.pulsar import compression as pulsar_codecs
from exacta.protocol.pulsar.entries import MOST_MESSAGES, Entry, parse_body, partition_key, walked
from exacta.protocol.pulsar.errors import BrokenEntry, LargeMetadata
from exacta.protocol.pulsar.messages_pb2 import CompressionType, MessageMetadata
from exacta.records.conversion import names
from exacta.records.conversion.fields import any_tag, chunk_headers, entry_headers, message_headers
from exacta.records.conversion.opening import OpaqueReason, Unopenable, header_of

_CODECS: Final = {
    CompressionType.NONE: kafka_codecs.NONE,
    CompressionType.LZ4: kafka_codecs.LZ4,
    CompressionType.ZLIB: kafka_codecs.GZIP,
    CompressionType.ZSTD: kafka_codecs.ZSTD,
    CompressionType.SNAPPY: kafka_codecs.SNAPPY,
}

_LEVELS: Final = {**kafka_codecs.LEVELS, kafka_codecs.LZ4: 1}
"""Levels of compression. A reader waits for it, and LZ4's slow method, which is Kafka's level 9, takes ten times as
long as the fast one."""

MOST_ADDED_TO_EACH: Final = 192
"""The most bytes that a record has more than its message, beside the headers that stand for fields of the entry. They
are six numbers, and four headers with numbers in them."""

_EVENT_TIME: Final = sized(names.EVENT_TIME)
_SEQUENCE: Final = sized(names.SEQUENCE_ID)
_COMPRESSION_FIELD: Final = MessageMetadata.COMPRESSION_FIELD_NUMBER


def to_kafka(batch: Buffer, *, allowed_bytes: int, zstd: bool = True) -> bytes:
    """Return the batch of the log as Kafka's, at the same offsets; one of Kafka's own is returned as it is.

    An entry that cannot be opened becomes one record that says why. At most `allowed_bytes` come out of a
    decompression, and at most this many are added to the bytes of the messages. Without `zstd` no batch is compressed
    by it, because old consumers do not know it. No bytes of an entry raise anything.
    """
    view = memoryview(batch)
    header = header_of(view, Body.PULSAR)
    if header is None:
        return bytes(view)
    if not header.record_count:  # compaction has emptied it
        return translated(header, b"", 0, kafka_codecs.NONE)
    body = view[HEADER_SIZE:]
    try:
        entry = parse_body(body)
    except BrokenEntry:
        return _opaque(header, None, body, OpaqueReason.DAMAGED)
    try:
        records, count = _records(header, entry, allowed_bytes)
    except Unopenable as unopenable:
        return _opaque(header, entry, body, unopenable.reason)
    codec = _CODECS[entry.metadata.compression] if count else kafka_codecs.NONE
    if codec != kafka_codecs.NONE and (zstd or codec != kafka_codecs.ZSTD):
        compressed = kafka_codecs.compress(codec, records, _LEVELS.get(codec, 0))
        if len(compressed) < len(records):
            return translated(header, compressed, count, codec)
    return translated(header, records, count, kafka_codecs.NONE)


# --- what can be opened -----------------------------------------------------------------------------------------------


def _records(header: BatchHeader, entry: Entry, allowed_bytes: int) -> tuple[bytes, int]:
    """Return the records of an entry, not compressed, and their number. Raises `Unopenable`."""
    common = entry_headers(entry.metadata)
    payload = _opened(header, entry, len(encoded_headers(common)), allowed_bytes)
    time_delta = _time_delta(header)
    if not entry.is_batch:
        return _message(entry.metadata, payload, common, time_delta), 1
    try:
        records = _batched(entry, payload, common, time_delta)
    except LargeMetadata as error:
        raise Unopenable(OpaqueReason.SIZE) from error
    except BrokenEntry as error:
        raise Unopenable(OpaqueReason.DAMAGED) from error
    return b"".join(records), len(records)


def _opened(header: BatchHeader, entry: Entry, common_bytes: int, allowed_bytes: int) -> bytes:
    """Return the payload, decompressed. Raises `Unopenable`."""
    metadata = entry.metadata
    if entry.is_encrypted:
        raise Unopenable(OpaqueReason.ENCRYPTED)
    if entry.is_chunk:
        raise Unopenable(OpaqueReason.CHUNK)
    if _has_unknown_codec(metadata):
        raise Unopenable(OpaqueReason.CODEC)
    if entry.message_count != header.last_offset_delta + 1 or entry.message_count > MOST_MESSAGES:
        raise Unopenable(OpaqueReason.COUNT)
    if entry.message_count * (MOST_ADDED_TO_EACH + common_bytes) > allowed_bytes:
        raise Unopenable(OpaqueReason.SIZE)
    if not entry.is_compressed:
        return bytes(entry.payload)
    if metadata.uncompressed_size > allowed_bytes:
        raise Unopenable(OpaqueReason.SIZE)
    try:
        return pulsar_codecs.decompress(metadata.compression, entry.payload, metadata.uncompressed_size)
    except pulsar_codecs.EntryNotDecompressed as error:
        raise Unopenable(OpaqueReason.DAMAGED) from error


def _has_unknown_codec(metadata: MessageMetadata) -> bool:
    """Return whether the metadata name a codec by an unknown number: the parser leaves it among the unknown fields."""
    unknown = UnknownFieldSet(metadata)
    return any(unknown[index].field_number == _COMPRESSION_FIELD for index in range(len(unknown)))


def _batched(entry: Entry, payload: bytes, common: list[Header], time_delta: int) -> list[bytes]:
    """Return the records of a batch; those that compaction has taken out are left out. Raises `BrokenEntry`.

    Fields that few messages have are asked for only where their tag may stand, because a look for the tag is faster.
    """
    numbers, tail, further = VARINTS, without_count(common), len(common) + 1
    base_sequence = entry.metadata.sequence_id
    records: list[bytes] = []
    for index, (message, written, start, end) in enumerate(walked(payload, entry.message_count)):
        if message.compacted_out:
            continue
        key: bytes | None = message.partition_key
        is_plain = key and not message.partition_key_b64_encoded and not message.null_partition_key
        if not is_plain:
            key = partition_key(message)
        if is_plain and not any_tag(written):
            own, count = b"", further
        else:
            headers = message_headers(message, key)
            own, count = without_count(headers), further + len(headers)
        sequence, event_time = message.sequence_id, message.event_time
        if not sequence and not message.HasField("sequence_id"):
            sequence = base_sequence
        if event_time:
            text = b"%d" % event_time
            own, count = b"".join((own, _EVENT_TIME, numbers[len(text)], text)), count + 1
        text = b"%d" % sequence
        parts = (numbers[count], own, _SEQUENCE, numbers[len(text)], text, tail)
        value = None if message.null_value else payload[start:end]
        records.append(record(index, time_delta, key, value, b"".join(parts)))
    return records


def _message(metadata: MessageMetadata, payload: bytes, common: list[Header], time_delta: int) -> bytes:
    """Return the record of an entry that is one message, and no batch."""
    key = partition_key(metadata)
    headers = encoded_headers([*_headers_of(metadata, key), *common])
    return record(0, time_delta, key, None if metadata.null_value else payload, headers)


def _headers_of(metadata: MessageMetadata, key: bytes | None) -> list[Header]:
    """Return the headers of the one message of an entry, beside those of the entry."""
    headers = message_headers(metadata, key)
    if metadata.event_time:
        headers.append((names.EVENT_TIME, b"%d" % metadata.event_time))
    headers.append((names.SEQUENCE_ID, b"%d" % metadata.sequence_id))
    return headers


def _time_delta(header: BatchHeader) -> int:
    """Return the difference between the time of all records and the one that the header begins with.

    The times differ where that is a delete horizon. Where the time is the broker's, readers do not look at it.
    """
    return 0 if header.log_append_time else wrapped(header.max_timestamp - header.base_timestamp)


# --- what cannot be opened --------------------------------------------------------------------------------------------


def _opaque(header: BatchHeader, entry: Entry | None, body: memoryview, reason: OpaqueReason) -> bytes:
    """Return the batch of one record: its value is the payload as it is, and its headers have all other fields."""
    key, payload = None, body
    headers: list[Header] = [(names.OPAQUE, reason.encode())]
    if entry is not None:
        metadata, payload = entry.metadata, entry.payload
        own: list[Header] = []
        if not entry.is_batch:
            key = partition_key(metadata)
            own = _headers_of(metadata, key)
        chunk = chunk_headers(metadata) if entry.is_chunk else []
        headers = [*own, *entry_headers(metadata), *chunk, *headers, (names.METADATA, bytes(entry.written_metadata))]
    only = record(0, _time_delta(header), key, bytes(payload), encoded_headers(headers))
    return translated(header, only, 1, kafka_codecs.NONE)
