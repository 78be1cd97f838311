"""Turn record batches into Arrow columns: they are decompressed, and decoded by columns instead of record by record.

The module is pure. It owns the layout of records inside a batch (KIP-98 §Message format) and nothing else of a batch:
`exacta.protocol.kafka` parses headers and has the codecs, and which batches may be seen is decided before.

Layout of a record: length varint | attributes i8 | timestamp delta varint | offset delta varint | key length varint |
key | value length varint | value | header count varint | headers, each key length varint | key | value length varint |
value. Varints are zigzag; a length of -1 is null. `length` counts what follows it.

Theory of operation. Only finding where records begin is sequential; a run of records of equal length is found in one
step, since a length that stands again exactly one record further is the next record's. From there every field is
decoded for all records at once, with numpy. Keys and values are not copied one by one. Instead an Arrow array is laid
over the buffer itself, whose odd elements are the bytes between two values, and is asked for its even elements.
"""

from collections.abc import Collection
from typing import Any, Final, NamedTuple

import crc32c
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from exacta.client.errors import ClientError
from exacta.protocol.kafka.compression import CODECS, NotDecompressed, decompress
from exacta.protocol.kafka.records import HEADER_SIZE, BatchHeader

Positions = NDArray[np.int64]
Bytes = NDArray[np.uint8]

_CRC_START: Final = 21
# A record without key, value and headers: seven varints, or as good as.
_LEAST_RECORD: Final = 7
# Runs shorter than this are not worth a step of their own; then this many records are walked one by one.
_SHORT_RUN: Final = 64
_WALK: Final = 128
# Arrow's offsets into binary data have 32 bits; a sheet is full long before.
_MOST_BYTES: Final = (1 << 31) - 1
_FULL_BYTES: Final = 1 << 24


class CorruptRecords(ClientError):
    """A record batch does not match its checksum, or its records are not what its header says."""


class Columns(NamedTuple):
    """Decoded records, one element each; in the order of their batches. Keys, values and headers only if wanted."""

    keys: Any  # pyarrow binary
    values: Any  # pyarrow binary
    offsets: Positions
    timestamps_ms: Positions
    timestamp_types: NDArray[np.int32]  # 0: the producer's time, 1: the broker's
    headers: Any  # pyarrow list of struct of key (string) and value (binary), null without any


class Sheet:
    """Record batches that are decoded together: their records in one buffer."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._buffer: memoryview | None = None
        self._decompressed: list[bytes] = []
        self._size = 0
        self._batches: list[tuple[BatchHeader, int, int]] = []  # header, and where its records begin and end
        self.rows = 0

    def add(self, fetched: memoryview, header: BatchHeader, batch: memoryview) -> bool:
        """Add a batch, which is a part of `fetched`; return False if it must go on a sheet of its own.

        Raises `CorruptRecords` if the batch does not match its checksum, or cannot be decompressed.
        """
        plain = header.compression == "none"
        if self._batches and (self._size > _FULL_BYTES or plain != (self._buffer is not None)):
            return False
        if plain and self._batches and self._buffer is not fetched:
            return False
        if crc32c.crc32c(batch[_CRC_START:]) != header.crc:
            raise self._corrupt(header, "does not match its checksum")
        if plain:
            self._buffer = fetched
            start = pa.py_buffer(batch).address - pa.py_buffer(fetched).address + HEADER_SIZE
            end = start + len(batch) - HEADER_SIZE
            self._size = end
        else:
            records = self._decompress(header, batch[HEADER_SIZE:])
            start, end = self._size, self._size + len(records)
            self._decompressed.append(records)
            self._size = end
        if end > _MOST_BYTES:
            raise self._corrupt(
                header, f"ends at byte {end} of its buffer, behind the {_MOST_BYTES} that can be decoded"
            )
        if not 0 <= header.record_count * _LEAST_RECORD <= end - start:
            raise self._corrupt(header, f"has no room for {header.record_count} records")
        self._batches.append((header, start, end))
        self.rows += header.record_count
        return True

    def decode(self, wanted: Collection[str]) -> Columns:
        """Return the records, with those of `key`, `value` and `headers` that are wanted; raises `CorruptRecords`."""
        buffer = self._buffer if self._buffer is not None else _joined(self._decompressed)
        data = np.frombuffer(buffer, np.uint8)
        counts = np.array([header.record_count for header, _, _ in self._batches], np.int64)
        starts: Positions = np.empty(int(counts.sum()), np.int64)
        row = 0
        try:
            for header, start, end in self._batches:
                reached = _find_records(data, start, header.record_count, starts[row:])
                if reached != end:
                    raise self._corrupt(header, f"holds {end - reached} bytes more or less than its records")
                row += header.record_count
            return self._columns(buffer, data, counts, starts, wanted)
        except IndexError as error:
            raise self._corrupt(self._batches[0][0], f"or one after it holds {error}") from error

    def _columns(self, buffer: Any, data: Bytes, counts: Positions, at: Positions, wanted: Collection[str]) -> Columns:
        lengths, at = _varints(data, at)
        ends = at + lengths
        deltas_ms, at = _varints(data, at + 1)  # behind the attributes, which say nothing
        deltas, at = _varints(data, at)
        key_lengths, key_at = _lengths(data, at)
        value_lengths, value_at = _lengths(data, key_at + np.maximum(key_lengths, 0))
        behind = value_at + np.maximum(value_lengths, 0)
        if (behind >= ends).any():
            raise IndexError("a record that is longer than it says")
        headers = [header for header, _, _ in self._batches]
        bases = np.array([header.base_offset for header in headers], np.int64)
        base_ms = np.array([header.base_timestamp for header in headers], np.int64)
        timestamps = np.repeat(base_ms, counts) + deltas_ms
        broker_time = np.array([header.log_append_time for header in headers])
        if broker_time.any():
            latest_ms = np.array([header.max_timestamp for header in headers], np.int64)
            timestamps = np.where(np.repeat(broker_time, counts), np.repeat(latest_ms, counts), timestamps)
        return Columns(
            keys=_binary(buffer, key_at, key_lengths) if "key" in wanted else None,
            values=_binary(buffer, value_at, value_lengths) if "value" in wanted else None,
            offsets=np.repeat(bases, counts) + deltas,
            timestamps_ms=timestamps,
            timestamp_types=np.repeat(broker_time.astype(np.int32), counts),
            headers=_headers(buffer, data, behind, ends) if "headers" in wanted else None,
        )

    def _decompress(self, header: BatchHeader, records: memoryview) -> bytes:
        if header.codec not in CODECS.values():
            raise self._corrupt(header, "is compressed by a codec that this reader does not know")
        try:
            return decompress(header.codec, records, _MOST_BYTES)
        except NotDecompressed as error:
            raise self._corrupt(header, f"cannot be decompressed ({header.compression}): {error}") from error

    def _corrupt(self, header: BatchHeader, what: str) -> CorruptRecords:
        return CorruptRecords(f"the record batch at offset {header.base_offset} of {self._name} {what}")


def _joined(parts: list[bytes]) -> bytes:
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _find_records(data: Bytes, start: int, count: int, starts: Positions) -> int:
    """Write where each of `count` records begins, from `start` on; return where the last one ends."""
    at, row, walk, quick = start, 0, _WALK, data.data
    while row < count:
        length, body = _length(quick, at)
        stride = body - at + length
        most = min(count - row, (len(data) - at) // stride)
        look = _SHORT_RUN
        run = _run(data, at, stride, body - at, min(most, look))
        while run == look < most:
            look *= 16
            run = _run(data, at, stride, body - at, min(most, look))
        starts[row : row + run] = np.arange(at, at + run * stride, stride)
        at += run * stride
        row += run
        if run < _SHORT_RUN and row < count:
            walked = min(count - row, walk)
            walk *= 2
            starts[row : row + walked], at = _walk(quick, at, walked)
            row += walked
    return at


def _run(data: Bytes, at: int, stride: int, head: int, most: int) -> int:
    """Return how many records of `stride` bytes follow one another at `at`, which one does: at least 1."""
    if most < 2:
        return 1
    heads = np.lib.stride_tricks.as_strided(data[at:], (most, head), (stride, 1))
    same = (heads == heads[0]).all(axis=1)
    return most if same.all() else int(same.argmin())


def _walk(data: memoryview, at: int, count: int) -> tuple[list[int], int]:
    """Return where `count` records begin, found one by one, and where the last one ends."""
    found = []
    for _ in range(count):
        found.append(at)
        stride = _STRIDES[data[at]][data[at + 1]]
        if stride:
            at += stride
        else:
            length, body = _length(data, at)
            at = body + length
    return found, at


def _strides(first: int) -> list[int]:
    """Return the size of a record whose length begins with the byte `first`, by its second byte; 0 if it goes on."""
    if first < 0x80:
        return [1 + (first >> 1)] * 256
    return [2 + ((first & 0x7F | second << 7) >> 1) if second < 0x80 else 0 for second in range(256)]


_STRIDES: Final = [_strides(first) for first in range(256)]


def _length(data: memoryview, at: int) -> tuple[int, int]:
    """Return the length of the record at `at`, and where its body begins."""
    byte = data[at]
    value, shift = byte & 0x7F, 7
    while byte >= 0x80:
        at += 1
        byte = data[at]
        value |= (byte & 0x7F) << shift
        shift += 7
    if value & 1 or shift > 35:
        raise IndexError("a record of no length")
    return value >> 1, at + 1


def _varints(data: Bytes, at: Positions) -> tuple[Positions, Positions]:
    """Return the zigzag varints that stand at `at`, and where they end."""
    byte = data[at]
    more = np.flatnonzero(byte & 0x80)
    at = at + 1
    if not len(more):
        small = byte.astype(np.int64)
        return (small >> 1) ^ -(small & 1), at
    value = (byte & 0x7F).astype(np.uint64)
    shift = 7
    while len(more):
        if shift > 63:
            raise IndexError("a number of more than 64 bits")
        following = data[at[more]]
        value[more] |= (following & 0x7F).astype(np.uint64) << np.uint64(shift)
        at[more] += 1
        more = more[following >= 0x80]
        shift += 7
    return (value >> np.uint64(1)).astype(np.int64) ^ -(value & np.uint64(1)).astype(np.int64), at


def _lengths(data: Bytes, at: Positions) -> tuple[Positions, Positions]:
    """Return the lengths that stand at `at`, -1 for null, and where they end."""
    lengths, at = _varints(data, at)
    if len(lengths) and not -1 <= lengths.min() <= lengths.max() <= len(data):
        raise IndexError("a length that is none")
    return lengths, at


def _strings(found: Any) -> Any:
    """Return binary pieces as text; what is not UTF-8 as well as it can be shown."""
    try:
        return found.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([piece.decode(errors="replace") for piece in found.to_pylist()], pa.string())


def _binary(buffer: Any, at: Positions, lengths: Positions) -> Any:
    """Return the pieces of `buffer` that begin at `at`; null where the length is -1."""
    count = len(at)
    nulls = lengths < 0
    null_count = int(nulls.sum())
    if null_count == count:
        return pa.nulls(count, pa.binary())
    # Element 2i is piece i, element 2i + 1 what lies between it and the next.
    bounds = np.empty(2 * count + 1, np.int32)
    bounds[:-1:2] = at
    bounds[1::2] = at + np.maximum(lengths, 0)
    bounds[-1] = bounds[-2]
    valid = None
    if null_count:
        flags = np.ones(2 * count, np.bool_)
        flags[::2] = ~nulls
        valid = pa.py_buffer(np.packbits(flags, bitorder="little"))
    pieces = pa.Array.from_buffers(pa.binary(), 2 * count, [valid, pa.py_buffer(bounds), pa.py_buffer(buffer)])
    return pieces.take(pa.array(np.arange(0, 2 * count, 2, dtype=np.int32)))


def _headers(buffer: Any, data: Bytes, at: Positions, ends: Positions) -> Any:
    """Return the headers of the records whose header count stands at `at`; they fill the records up to their ends."""
    counts, at = _lengths(data, at)
    rows = np.flatnonzero(counts > 0)
    # The first header of every record that has one, then the second, ...
    found: list[tuple[Positions, Positions, Positions, Positions, Positions]] = []
    at = at[rows]
    while len(rows):
        key_lengths, key_at = _lengths(data, at)
        value_lengths, value_at = _lengths(data, key_at + np.maximum(key_lengths, 0))
        found.append((rows, key_at, key_lengths, value_at, value_lengths))
        at = value_at + np.maximum(value_lengths, 0)
        if (at > ends[rows]).any() or key_lengths.min() < 0:
            raise IndexError("a header that is longer than its record")
        left = counts[rows] > len(found)
        at, rows = at[left], rows[left]
    bounds = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(np.maximum(counts, 0), out=bounds[1:])
    if found:
        of, key_at, key_lengths, value_at, value_lengths = (np.concatenate(part) for part in zip(*found, strict=True))
        order = np.argsort(of, kind="stable")
        keys = _strings(_binary(buffer, key_at[order], key_lengths[order]))
        values = _binary(buffer, value_at[order], value_lengths[order])
    else:
        keys, values = pa.array([], pa.string()), pa.array([], pa.binary())
    entries = pa.StructArray.from_arrays([keys, values], ["key", "value"])
    return pa.ListArray.from_arrays(pa.array(bounds), entries, mask=pa.array(counts <= 0))
