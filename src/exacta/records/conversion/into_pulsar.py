"""Kafka's batches as Pulsar's entries, in batches of the log: so all that handles entries handles these.

Owns the mapping of a record to a message, how records are gathered into entries, and the opaque entry for a batch that
cannot be opened. `names.py` has the properties that tell what Pulsar has no field for, and
`docs/reference/conversion.md` the table.

Theory of operation. One entry has the offsets of the whole batch, also those whose records compaction has removed: each
is a message that is marked as taken out. Most clients do not look at the mark, so that the gaps are told, and whoever
delivers the entry says in its ack set that they are acknowledged. A subscription that gives keys to consumers wants an
entry for each record, and then a removed record is none. Nearly all messages are plain, and are written without an
object of `protobuf`; all others are described by one.
"""

import base64
from collections.abc import Container, Sequence
from typing import Final

from exacta.core.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, Body
from exacta.ports.record_format import Buffer, LogEntry
from exacta.protocol.kafka import compression as kafka_codecs
from exacta.protocol.kafka.batch_building import foreign_batch
from exacta.protocol.kafka.record_keys import UnreadableRecords
from exacta.protocol.kafka.record_reading import Record, TooManyHeaders, read_records
from exacta.protocol.kafka.record_writing import Header, wrapped
from exacta.protocol.kafka.records import HEADER_SIZE, BatchHeader
from exacta.protocol.pulsar.compression import compress
from exacta.protocol.pulsar.entries import MOST_MESSAGES, build_batch, build_body
from exacta.protocol.pulsar.frames import LARGEST_COMMAND
from exacta.protocol.pulsar.messages_pb2 import CompressionType, MessageMetadata, SingleMessageMetadata
from exacta.protocol.pulsar.plain_messages import batched_head, single_head
from exacta.records.conversion import names
from exacta.records.conversion.fields import NOTHING_TOLD, Told, set_entry_fields, told
from exacta.records.conversion.opening import Closed, Opaque, header_of
from exacta.records.conversion.user_headers import is_text, properties_of
from exacta.records.keyed_records import gaps_between

_CODECS: Final = (
    CompressionType.NONE,
    CompressionType.ZLIB,
    CompressionType.SNAPPY,
    CompressionType.LZ4,
    CompressionType.ZSTD,
)
"""Pulsar's codecs by Kafka's numbers."""

_HOLE: Final = build_batch([(SingleMessageMetadata(compacted_out=True), b"")])
_TIMES: Final = 1 << 63
"""Timestamps are i64; a sum may go beyond."""

_ADDED_TO_EACH: Final = 64
"""The bytes that a message in a batch has more than its record, beside what its headers become. A header that is read
takes no less, as an object."""

_ADDED_TO_EACH_SINGLE: Final = 256
"""The bytes that an entry for each record has more, with what an object costs."""


def to_pulsar(
    entry: LogEntry,
    *,
    singly: bool,
    allowed_bytes: int,
    largest_entry: int,
    messages: Container[int] | None = None,
) -> list[LogEntry]:
    """Return the batch of the log as entries of Pulsar's; one that is Pulsar's is returned as it is.

    With `singly` each record is an entry of one message, those at the offsets `messages` if they are said. Otherwise
    all together are one, in which a message's index is its offset's distance. At most `allowed_bytes` come out of a
    decompression, and at most so many are added to what the records themselves are. An entry of more than
    `largest_entry` bytes is compressed more. A batch that is too large all the same, or cannot be opened, is one
    message at its first offset that says why. Its records are never entries of their own unless all are, since an
    acknowledgement of the first one would be taken for one of the batch. Batches without data are no entries. No bytes
    of a batch raise anything.
    """
    view = memoryview(entry.batch)
    header = header_of(view, Body.KAFKA)
    if header is None:
        return [entry]
    if header.control or header.record_count <= 0:
        return []
    try:
        records = _records(header, view, allowed_bytes, _ADDED_TO_EACH_SINGLE if singly else _ADDED_TO_EACH)
    except Closed as closed:
        return [_opaque(header, view, closed.reason, largest_entry)]
    if singly and messages is not None:
        records = [record for record in records if header.base_offset + record[0] in messages]
    found = [told(record[4]) for record in records]
    if not singly:
        together = _together(header, records, found, largest_entry)
        return [_opaque(header, view, Opaque.SIZE, largest_entry) if together is None else together]
    producer = _producer_name(header).encode()
    return [_single(header, record, each, producer, largest_entry) for record, each in zip(records, found, strict=True)]


def _records(header: BatchHeader, view: memoryview, allowed_bytes: int, added_to_each: int) -> list[Record]:
    """Return the records of a batch. Raises `Closed`."""
    count = header.last_offset_delta + 1
    if not header.record_count <= count <= MOST_MESSAGES:
        raise Closed(Opaque.COUNT)
    if count * added_to_each > allowed_bytes:
        raise Closed(Opaque.SIZE)
    if header.codec >= len(_CODECS):
        raise Closed(Opaque.CODEC)
    try:
        plain = kafka_codecs.decompress(header.codec, view[HEADER_SIZE:], allowed_bytes)
        most_headers = allowed_bytes // _ADDED_TO_EACH
        return read_records(plain, header.record_count, header.last_offset_delta, most_headers)
    except (kafka_codecs.TooMuch, TooManyHeaders) as error:
        raise Closed(Opaque.SIZE) from error
    except (kafka_codecs.NotDecompressed, UnreadableRecords) as error:
        raise Closed(Opaque.DAMAGED) from error


# --- one entry for all ------------------------------------------------------------------------------------------------


def _together(
    header: BatchHeader, records: Sequence[Record], found: Sequence[Told], largest_entry: int
) -> LogEntry | None:
    """Return one entry of all records; None if it would be too large."""
    of_entry = found[0].of_entry
    if any(each.of_entry != of_entry for each in found):
        found, of_entry = [each.with_entrys_as_users() for each in found], ()
    count, base_offset = header.last_offset_delta + 1, header.base_offset
    metadata = _metadata(header, _sequence_id(base_offset + records[0][0], found[0]), of_entry)
    metadata.num_messages_in_batch = count
    payload = b"".join(_messages(header, records, found))
    batch = _fitting(header, base_offset, count, metadata, payload, _CODECS[header.codec], largest_entry)
    if batch is None:
        return None
    is_whole = len(records) == count
    gaps = () if is_whole else gaps_between((record[0] for record in records), base_offset, count)
    return LogEntry(base_offset, count, batch, gaps)


def _messages(header: BatchHeader, records: Sequence[Record], found: Sequence[Told]) -> list[bytes]:
    """Return the messages of a batch: of each what stands before its payload, and the payload."""
    parts: list[bytes] = []
    base_offset, base_ms, has_times, at = header.base_offset, header.base_timestamp, not header.log_append_time, 0
    for record, each in zip(records, found, strict=True):
        offset_delta, time_delta_ms, key, value, _ = record
        if offset_delta != at:
            parts.append(_HOLE * (offset_delta - at))
        at = offset_delta + 1
        if each is NOTHING_TOLD and value is not None and (key is None or key.isascii()):  # nearly all
            time_ms = base_ms + time_delta_ms if has_times else 0
            if not 0 <= time_ms < _TIMES:
                time_ms = _event_time(header, record, each)
            parts += (batched_head((), key, len(value), time_ms, base_offset + offset_delta), value)
            continue
        sequence_id = _sequence_id(base_offset + offset_delta, each)
        if value is not None and _is_plain(key, each):
            properties = properties_of(each.user)
            head = batched_head(properties, key, len(value), _event_time(header, record, each), sequence_id)
            parts += (head, value)
        else:
            message = SingleMessageMetadata(sequence_id=sequence_id)
            _describe(message, header, record, each)
            parts.append(build_batch([(message, value or b"")]))
    parts.append(_HOLE * (header.last_offset_delta + 1 - at))
    return parts


# --- an entry for each ------------------------------------------------------------------------------------------------


def _single(header: BatchHeader, record: Record, found: Told, producer: bytes, largest_entry: int) -> LogEntry:
    """Return the entry of one record."""
    offset_delta, _, key, value, _ = record
    if value and not found.of_entry and _is_plain(key, found):
        offset, publish_time = header.base_offset + offset_delta, max(header.max_timestamp, 0)
        properties = properties_of(found.user)
        event_time = _event_time(header, record, found)
        head = single_head(producer, _sequence_id(offset, found), publish_time, properties, key, event_time)
        if len(head) + len(value) <= largest_entry and len(head) <= LARGEST_COMMAND:
            return LogEntry(offset, 1, _enveloped(header, offset, 1, (head, value), publish_time))
    return _described(header, record, found, largest_entry)


def _described(header: BatchHeader, record: Record, found: Told, largest_entry: int) -> LogEntry:
    """Return the entry of one record that is not plain, or does not fit as it is.

    One without a payload is written as a batch of one message, because the Go client takes an entry without a payload
    for a damaged one; and so is one whose properties are too large for the metadata of an entry.
    """
    offset, payload = header.base_offset + record[0], record[3] or b""
    metadata = _metadata(header, _sequence_id(offset, found), found.of_entry)
    _describe(metadata, header, record, found)
    if not payload or metadata.ByteSize() > LARGEST_COMMAND:
        message = SingleMessageMetadata(sequence_id=metadata.sequence_id)
        _describe(message, header, record, found)
        del metadata.properties[:]
        metadata.num_messages_in_batch = 1
        payload = build_batch([(message, payload)])
    batch = _fitting(header, offset, 1, metadata, payload, CompressionType.NONE, largest_entry)
    if batch is None:
        return _closed(header, offset, _metadata(header, offset, ()), record[3] or b"", Opaque.SIZE, largest_entry)
    return LogEntry(offset, 1, batch)


# --- metadata ---------------------------------------------------------------------------------------------------------


def _metadata(header: BatchHeader, sequence_id: int, of_entry: Sequence[Header]) -> MessageMetadata:
    """Return what an entry of a batch's records says of itself."""
    metadata = MessageMetadata(
        producer_name=_producer_name(header),
        sequence_id=sequence_id,
        publish_time=max(header.max_timestamp, 0),
    )
    set_entry_fields(metadata, of_entry)
    return metadata


def _producer_name(header: BatchHeader) -> str:
    return f"kafka-{header.producer_id}" if header.producer_id >= 0 else "kafka"


def _sequence_id(offset: int, found: Told) -> int:
    return offset if found.sequence_id is None else found.sequence_id


def _event_time(header: BatchHeader, record: Record, found: Told) -> int:
    """Return the time of a record's event; 0 for none, as which any time before 1970 counts."""
    if found.event_time or found.was_pulsars or header.log_append_time:
        return found.event_time
    time_ms = header.base_timestamp + record[1]
    return time_ms if 0 <= time_ms < _TIMES else max(wrapped(time_ms), 0)


def _is_plain(key: bytes | None, found: Told) -> bool:
    """Return whether a message can be written without an object (`plain_messages.py`), if it has a payload."""
    return found.ordering_key is None and (key is None or (not found.key_is_bytes and is_text(key)))


def _describe(
    message: MessageMetadata | SingleMessageMetadata, header: BatchHeader, record: Record, found: Told
) -> None:
    """Write what a message has from its record."""
    _, _, key, value, _ = record
    if key is not None:
        if not found.key_is_bytes and is_text(key):
            message.partition_key = key
        else:
            message.partition_key = base64.b64encode(key)
            message.partition_key_b64_encoded = True
    if value is None:
        message.null_value = True
    event_time = _event_time(header, record, found)
    if event_time:
        message.event_time = event_time
    if found.ordering_key is not None:
        message.ordering_key = found.ordering_key
    for name, property_value in properties_of(found.user):
        message.properties.add(key=name, value=property_value)


# --- entries as batches of the log ------------------------------------------------------------------------------------


def _fitting(
    header: BatchHeader,
    offset: int,
    count: int,
    metadata: MessageMetadata,
    payload: bytes,
    codec: CompressionType,
    largest_entry: int,
) -> bytes | None:
    """Return the entry, compressed as its records were, or by ZSTD if it is too large; None if it still is."""
    if metadata.ByteSize() > LARGEST_COMMAND:
        return None
    for each in (codec, CompressionType.ZSTD):
        body = _body(metadata, payload, each)
        if sum(map(len, body)) <= largest_entry:
            return _enveloped(header, offset, count, body, metadata.publish_time)
    return None


def _body(metadata: MessageMetadata, payload: bytes, codec: CompressionType) -> tuple[bytes, bytes]:
    """Return the body of an entry in two parts: what stands before the payload, and the payload."""
    metadata.ClearField("compression")
    metadata.ClearField("uncompressed_size")
    if codec != CompressionType.NONE:
        compressed = compress(codec, payload)
        if len(compressed) < len(payload):
            metadata.compression = codec
            metadata.uncompressed_size = len(payload)
            payload = compressed
    return build_body(metadata, b""), payload


def _enveloped(header: BatchHeader, offset: int, count: int, body: Sequence[Buffer], publish_time_ms: int) -> bytes:
    in_transaction = header.transactional
    return foreign_batch(
        Body.PULSAR,
        body,
        count,
        timestamp_ms=publish_time_ms,
        producer_id=header.producer_id if in_transaction else NO_PRODUCER_ID,
        producer_epoch=header.producer_epoch if in_transaction else NO_PRODUCER_EPOCH,
        base_offset=offset,
    )


# --- what cannot be opened --------------------------------------------------------------------------------------------


def _opaque(header: BatchHeader, view: memoryview, reason: Opaque, largest_entry: int) -> LogEntry:
    """Return the entry of one message: the bytes behind the batch's header, and the header and the reason beside."""
    metadata = _metadata(header, header.base_offset, ())
    metadata.properties.add(key=names.KAFKA_BATCH_HEADER, value=base64.b64encode(view[:HEADER_SIZE]))
    return _closed(header, header.base_offset, metadata, view[HEADER_SIZE:], reason, largest_entry)


def _closed(
    header: BatchHeader, offset: int, metadata: MessageMetadata, payload: Buffer, reason: Opaque, largest_entry: int
) -> LogEntry:
    metadata.properties.add(key=names.KAFKA_OPAQUE, value=reason.encode())
    body = build_body(metadata, payload)
    if len(body) > largest_entry:  # then no consumer can get it, and all behind it would wait for ever
        metadata.properties.add(key=names.KAFKA_SIZE, value=b"%d" % len(payload))
        body = build_body(metadata, b"")
    return LogEntry(offset, 1, _enveloped(header, offset, 1, (body,), metadata.publish_time))
