"""Log compaction (`cleanup.policy=compact`): the contract between the journal and the format of records.

The format of records implements `Compaction`, which decides what is kept of each batch. The journal gives it a stream's
batches and stores the result.

Theory of operation. A stream is compacted up to an end that is not beyond its last stable offset: no batch of a
transaction that is still open may come here. Its *dirty* batches are those that no finished compaction has been over.
They are shown once (`note`), so that the last offset of each key is known. Then all batches up to the end are rewritten
(`rewrite`), from the first of the stream on, clean ones included. Each is given exactly as it lies in the log, in order
of offset. A rewritten batch has the same offsets, and the same bytes if nothing of it was removed. A batch of a stream
that is joining (`CompactionOrder`) is checked as it lies there, and `moved` before anything else.

If the keys are too many for memory, the stream is compacted slice by slice, `slice_number` from 0 to `slice_count - 1`.
Each pass, `note` and `rewrite`, goes over what the pass before it has written, with the same rules. Only the last pass
finishes the compaction: until then the dirty batches stay dirty. What a pass has written must take effect whole, or
from the front on: if a tombstone were removed before the record that it hides, that record would be seen again. After a
crash all passes begin again, maybe with another number of slices.
"""

from typing import Final, NamedTuple, Protocol

from msgspec import Struct

Buffer = bytes | bytearray | memoryview

BYTES_PER_KEY: Final = 250
"""About the memory that a noted key takes, with room for the dictionary to grow."""
MOST_STREAMS: Final = 500
"""The most streams that are compacted together: readers change over to all at once, in some 15 microseconds each."""


class Rules(Struct, frozen=True, kw_only=True):
    """Rules by which one stream is compacted."""

    now_ms: int
    """The time of the compaction, the same one for all of its slices."""
    delete_retention_ms: int
    """Readers still find for so long tombstones, and the markers of transactions whose records are gone."""
    aborted: tuple[tuple[int, int, int], ...] = ()
    """Producer id, first offset and offset of the abort marker of each aborted transaction that readers are told of and
    that has a batch below the end. The marker may lie beyond the end. Ordered by last offset."""
    most_batch_bytes: int = 256 << 20
    """Batches that are larger than this when decompressed are kept as they are."""


class Rewritten(NamedTuple):
    """The part of one batch that is kept, at the same offsets as before."""

    batch: Buffer
    record_count: int
    """The number of records left for readers; a marker holds none."""
    max_timestamp_ms: int
    """The highest of the records left, or the marker's own; -1: nothing is left that has one."""


class Compaction(Protocol):
    """Compact one stream in one pass."""

    @property
    def unreadable(self) -> int:
        """The number of batches that `rewrite` kept because their records cannot be read; any such is worth a warning.

        No tombstone behind such a batch is removed, for the batch may hold an older record of the same key.
        """

    def check(self, batch: Buffer, first_offset: int, last_offset: int) -> None:
        """Raise ValueError if this is not a whole, unaltered batch of these offsets."""

    def moved(self, batch: Buffer, first_offset: int, append_time_ms: int) -> Buffer:
        """Return a copy of a sound batch that says that it lies at this offset.

        Its timestamps become `append_time_ms` if they are the log's; -1: they are not.
        """

    def note(self, batch: Buffer) -> None:
        """Remember the last offset of each key; every dirty batch must be noted before the first `rewrite`."""

    def rewrite(self, batch: Buffer, is_last: bool) -> Rewritten | None:
        """Return what is kept of the batch, or None if nothing is.

        Something is always kept of the last batch before the end, if only a batch without records, so that the stream
        still ends at the same offset. If all of a batch is kept, its bytes stay the same.
        """


class Compact(Protocol):
    """Make passes; implemented by a function of a module, whose name can be sent to another process."""

    def __call__(self, rules: Rules, slice_number: int = 0, slice_count: int = 1) -> Compaction:
        """Begin a pass over the keys of one slice."""
