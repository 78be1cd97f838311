"""Rewriting a batch with some of its records, for the compaction of a log.

Owns which bytes of the records change, which are those of their timestamp deltas and lengths, and only where the base
timestamp becomes a delete horizon (KIP-534): then the deltas count from there, so that each record's time stays. All
else is copied as it lies, in runs. The layout of a record is told in `record_keys.py`.
"""

from collections.abc import Sequence

from exacta.protocol.kafka.batch_building import compacted
from exacta.protocol.kafka.record_keys import RecordKeys
from exacta.protocol.kafka.record_writing import VARINTS, wrapped
from exacta.protocol.kafka.records import BatchHeader


def with_records(
    header: BatchHeader, plain: bytes, found: RecordKeys, kept: Sequence[int], delete_horizon_ms: int | None
) -> tuple[bytes, int]:
    """Build the batch of the records `kept`, at least one; return it and the highest of their timestamps.

    `delete_horizon_ms` is a new one, and otherwise None.
    """
    times_ms = [wrapped(header.base_timestamp + _timestamp_delta(plain, found.starts[index])) for index in kept]
    # With LogAppendTime all records are of the batch's time, whatever they say of themselves.
    max_timestamp_ms = header.max_timestamp if header.log_append_time else max(times_ms)
    if delete_horizon_ms is None:
        records = b"".join(_runs(plain, found.starts, kept))
    else:
        records = b"".join(
            _retimed(plain, found.starts[index], found.starts[index + 1], wrapped(time_ms - delete_horizon_ms))
            for index, time_ms in zip(kept, times_ms, strict=True)
        )
    return compacted(header, records, len(kept), max_timestamp_ms, delete_horizon_ms), max_timestamp_ms


def _runs(plain: bytes, starts: Sequence[int], kept: Sequence[int]) -> list[bytes]:
    """Cut out the records; those that follow one another in one piece."""
    runs: list[bytes] = []
    first = end = kept[0]
    for index in kept:
        if index != end:
            runs.append(plain[starts[first] : starts[end]])
            first = index
        end = index + 1
    runs.append(plain[starts[first] : starts[end]])
    return runs


def _retimed(plain: bytes, start: int, end: int, timestamp_delta: int) -> bytes:
    """Return one record with another timestamp delta, and the length that it has with it."""
    at = _behind_varint(plain, start)
    attributes = plain[at : at + 1]
    body = attributes + VARINTS[timestamp_delta] + plain[_behind_varint(plain, at + 1) : end]
    return VARINTS[len(body)] + body


def _timestamp_delta(plain: bytes, start: int) -> int:
    at = start
    while plain[at] > 0x7F:  # its length
        at += 1
    at += 2
    byte = plain[at]
    number, shift = byte & 0x7F, 7
    while byte > 0x7F:
        at += 1
        byte = plain[at]
        number |= (byte & 0x7F) << shift
        shift += 7
    return number >> 1 ^ -(number & 1)


def _behind_varint(plain: bytes, at: int) -> int:
    while plain[at] > 0x7F:
        at += 1
    return at + 1
