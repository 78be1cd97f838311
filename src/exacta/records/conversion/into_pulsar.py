"""Kafka's batches as Pulsar's entries, in batches of the log, so that all code for entries takes them.

Owns the mapping of a record to a message, how records are gathered into entries, and the opaque entry for a batch that
cannot be opened. `names.py` has the properties that tell what Pulsar has no field for, and
`docs/reference/conversion.md` the table.

Theory of operation. One entry has the offsets of the whole batch, also those whose records compaction has removed: each
is a message that is marked as taken out. Most clients do not look at the mark. So the entry also has its gaps
(`LogEntry.gaps`), and its ack set tells consumers that the messages in them are acknowledged. A Key_Shared subscription
wants an entry for each record. A removed record has no entry then. Nearly all messages are plain, and are written
without an object of `protobuf`; all others are described by one.
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
from exacta.protocol.pulsar.entries import HOLE, MOST_MESSAGES, build_batch, build_body
from exacta.protocol.pulsar.frames import LARGEST_COMMAND
from exacta.protocol.pulsar.messages_pb2 import CompressionType, MessageMetadata, SingleMessageMetadata
from exacta.protocol.pulsar.plain_messages import batched_head, single_head
from exacta.records.conversion import names
from exacta.records.conversion.fields import NO_FIELDS, HeaderFields, parse_headers, set_entry_fields
from exacta.records.conversion.opening import OpaqueReason, Unopenable, header_of
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

_TIMES: Final = 1 << 63
"""Timestamps are below this, as i64. A sum of two may not be."""

_ADDED_TO_EACH: Final = 64
"""The bytes that a message in a batch has more than its record, beside what its headers become. A header that is read
takes no less, as an object."""

_ADDED_TO_EACH_SINGLE: Final = 256
"""The most bytes that an entry of one record has more than the record, with those of the object that holds it."""


def to_pulsar(
    entry: LogEntry,
    *,
    singly: bool,
    allowed_bytes: int,
    largest_entry: int,
    messages: Container[int] | None = None,
) -> list[LogEntry]:
    """Return the batch of the log as Pulsar entries; one that is Pulsar's is returned as it is.

    With `singly` each record becomes an entry of one message, or only those at the offsets `messages`, if these are
    given. Otherwise all become one entry, in which a message's index is its offset's distance from the first one. At
    most `allowed_bytes` come out of a decompression, and at most this many are added to the bytes of the records. An
    entry of more than `largest_entry` bytes is compressed by ZSTD.

    A batch that is too large all the same, or cannot be opened, becomes one message at its first offset, which says
    why. Either all records have entries of their own, or none has: with an entry for some of them, an acknowledgement
    of the first one would be taken for one of the batch. A batch without data becomes no entry. No bytes of a batch
    raise anything.
    """
    view = memoryview(entry.batch)
    header = header_of(view, Body.KAFKA)
    if header is None:
        return [entry]
    if header.control or header.record_count <= 0:
        return []
    try:
        records = _records(header, view, allowed_bytes, _ADDED_TO_EACH_SINGLE if singly else _ADDED_TO_EACH)
    except Unopenable as unopenable:
        return [_opaque_batch(header, view, unopenable.reason, largest_entry)]
    if singly and messages is not None:
        records = [record for record in records if header.base_offset + record[0] in messages]
    fields = [parse_headers(record[4]) for record in records]
    if not singly:
        together = _together(header, records, fields, largest_entry)
        return [_opaque_batch(header, view, OpaqueReason.SIZE, largest_entry) if together is None else together]
    producer = _producer_name(header).encode()
    return [
        _single(header, record, each, producer, largest_entry) for record, each in zip(records, fields, strict=True)
    ]


def _records(header: BatchHeader, view: memoryview, allowed_bytes: int, added_to_each: int) -> list[Record]:
    """Return the records of a batch. Raises `Unopenable`."""
    count = header.last_offset_delta + 1
    if not header.record_count <= count <= MOST_MESSAGES:
        raise Unopenable(OpaqueReason.COUNT)
    if count * added_to_each > allowed_bytes:
        raise Unopenable(OpaqueReason.SIZE)
    if header.codec >= len(_CODECS):
        raise Unopenable(OpaqueReason.CODEC)
    try:
        plain = kafka_codecs.decompress(header.codec, view[HEADER_SIZE:], allowed_bytes)
        most_headers = allowed_bytes // _ADDED_TO_EACH
        return read_records(plain, header.record_count, header.last_offset_delta, most_headers)
    except (kafka_codecs.TooMuch, TooManyHeaders) as error:
        raise Unopenable(OpaqueReason.SIZE) from error
    except (kafka_codecs.NotDecompressed, UnreadableRecords) as error:
        raise Unopenable(OpaqueReason.DAMAGED) from error


# --- one entry for all ------------------------------------------------------------------------------------------------


def _together(
    header: BatchHeader, records: Sequence[Record], fields: Sequence[HeaderFields], largest_entry: int
) -> LogEntry | None:
    """Return one entry of all records; None if it would be too large."""
    of_entry = fields[0].of_entry
    if any(each.of_entry != of_entry for each in fields):
        fields, of_entry = [each.with_entry_headers_as_user() for each in fields], ()
    count, base_offset = header.last_offset_delta + 1, header.base_offset
    metadata = _metadata(header, _sequence_id(base_offset + records[0][0], fields[0]), of_entry)
    metadata.num_messages_in_batch = count
    payload = b"".join(_messages(header, records, fields))
    batch = _fitting(header, base_offset, count, metadata, payload, _CODECS[header.codec], largest_entry)
    if batch is None:
        return None
    is_whole = len(records) == count
    gaps = () if is_whole else gaps_between((record[0] for record in records), base_offset, count)
    return LogEntry(base_offset, count, batch, gaps)


def _messages(header: BatchHeader, records: Sequence[Record], fields: Sequence[HeaderFields]) -> list[bytes]:
    """Return the messages of a batch in parts: for each its size and metadata, then its payload."""
    parts: list[bytes] = []
    base_offset, base_ms, has_times, at = header.base_offset, header.base_timestamp, not header.log_append_time, 0
    for record, each in zip(records, fields, strict=True):
        offset_delta, time_delta_ms, key, value, _ = record
        if offset_delta != at:
            parts.append(HOLE * (offset_delta - at))
        at = offset_delta + 1
        if each is NO_FIELDS and value is not None and (key is None or key.isascii()):  # nearly all
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
    parts.append(HOLE * (header.last_offset_delta + 1 - at))
    return parts


# --- an entry for each ------------------------------------------------------------------------------------------------


def _single(header: BatchHeader, record: Record, fields: HeaderFields, producer: bytes, largest_entry: int) -> LogEntry:
    """Return the entry of one record."""
    offset_delta, _, key, value, _ = record
    if value and not fields.of_entry and _is_plain(key, fields):
        offset, publish_time = header.base_offset + offset_delta, max(header.max_timestamp, 0)
        properties = properties_of(fields.user)
        event_time = _event_time(header, record, fields)
        head = single_head(producer, _sequence_id(offset, fields), publish_time, properties, key, event_time)
        if len(head) + len(value) <= largest_entry and len(head) <= LARGEST_COMMAND:
            return LogEntry(offset, 1, _enveloped(header, offset, 1, (head, value), publish_time))
    return _described(header, record, fields, largest_entry)


def _described(header: BatchHeader, record: Record, fields: HeaderFields, largest_entry: int) -> LogEntry:
    """Return the entry of one record that is not plain, or does not fit as it is.

    One without a payload is written as a batch of one message, because the Go client takes an entry without a payload
    for a damaged one; and so is one whose properties are too large for the metadata of an entry.
    """
    offset, payload = header.base_offset + record[0], record[3] or b""
    metadata = _metadata(header, _sequence_id(offset, fields), fields.of_entry)
    _describe(metadata, header, record, fields)
    if not payload or metadata.ByteSize() > LARGEST_COMMAND:
        message = SingleMessageMetadata(sequence_id=metadata.sequence_id)
        _describe(message, header, record, fields)
        del metadata.properties[:]
        metadata.num_messages_in_batch = 1
        payload = build_batch([(message, payload)])
    batch = _fitting(header, offset, 1, metadata, payload, CompressionType.NONE, largest_entry)
    if batch is None:
        return _opaque_entry(
            header, offset, _metadata(header, offset, ()), record[3] or b"", OpaqueReason.SIZE, largest_entry
        )
    return LogEntry(offset, 1, batch)


# --- metadata ---------------------------------------------------------------------------------------------------------


def _metadata(header: BatchHeader, sequence_id: int, of_entry: Sequence[Header]) -> MessageMetadata:
    """Return the metadata of an entry of a batch's records, but for what depends on their number."""
    metadata = MessageMetadata(
        producer_name=_producer_name(header),
        sequence_id=sequence_id,
        publish_time=max(header.max_timestamp, 0),
    )
    set_entry_fields(metadata, of_entry)
    return metadata


def _producer_name(header: BatchHeader) -> str:
    return f"kafka-{header.producer_id}" if header.producer_id >= 0 else "kafka"


def _sequence_id(offset: int, fields: HeaderFields) -> int:
    return offset if fields.sequence_id is None else fields.sequence_id


def _event_time(header: BatchHeader, record: Record, fields: HeaderFields) -> int:
    """Return the event time of a record; 0 stands for none, and for any time before 1970."""
    if fields.event_time or fields.was_pulsars or header.log_append_time:
        return fields.event_time
    time_ms = header.base_timestamp + record[1]
    return time_ms if 0 <= time_ms < _TIMES else max(wrapped(time_ms), 0)


def _is_plain(key: bytes | None, fields: HeaderFields) -> bool:
    """Return whether a message can be written without an object (`plain_messages.py`), if it has a payload."""
    return fields.ordering_key is None and (key is None or (not fields.key_is_bytes and is_text(key)))


def _describe(
    message: MessageMetadata | SingleMessageMetadata, header: BatchHeader, record: Record, fields: HeaderFields
) -> None:
    """Write the fields that a message has from its record."""
    _, _, key, value, _ = record
    if key is not None:
        if not fields.key_is_bytes and is_text(key):
            message.partition_key = key
        else:
            message.partition_key = base64.b64encode(key)
            message.partition_key_b64_encoded = True
    if value is None:
        message.null_value = True
    event_time = _event_time(header, record, fields)
    if event_time:
        message.event_time = event_time
    if fields.ordering_key is not None:
        message.ordering_key = fields.ordering_key
    for name, property_value in properties_of(fields.user):
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


def _opaque_batch(header: BatchHeader, view: memoryview, reason: OpaqueReason, largest_entry: int) -> LogEntry:
    """Return the entry of one message: the bytes behind the batch's header, and as properties header and reason."""
    metadata = _metadata(header, header.base_offset, ())
    metadata.properties.add(key=names.KAFKA_BATCH_HEADER, value=base64.b64encode(view[:HEADER_SIZE]))
    return _opaque_entry(header, header.base_offset, metadata, view[HEADER_SIZE:], reason, largest_entry)


def _opaque_entry(
    header: BatchHeader,
    offset: int,
    metadata: MessageMetadata,
    payload: Buffer,
    reason: OpaqueReason,
    largest_entry: int,
) -> LogEntry:
    metadata.properties.add(key=names.KAFKA_OPAQUE, value=reason.encode())
    body = build_body(metadata, payload)
    if len(body) > largest_entry:  # no consumer could get it, and all messages behind it would wait for ever
        metadata.properties.add(key=names.KAFKA_SIZE, value=b"%d" % len(payload))
        body = build_body(metadata, b"")
    return LogEntry(offset, 1, _enveloped(header, offset, 1, (body,), metadata.publish_time))
