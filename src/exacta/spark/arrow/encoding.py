"""Encode Arrow columns as records of the format v2, by columns instead of row by row.

The module is pure, and is the twin of `decoding.py`.

This module owns the writing of a record, whose layout `decoding.py` describes, and the places where the batches of a
partition are cut.

Theory of operation. All of a record except key and value takes a few bytes. These are computed for all rows at once, as
columns of a matrix of bytes; a mask says which of the bytes count. Arrow then joins them with keys and values, row by
row, into one buffer, which holds the records of several batches one after the other. Offset deltas depend on where a
batch begins, so the cuts are made before. Only a few megabytes of wide rows are encoded ahead.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from exacta.protocol.kafka.record_writing import encoded_headers
from exacta.protocol.kafka.records import HEADER_SIZE
from exacta.protocol.kafka.schema import Buffer

Header = tuple[str, bytes | None]
Numbers = NDArray[np.int64]

_NONE: Final = -1  # the length of what is null
_MOST_AHEAD_BYTES: Final = 4 * 1024 * 1024
_OFFSET_BYTES: Final = 3
"""The bytes of an offset delta while a batch has fewer than a million rows. A larger batch comes out a little larger
than asked."""
_BINARY: Final = pa.large_binary()
_NO_HEADERS: Final = pa.scalar(b"\0", _BINARY)


class _Chunk(NamedTuple):
    """Records for one batch: of how many rows, and which place in it they have."""

    records: Buffer
    rows: int
    first: int
    timestamp_delta_ms: int


class RecordColumns:
    """Rows to write to one partition, or to one after the other: `exacta.client.record_batch.Records`."""

    def __init__(
        self, keys: Any, values: Any, headers: Sequence[Sequence[Header]] | None, *, most_batch_bytes: int
    ) -> None:
        """`keys` (or None) and `values` are pyarrow binary arrays; `headers` has an entry for each row."""
        self._values = values.cast(_BINARY)
        self._keys = None if keys is None or keys.null_count == len(keys) else keys.cast(_BINARY)
        self._suffixes = _NO_HEADERS if headers is None else pa.array(map(_encoded, headers), _BINARY)
        self._value_lengths = _lengths(self._values)
        self._key_lengths = None if self._keys is None else _lengths(self._keys)
        # Of a record without its own length, offset delta and timestamp delta.
        sizes = 1 + _widths(_zigzag(self._value_lengths)) + np.maximum(self._value_lengths, 0)
        sizes += (
            1 if self._key_lengths is None else _widths(_zigzag(self._key_lengths)) + np.maximum(self._key_lengths, 0)
        )
        sizes += 1 if headers is None else _lengths(self._suffixes)
        self._sizes: Numbers = sizes
        whole = sizes + _OFFSET_BYTES + 1
        self._ends: Numbers = np.cumsum(whole + _widths(_zigzag(whole)))
        self._room = max(1, most_batch_bytes - HEADER_SIZE)
        self._encoded_rows = 0
        self._chunks: deque[_Chunk] = deque()
        self.left = len(values)

    def take(self, first: int, timestamp_delta_ms: int, most_bytes: int) -> tuple[Buffer, int]:
        """Take as many rows as come to `most_bytes`, as `Records.take`."""
        if not self._chunks and self.left:
            self._encode(first, timestamp_delta_ms, most_bytes)
        if not self._chunks:
            return b"", 0
        records, count, *place = self._chunks[0]
        if place != [first, timestamp_delta_ms]:
            return b"", 0  # another batch was begun there meanwhile; it must end before
        self._chunks.popleft()
        self.left -= count
        return records, count

    def _encode(self, first: int, timestamp_delta_ms: int, most_bytes: int) -> None:
        """Encode the next rows: those for the batch that is begun, and those for some batches behind it."""
        begin = start = self._encoded_rows
        cuts, firsts, deltas = [begin], [], []
        ends = self._ends[begin:] - (self._ends[begin - 1] if begin else 0)
        # The first batch's timestamp delta may take more than the one byte that is counted, and make lengths longer.
        wider = int(_widths(_zigzag(np.array([timestamp_delta_ms])))[0])
        fit = int(np.searchsorted(ends + wider * np.arange(1, len(ends) + 1), most_bytes, "right"))
        while True:
            if fit <= 0:
                if first:
                    return  # no room in the batch that is begun
                fit = 1
            start += fit
            cuts.append(start)
            firsts.append(first)
            deltas.append(timestamp_delta_ms)
            if start == len(self._sizes) or ends[start - begin - 1] > _MOST_AHEAD_BYTES:
                break
            first, timestamp_delta_ms = 0, 0
            fit = int(np.searchsorted(ends, ends[start - begin - 1] + self._room, "right")) - (start - begin)
        counts = np.diff(cuts)
        offset_deltas = np.arange(begin, start) + np.repeat(np.array(firsts) - cuts[:-1], counts)
        data, at = self._joined(slice(begin, start), offset_deltas, np.repeat(deltas, counts))
        for index, count in enumerate(counts.tolist()):
            records: Buffer = data[at[cuts[index] - begin] : at[cuts[index + 1] - begin]]
            if cuts[index + 1] == len(self._sizes):
                records = bytes(records)  # it may wait for more, and must not hold the whole buffer meanwhile
            self._chunks.append(_Chunk(records, count, firsts[index], deltas[index]))
        self._encoded_rows = start

    def _joined(self, rows: slice, offset_deltas: Numbers, timestamp_deltas: Numbers) -> tuple[memoryview, Numbers]:
        """Return the records of `rows` in one buffer, and where each begins and the last one ends."""
        offsets, times = _zigzag(offset_deltas), _zigzag(timestamp_deltas)
        sizes = self._sizes[rows] + _widths(offsets) + _widths(times)
        values = _zigzag(self._value_lengths[rows])
        no_attributes = np.zeros_like(sizes)
        head = [_zigzag(sizes), no_attributes, times, offsets]
        suffixes = self._suffixes if isinstance(self._suffixes, pa.Scalar) else self._suffixes[rows]
        if self._keys is None or self._key_lengths is None:
            parts = [_varints(*head, np.full_like(sizes, _zigzag(_NONE)), values)]
        else:
            parts = [_varints(*head, _zigzag(self._key_lengths[rows])), self._keys[rows], _varints(values)]
        joined = pc.binary_join_element_wise(
            *parts, self._values[rows], suffixes, pa.scalar(b"", _BINARY), null_handling="replace", null_replacement=b""
        )
        _, ends, data = joined.buffers()
        return memoryview(data), np.frombuffer(ends, np.int64)[joined.offset : joined.offset + len(joined) + 1]


def _lengths(column: Any) -> Numbers:
    lengths: Numbers = pc.binary_length(column).fill_null(_NONE).to_numpy(zero_copy_only=False).astype(np.int64)
    return lengths


def _zigzag(numbers: Any) -> Any:
    return (numbers << 1) ^ (numbers >> 63)


def _widths(numbers: Any) -> Any:
    """Return how many bytes each number takes as a varint."""
    widths = np.ones_like(numbers)
    for bits in range(7, 64, 7):
        larger = numbers >= 1 << bits
        if not larger.any():
            break
        widths += larger
    return widths


def _varints(*columns: Numbers) -> Any:
    """Return numbers as varints, those of a row one after the other, as a pyarrow array."""
    widths = [_widths(column) for column in columns]
    most = [int(width.max(initial=1)) for width in widths]
    shape = (len(columns[0]), sum(most))
    found, counts = np.empty(shape, np.uint8), np.empty(shape, bool)
    at = 0
    for column, width, bytes_of_it in zip(columns, widths, most, strict=True):
        for index in range(bytes_of_it):
            further = width > index + 1
            found[:, at] = (column >> 7 * index & 0x7F) | (further.astype(np.uint8) << 7)
            counts[:, at] = width > index
            at += 1
    ends = np.concatenate(([0], np.cumsum(sum(widths))))
    return pa.Array.from_buffers(_BINARY, shape[0], [None, pa.py_buffer(ends), pa.py_buffer(found[counts])])


def _encoded(headers: Sequence[Header]) -> bytes:
    return encoded_headers([(name.encode(), value) for name, value in headers])
