"""Entries, which are stored in the journal, and the results of look-ups."""

from collections.abc import Sequence
from typing import NamedTuple

Buffer = bytes | bytearray | memoryview


class IndexEntry(NamedTuple):
    """Say where a run of offsets of one stream lies in its entry's payload.

    `first_offset` and `last_offset` are inclusive and grow within a stream; `start` and `size` are bytes within the
    payload. A row stands for one record batch: `find` returns all of it or nothing. `record_count` is the number of
    records that readers find in the batch, at most one for each offset; a marker holds none.
    """

    stream: int
    first_offset: int
    last_offset: int
    max_timestamp_ms: int
    start: int
    size: int
    record_count: int = 0


class JournalEntry(NamedTuple):
    """Hold one event and the bytes that belong to it, both opaque.

    The payload's buffers are written one after another. They must stay unchanged until the append's `done`. A
    memoryview must be contiguous, of single bytes.
    """

    event: bytes
    payload: Sequence[Buffer] = ()
    index: Sequence[IndexEntry] = ()  # type: ignore[assignment]  # hides tuple.index, which nobody asks an entry for


JournalEntries = Sequence[JournalEntry]
"""The entries of one group, in their order."""


class Extent(NamedTuple):
    """Name a run of whole batches of one stream that `find` found.

    `first_offsets` has the first offset of each batch, and `last_offsets` its last one. `size` is the sum of their
    sizes in bytes. An extent is to be read in the turn of the loop in which it was found. `place` belongs to the
    adapter.
    """

    first_offsets: Sequence[int]
    last_offsets: Sequence[int]
    size: int
    place: object

    @property
    def last_offset(self) -> int:
        """The last offset of the last batch."""
        return self.last_offsets[-1]


class TimeEntry(NamedTuple):
    """Describe the batch that `find_by_time` or `find_latest` found."""

    first_offset: int
    last_offset: int
    max_timestamp_ms: int
