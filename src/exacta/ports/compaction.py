"""Log compaction (`cleanup.policy=compact`), as whoever stores the log sees it: what of a stream's batches is kept.

Owns the contract only. A wire protocol's own format implements it; the journal feeds it and writes what comes out.

Theory of operation. A stream is compacted up to an end that is not beyond its last stable offset: no batch of a
transaction that is still open may come here. Its *dirty* batches, those that no finished compaction has been over, are
shown once (`note`), so that the last offset of each key is known; then all batches up to the end are rewritten
(`rewrite`), from the first of the stream on, clean ones included, each exactly as it lies in the log and in order of
offset. What comes out has the offsets, and the bytes where nothing went.

Where the keys are too many for memory, that is done slice by slice, `slice_number` from 0 to `slice_count - 1`: each
pass, `note` and `rewrite`, over what the one before it has written, with the same rules. Only the last one finishes the
compaction: until then the dirty batches stay dirty. What a pass has written must take effect whole, or from the front
on: a tombstone that goes before the record that it hides would let that be seen again. After a crash all passes begin
anew, maybe with another number of slices.
"""

from typing import Final, NamedTuple, Protocol

from msgspec import Struct

Buffer = bytes | bytearray | memoryview

BYTES_PER_KEY: Final = 250
"""About what memory takes for a key that is noted, with room for the dictionary to grow."""


MOST_STREAMS: Final = 500
"""That lie in one compacted segment: readers change over to all of them at once, in some 15 microseconds each."""


class Rules(Struct, frozen=True, kw_only=True):
    """What one stream is compacted by."""

    now_ms: int
    """The time of the compaction, the same one for all of its slices."""
    delete_retention_ms: int
    """How long readers still find that a key was deleted, and how a transaction ended whose records are gone."""
    aborted: tuple[tuple[int, int, int], ...] = ()
    """Producer id, first offset, offset of the abort marker: of each aborted transaction that readers are told of and
    that has a batch below the end, also where its marker lies beyond. Ordered by last offset."""
    most_batch_bytes: int = 256 << 20
    """Larger batches, decompressed, are kept as they are."""


class Rewritten(NamedTuple):
    """What is kept of one batch: at the same offsets as before."""

    batch: Buffer
    record_count: int
    """Records left for readers; a marker holds none."""
    max_timestamp_ms: int
    """The highest of the records left, or the marker's own; -1: nothing is left that has one."""


class Compaction(Protocol):
    """One pass over one stream."""

    @property
    def unreadable(self) -> int:
        """How many batches `rewrite` kept because their records cannot be read; nobody's, so that is worth a warning.

        No tombstone behind such a batch goes, for it may hold an older record of the same key.
        """

    def check(self, batch: Buffer, first_offset: int, last_offset: int) -> None:
        """Raise ValueError where this is not a whole, unaltered batch of these offsets."""

    def note(self, batch: Buffer) -> None:
        """Remember where the batch's keys are last; every dirty batch, before the first `rewrite`."""

    def rewrite(self, batch: Buffer, is_last: bool) -> Rewritten | None:
        """Return what is kept of the batch; None: nothing.

        Of the last one before the end, something is always kept, be it a batch without records, so that the stream
        still ends where it did. Where all of a batch is kept, so are its bytes.
        """


class Compact(Protocol):
    """What makes a pass; a function of a module, so that its name can be sent to another process."""

    def __call__(self, rules: Rules, slice_number: int = 0, slice_count: int = 1) -> Compaction:
        """Begin a pass over the keys of one slice."""
