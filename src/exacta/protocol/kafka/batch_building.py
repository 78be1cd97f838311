"""New record batches: a producer's, another protocol's, those of compaction, and the markers that end transactions.

The layout of a batch is told in `records.py`.
"""

import struct
from collections.abc import Sequence
from typing import Final

import crc32c

from exacta.protocol.kafka.compression import LEVELS, compress
from exacta.protocol.kafka.records import (
    COMPRESSION_MASK,
    CONTROL,
    CRC_START,
    DELETE_HORIZON,
    LENGTH_OFFSET,
    MAGIC,
    PREFIX,
    TRANSACTIONAL,
    BatchHeader,
)
from exacta.protocol.kafka.schema import Buffer

_COVERED: Final = struct.Struct(">hiqqqhii")
"""The part of the header that the checksum covers."""


def data_batch(
    records: Sequence[Buffer],
    count: int,
    *,
    compression: int,
    transactional: bool,
    first_timestamp_ms: int,
    last_timestamp_ms: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
) -> bytes:
    """Build a producer's batch of `count` records, which are encoded, and compressed by codec number `compression`."""
    covered = _COVERED.pack(
        compression | (TRANSACTIONAL if transactional else 0),
        count - 1,
        first_timestamp_ms,
        last_timestamp_ms,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )
    return _sealed((covered, *records), base_offset=0, partition_leader_epoch=-1)


def compacted(
    header: BatchHeader, plain: bytes, record_count: int, max_timestamp_ms: int, delete_horizon_ms: int | None
) -> bytes:
    """Build the batch with fewer records: those of `plain`, by the codec of before.

    Offsets, producer, sequence and base timestamp stay, but for a new delete horizon: then `plain` counts its times
    from there.
    """
    attributes, base_timestamp = header.attributes, header.base_timestamp
    if delete_horizon_ms is not None:
        attributes, base_timestamp = attributes | DELETE_HORIZON, delete_horizon_ms
    return _rebuilt(
        header,
        compress(header.codec, plain, LEVELS.get(header.codec, 0)),
        record_count,
        attributes,
        base_timestamp,
        max_timestamp_ms,
    )


def emptied(header: BatchHeader) -> bytes:
    """Build the batch without records: only its header, whose timestamps are none (-1)."""
    return _rebuilt(header, b"", 0, header.attributes & ~(COMPRESSION_MASK | DELETE_HORIZON), -1, -1)


def translated(header: BatchHeader, records: Buffer, record_count: int, codec: int) -> bytes:
    """Build Kafka's batch of another protocol's: with these records, and all else as that one's header says it."""
    covered = _COVERED.pack(
        header.attributes & ~COMPRESSION_MASK | codec,
        header.last_offset_delta,
        header.base_timestamp,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        -1,
        record_count,
    )
    return _sealed(
        (covered, records), base_offset=header.base_offset, partition_leader_epoch=header.partition_leader_epoch
    )


def _rebuilt(
    header: BatchHeader, records: bytes, record_count: int, attributes: int, base_timestamp: int, max_timestamp: int
) -> bytes:
    covered = _COVERED.pack(
        attributes,
        header.last_offset_delta,
        base_timestamp,
        max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        record_count,
    )
    return _sealed(
        (covered, records),
        base_offset=header.base_offset,
        partition_leader_epoch=header.partition_leader_epoch,
        magic=header.magic,
    )


def foreign_batch(
    magic: int,
    body: Sequence[Buffer],
    count: int,
    *,
    timestamp_ms: int,
    producer_id: int,
    producer_epoch: int,
    base_offset: int = 0,
) -> bytes:
    """Build the batch of another protocol: `count` messages, whose bytes, in parts, stand behind the header.

    It is transactional if there is a producer id, which is never negative. What the bytes say of their compression is
    nothing that the header knows.
    """
    covered = _COVERED.pack(
        TRANSACTIONAL if producer_id >= 0 else 0,
        count - 1,
        timestamp_ms,
        timestamp_ms,
        producer_id,
        producer_epoch,
        -1,  # what it has of sequences stands in its bytes
        count,
    )
    return _sealed((covered, *body), base_offset=base_offset, partition_leader_epoch=0, magic=magic)


def _sealed(covered: Sequence[Buffer], *, base_offset: int, partition_leader_epoch: int, magic: int = MAGIC) -> bytes:
    """Return a batch of what its checksum covers: with what comes before."""
    crc, length = 0, CRC_START - LENGTH_OFFSET
    for part in covered:
        crc = crc32c.crc32c(part, crc)
        length += len(part)
    head = PREFIX.pack(base_offset, length, partition_leader_epoch) + struct.pack(">bI", magic, crc)
    return b"".join((head, *covered))


def empty_batch(first_offset: int, last_offset: int) -> bytes:
    """Build a batch without records at these offsets, as Kafka's log cleaner leaves them: readers go on behind it."""
    covered = _COVERED.pack(0, last_offset - first_offset, -1, -1, -1, -1, -1, 0)
    return _sealed((covered,), base_offset=first_offset, partition_leader_epoch=0)


_MARKER_HEAD: Final = struct.Struct(">hiqqqhiibbbbbhhbhib")
"""Everything that a marker's checksum covers: the batch from the attributes on, and its one record."""

_MARKER_RECORD_LENGTH: Final = 16


def control_batch(
    base_offset: int,
    producer_id: int,
    producer_epoch: int,
    *,
    commit: bool,
    coordinator_epoch: int,
    timestamp_ms: int,
    partition_leader_epoch: int = 0,
) -> bytes:
    """Build the marker that ends a transaction in one partition: a control batch of 78 bytes (KIP-98)."""
    covered = _MARKER_HEAD.pack(
        TRANSACTIONAL | CONTROL,
        0,  # last offset delta
        timestamp_ms,
        timestamp_ms,
        producer_id,
        producer_epoch,
        -1,  # markers have no sequence number
        1,  # record count
        # The record. Lengths and deltas are zigzag varints: a small n is the byte 2 * n.
        2 * _MARKER_RECORD_LENGTH,
        0,  # attributes
        0,  # timestamp delta
        0,  # offset delta
        2 * 4,  # key length
        0,  # version of the key
        1 if commit else 0,
        2 * 6,  # value length
        0,  # version of the value
        coordinator_epoch,
        0,  # headers
    )
    return _sealed((covered,), base_offset=base_offset, partition_leader_epoch=partition_leader_epoch)
