"""Record batches as far as the header, which has 61 bytes. Single records are never looked into.

Owns reading and checking a batch's header, giving a batch its offset without touching its records, taking them out of
it, and putting others in as a whole for a topic's `compression.type`. New batches are made in `batch_building.py`, the
codecs are in `compression.py`.

Every batch in a log has this header. Its magic byte says how the records behind it are encoded: 2 is Kafka's format v2.
Only that comes from Kafka's clients; what a log may hold is `LOG_MAGICS`.

Layout of a batch (all big-endian); the checksum covers everything from the attributes on, so that a broker can set the
first two groups of fields without computing it again:

    base_offset i64 | batch_length i32 | partition_leader_epoch i32 | magic i8 | crc u32 |
    attributes i16 | last_offset_delta i32 | base_timestamp i64 | max_timestamp i64 |
    producer_id i64 | producer_epoch i16 | base_sequence i32 | record_count i32 | records

`batch_length` counts from `partition_leader_epoch` on. Attributes: bits 0-2 compression, 3 timestamp type,
4 transactional, 5 control (KIP-98), 6 delete horizon: the base timestamp is one (KIP-534).
"""

import struct
from collections.abc import Iterator, Sequence, Set
from typing import Final

import crc32c
from msgspec import Struct

from exacta.protocol.kafka.compression import NotDecompressed, TooMuch, compress, decompress
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.primitives import DecodeError
from exacta.protocol.kafka.schema import Buffer

HEADER_SIZE: Final = 61
MAGIC: Final = 2
"""Kafka's record format v2, the only one that a producer may send."""

LOG_MAGICS: Final = frozenset({MAGIC, 0x50})
"""The encodings of the batches in a log: the values of `exacta.core.ids.Body`."""

COMPRESSIONS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
"""Compression codecs by their number in the attributes."""

_KAFKA_MAGICS: Final = frozenset({MAGIC})
"""The bytes that a producer sends and a consumer gets use this magic."""

_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
PREFIX: Final = struct.Struct(">qii")
"""Base offset, batch length, partition leader epoch."""

LENGTH_OFFSET: Final = 12
"""Bytes that precede what `batch_length` counts."""

_LENGTH: Final = struct.Struct(">i")
MAGIC_OFFSET: Final = 16
_SMALLEST_LENGTH: Final = 14
"""The length of an empty message set of before Kafka 0.11."""

CRC_START: Final = 21
COMPRESSION_MASK: Final = 0x07
_LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
DELETE_HORIZON: Final = 0x40
WRITTEN_BY_BROKERS: Final = _LOG_APPEND_TIME | DELETE_HORIZON
"""The attributes that a producer's batch has only by mistake: readers and compaction would believe them."""
_SEQUENCES: Final = 1 << 31
"""Sequence numbers wrap to 0 after 2**31 - 1."""


class CorruptBatch(DecodeError):
    """A record batch that must not be stored; `error_code` says why in the protocol's terms."""

    def __init__(self, message: str, error_code: ErrorCode = ErrorCode.CORRUPT_MESSAGE) -> None:
        super().__init__(message)
        self.error_code = error_code


class BatchHeader(Struct, frozen=True, gc=False):
    """The header of one record batch."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """Size of the whole batch in bytes."""
        return LENGTH_OFFSET + self.batch_length

    @property
    def last_offset(self) -> int:
        """Offset of the last record."""
        return self.base_offset + self.last_offset_delta

    @property
    def last_sequence(self) -> int:
        """Sequence number of the last record; -1 without a sequence."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) % _SEQUENCES

    @property
    def codec(self) -> int:
        """Number of the compression codec."""
        return self.attributes & COMPRESSION_MASK

    @property
    def compression(self) -> str:
        """The name of the compression codec; "unknown" for a number that has none."""
        return COMPRESSIONS[self.codec] if self.codec < len(COMPRESSIONS) else "unknown"

    @property
    def log_append_time(self) -> bool:
        """True if timestamps are the broker's, not the producer's."""
        return bool(self.attributes & _LOG_APPEND_TIME)

    @property
    def transactional(self) -> bool:
        """True if the batch belongs to a transaction."""
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def control(self) -> bool:
        """True if the batch holds a control record, such as the marker that ends a transaction."""
        return bool(self.attributes & CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        """The time from which its tombstones, or its marker, may go; None: compaction has not said so yet (KIP-534)."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None


def parse_batch_header(buffer: Buffer, start: int = 0, magics: Set[int] = LOG_MAGICS) -> BatchHeader:
    """Read the header of the batch that starts at `start`, whose magic is one of `magics`.

    Checks what later arithmetic relies on, the length and the magic number, and nothing else. Raises `CorruptBatch`.
    """
    try:
        header = BatchHeader(*_HEADER.unpack_from(buffer, start))
    except struct.error as error:
        raise CorruptBatch(f"record batch of {len(buffer) - start} bytes; its header has {HEADER_SIZE}") from error
    if header.magic not in magics:
        # Magic 0 and 1 are message sets of before Kafka 0.11; their layout differs from byte 16 on.
        code = ErrorCode.INVALID_RECORD if header.magic in (0, 1) else ErrorCode.CORRUPT_MESSAGE
        raise CorruptBatch(f"record batch of magic {header.magic}; {_served(magics)}", code)
    if header.batch_length < HEADER_SIZE - LENGTH_OFFSET:
        raise CorruptBatch(f"record batch says that its length is {header.batch_length}")
    return header


def _served(magics: Set[int]) -> str:
    return f"only {' and '.join(map(str, sorted(magics)))} is served"


def validate_batch(records: Buffer) -> BatchHeader:
    """Check what a producer sent for one partition: exactly one batch, whole and consistent; return its header.

    The rules are those of Apache Kafka for Produce v3 and above, but the records themselves are not read. The beginning
    of another batch behind it is nothing. Raises `CorruptBatch` with CORRUPT_MESSAGE, INVALID_RECORD or
    UNSUPPORTED_COMPRESSION_TYPE.
    """
    size = _whole_batch_size(records, 0)
    if size is None:
        raise CorruptBatch(f"no whole record batch in {len(records)} bytes", ErrorCode.INVALID_RECORD)
    header = parse_batch_header(records, magics=_KAFKA_MAGICS)
    if _whole_batch_size(records, size) is not None:
        raise CorruptBatch("more than one record batch for a partition", ErrorCode.INVALID_RECORD)
    if crc32c.crc32c(memoryview(records)[CRC_START:size]) != header.crc:
        raise CorruptBatch("record batch fails its checksum")
    fault = _fault(header)
    if fault is not None:
        raise CorruptBatch(fault, ErrorCode.INVALID_RECORD)
    if header.attributes & COMPRESSION_MASK >= len(COMPRESSIONS):
        raise CorruptBatch("unknown compression codec", ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    return header


def _whole_batch_size(records: Buffer, start: int) -> int | None:
    """Return the size of the batch that starts there, or None if not all of it is there; raises `CorruptBatch`."""
    there = len(records) - start
    if there < LENGTH_OFFSET:
        return None
    (length,) = _LENGTH.unpack_from(records, start + LENGTH_OFFSET - _LENGTH.size)
    if length < _SMALLEST_LENGTH:
        raise CorruptBatch(f"record batch says that its length is {length}")
    if there <= MAGIC_OFFSET:
        return None
    if not 0 <= records[start + MAGIC_OFFSET] <= MAGIC:
        raise CorruptBatch(f"record batch of magic {records[start + MAGIC_OFFSET]}; only {MAGIC} is served")
    size: int = LENGTH_OFFSET + length
    return size if size <= there else None


def _fault(header: BatchHeader) -> str | None:
    """Return what is wrong with an intact header of a producer's batch."""
    if header.control:
        return "control batches are written by brokers only"
    if header.record_count <= 0:
        return f"record batch of {header.record_count} records"
    if header.record_count != header.last_offset_delta + 1:
        return f"record batch of {header.record_count} records ends at delta {header.last_offset_delta}"
    if header.producer_id >= 0 and (header.producer_epoch < 0 or header.base_sequence < 0):
        return f"producer id {header.producer_id} without an epoch or a sequence number"
    if header.transactional and header.producer_id < 0:
        return "transactional record batch without a producer id"
    return None


def assign_offset(records: Buffer, base_offset: int, partition_leader_epoch: int = 0) -> list[Buffer]:
    """Return the batch at `base_offset`, as a scatter list in which the records are views of `records`."""
    view = memoryview(records)
    length = len(view) - LENGTH_OFFSET
    return [PREFIX.pack(base_offset, length, partition_leader_epoch), view[PREFIX.size :]]


def say_leader_epoch(batches: bytearray, at: int, partition_leader_epoch: int) -> None:
    """Let the batch that begins there say that it was written under this epoch; no checksum covers that."""
    base_offset, length, _ = PREFIX.unpack_from(batches, at)
    PREFIX.pack_into(batches, at, base_offset, length, partition_leader_epoch)


_AFTER_CRC: Final = struct.Struct(">hiqq")
"""Attributes, last offset delta, base timestamp, maximum timestamp."""


def with_max_timestamp(records: Buffer, max_timestamp_ms: int, *, log_append_time: bool) -> bytes:
    """Return a copy of a producer's batch that says that this is its highest timestamp, and whose clock it is of.

    What it says of its first record's timestamp stays: readers ignore it where the time is the broker's. It is no
    delete horizon, which only compaction gives.
    """
    batch = bytearray(records)
    attributes, delta, base_timestamp, _ = _AFTER_CRC.unpack_from(batch, CRC_START)
    attributes &= ~WRITTEN_BY_BROKERS
    if log_append_time:
        attributes |= _LOG_APPEND_TIME
    _AFTER_CRC.pack_into(batch, CRC_START, attributes, delta, base_timestamp, max_timestamp_ms)
    struct.pack_into(">I", batch, CRC_START - 4, crc32c.crc32c(memoryview(batch)[CRC_START:]))
    return bytes(batch)


def move_batches(batches: memoryview, first_offsets: Sequence[int], append_time_ms: int) -> None:
    """Let sound batches, which follow one another, say that they are at these offsets, in place.

    Those whose timestamps are the broker's say `append_time_ms` from then on; -1: there are none.
    """
    at = 0
    for first_offset in first_offsets:
        if at == len(batches):
            return
        _, length, epoch = PREFIX.unpack_from(batches, at)
        PREFIX.pack_into(batches, at, first_offset, length, epoch)
        end = at + LENGTH_OFFSET + length
        if append_time_ms >= 0:
            attributes, delta, base_timestamp, _ = _AFTER_CRC.unpack_from(batches, at + CRC_START)
            if attributes & _LOG_APPEND_TIME:
                _AFTER_CRC.pack_into(batches, at + CRC_START, attributes, delta, base_timestamp, append_time_ms)
                struct.pack_into(">I", batches, at + CRC_START - 4, crc32c.crc32c(batches[at + CRC_START : end]))
        at = end


def opened(records: Buffer, header: BatchHeader, most_bytes: int) -> bytes:
    """Return the batch's records, decompressed.

    Raises `CorruptBatch` with INVALID_RECORD where they cannot be decompressed. Where they are more than `most_bytes`
    then, it has MESSAGE_TOO_LARGE, upon which Java's producer sends smaller batches.
    """
    try:
        return decompress(header.codec, memoryview(records)[HEADER_SIZE:], most_bytes)
    except NotDecompressed as error:
        code = ErrorCode.MESSAGE_TOO_LARGE if isinstance(error, TooMuch) else ErrorCode.INVALID_RECORD
        raise CorruptBatch(f"the records cannot be decompressed: {error}", code) from error


def recompressed(records: Buffer, plain: Buffer, codec: int, level: int) -> bytes:
    """Return a copy of the batch whose records, decompressed `plain`, are compressed by another codec."""
    batch = bytearray(memoryview(records)[:HEADER_SIZE])
    batch += compress(codec, plain, level)
    _LENGTH.pack_into(batch, LENGTH_OFFSET - _LENGTH.size, len(batch) - LENGTH_OFFSET)
    (attributes,) = struct.unpack_from(">h", batch, CRC_START)
    struct.pack_into(">h", batch, CRC_START, attributes & ~COMPRESSION_MASK | codec)
    struct.pack_into(">I", batch, CRC_START - 4, crc32c.crc32c(memoryview(batch)[CRC_START:]))
    return bytes(batch)


def iter_batches(buffer: Buffer) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Walk over batches that follow one another, as a consumer gets them, with their bytes.

    An incomplete last one ends the walk. Raises `CorruptBatch` where a header is no header, or the records are not
    Kafka's.
    """
    view = memoryview(buffer)
    position = 0
    while len(view) - position >= HEADER_SIZE:
        header = parse_batch_header(view, position, _KAFKA_MAGICS)
        end = position + header.size
        if end > len(view):
            return
        yield header, view[position:end]
        position = end


def next_offset(records: Buffer, otherwise: int) -> int:
    """Return the offset after the last whole batch of `records`, or `otherwise` where there is none."""
    for header, _ in iter_batches(records):
        otherwise = header.last_offset + 1
    return otherwise


_UNTIL_CRC: Final = struct.Struct(">qiibI")
"""The part of the header that the checksum does not cover, and the checksum."""


def sound_batches(
    buffer: Buffer,
    first_offsets: Sequence[int],
    partition_leader_epoch: int = 0,
    magics: Set[int] = LOG_MAGICS,
) -> tuple[int, str]:
    """Return the size of the sound batches that begin the buffer, and what is wrong with the next one.

    The batches follow each other at these offsets, and the magic of each is one of `magics`. The fault is "" if all of
    them are sound. Every bit of them counts, also those that the checksum does not cover. What comes behind them is not
    looked at.
    """
    view = memoryview(buffer)
    there, at = len(view), 0
    unpack, checksum = _UNTIL_CRC.unpack_from, crc32c.crc32c
    for first_offset in first_offsets:
        if there - at < HEADER_SIZE:
            return at, f"record batch of {there - at} bytes; its header has {HEADER_SIZE}"
        base_offset, length, epoch, magic, crc = unpack(view, at)
        end = at + LENGTH_OFFSET + length
        if not HEADER_SIZE <= end - at <= there - at:
            return at, f"record batch says that its length is {length}, where there are {there - at} bytes"
        if base_offset != first_offset or epoch != partition_leader_epoch or magic not in magics:
            return at, f"record batch says that it is one of magic {magic} at offset {base_offset}, epoch {epoch}"
        if checksum(view[at + CRC_START : end]) != crc:
            return at, "record batch fails its checksum"
        at = end
    return at, ""
