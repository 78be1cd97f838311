"""The journal: where the engine makes its events durable, and the log in which record batches lie.

Owns the contract between the engine and whatever stores its events: the types that cross it and what each call
promises. Owns no storage (see `exacta.adapters`) and no meaning: an adapter knows neither records nor transactions.

Theory of operation. The journal is one sequence of *groups*. A group is what one `append` or `write` wrote: entries,
each an opaque event with an opaque payload. A group becomes durable whole or not at all. *Positions* are byte positions
in that sequence; they only grow, and only the boundaries between groups are positions that a caller can hold.

A group may also be *written* before it is durable (`write`): then it outlives the process, but maybe not the machine.
What becomes durable is always a prefix of the sequence, so that the next append makes it durable along with itself.

A payload is made of record batches that belong to *streams* (the engine's dense partition ids; never used a second
time). The entry's index says which offsets of which stream lie where in the payload; the journal keeps these rows and
finds batches by stream and offset, without understanding either events or batches.

Threads. Every method is called on the event-loop thread, and every callback runs there, through the
`call_soon_threadsafe`-like callable that the adapter was opened with, never from inside the call that asked for it.
Opening, `replay` and `close` may block; and `write`, as long as it takes to copy a little, or to sync it where the disk
has been quick. Nothing else may.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from exacta.ports.compaction import Compact, Rules

Fold: TypeAlias = Callable[[bytes | None, Iterator[bytes]], bytes]
"""Make a snapshot of the one before (None: there is none) and the events after it, oldest first."""


class JournalError(Exception):
    """The journal cannot be opened or read; the message is meant for the operator."""


class JournalDamaged(JournalError):
    """What is stored contradicts itself where no crash can explain it: acknowledged data is lost or altered."""


class IndexEntry(NamedTuple):
    """Say where a run of offsets of one stream lies in its entry's payload.

    `first_offset` and `last_offset` are inclusive and grow within a stream; `start` and `size` are bytes within the
    payload. One row is what `find` returns or leaves out as a whole: one record batch. `record_count` says how many
    records readers find in it, at most one for each offset; a marker holds none.
    """

    stream: int
    first_offset: int
    last_offset: int
    max_timestamp_ms: int
    start: int
    size: int
    record_count: int = 0


class Entry(NamedTuple):
    """One event and the bytes that belong to it, both opaque; the payload's buffers are written one after another.

    The buffers must stay unchanged until the append's `done`. A memoryview must be contiguous, of single bytes.
    """

    event: bytes
    payload: Sequence[bytes | bytearray | memoryview] = ()
    index: Sequence[IndexEntry] = ()  # type: ignore[assignment]  # hides tuple.index, which nobody asks an entry for


class CompactionOrder(NamedTuple):
    """Rewrite by these rules what a stream has wholly below `end_offset`."""

    stream: int
    end_offset: int
    rules: Rules


class Extent(NamedTuple):
    """A run of whole batches of one stream that `find` found; `size` is the sum of their sizes in bytes.

    `first_offsets` has that of each batch. To be read in the turn of the loop in which it was found. `place` belongs to
    the adapter.
    """

    first_offsets: Sequence[int]
    last_offset: int
    size: int
    place: object


class TimeEntry(NamedTuple):
    """The batch that `find_by_time` or `find_latest` found."""

    first_offset: int
    last_offset: int
    max_timestamp_ms: int


class Appended(NamedTuple):
    """The group is durable, and all that was written before it; the journal now ends at `position`."""

    position: int


class Conflict(NamedTuple):
    """Nothing was written: the journal ends at `position`, not where the caller believed."""

    position: int


class Failed(NamedTuple):
    """The call failed and `reason` says why, for a log line.

    After a failed append nobody knows what is stored: the journal accepts no further append until it is opened anew.
    """

    reason: str


class Cleaned(NamedTuple):
    """Space was freed: so many bytes of the disk, or 0 where there is nothing to free now.

    `may_free_more`: with a later snapshot, or a little later, there may be.
    """

    freed_bytes: int
    may_free_more: bool = False


AppendResult = Appended | Conflict | Failed
Buffer = bytes | bytearray | memoryview


class Journal(Protocol):
    """Store groups of entries durably and find batches in them; the module's docstring is the contract's first half."""

    @property
    def position(self) -> int:
        """The end of what is written: the `expected_position` of the next append or write."""

    @property
    def may_have_lost(self) -> bool:
        """Whether a group may be missing that was written, and not durable, before this opening.

        True where the journal was last opened for such writes, and the machine has stopped, or where that cannot be
        told; at every opening, until one has appended a group.
        So the first append must hold whatever is concluded from this.
        """

    @property
    def is_quick(self) -> bool:
        """Whether `write` would make a small group durable: the disk takes no longer than the event loop may wait."""

    @property
    def wants_snapshot(self) -> bool:
        """Whether a snapshot should be saved: a replay would be long by now, or `clean` could free more after one.

        False again once one is offered.
        """

    def watch(self, on_damage: Callable[[Failed], None]) -> None:
        """Call back where a look-up finds that what it goes by has been altered; to be called once, after opening.

        The look-up raises JournalDamaged. Nothing found earlier may be relied on, and nothing is appended any more; the
        next opening knows what to do.
        """

    def append(self, expected_position: int, entries: Sequence[Entry], done: Callable[[AppendResult], None]) -> int:
        """Write the entries as one group and make it durable; return the position at which the group will end.

        `done` gets `Appended` with that position once the group is durable, and `find` sees it from then on;
        `Conflict` when the journal does not end at `expected_position`; `Failed` when the write or the sync failed,
        and from then on always. At most one append may be in flight. No entries make durable what was written.
        Raises ValueError for no entries where all is durable, or an index that points outside its payload or goes
        back in a stream; nothing is written then.
        """

    def write(self, expected_position: int, entries: Sequence[Entry], *, durably: bool = False) -> AppendResult | None:
        """Write the entries as one group at once, not yet durable unless asked; `find` sees it when this returns.

        `Appended` with the position at its end, else as for `append`. None: it is too large to be written while the
        event loop waits, too much is not durable yet, nothing has been appended since the opening, or this journal was
        not opened for it; or it is to be durable, and the disk takes too long for that. `append` takes it. Not to be
        called while an append is in flight. Raises ValueError as `append` does, and for no entries.
        """

    def replay(self) -> tuple[bytes | None, Iterator[bytes]]:
        """Return the latest sound snapshot (None: there is none) and the events after it, oldest first.

        To be called and exhausted before the first append. The iterator raises JournalDamaged where what is stored is
        not what was written.
        """

    def save_snapshot(self, blob: bytes, position: int, done: Callable[[Failed | None], None] | None = None) -> None:
        """Store the state as of `position`, that of a durable journal, so that a later replay starts there.

        A snapshot that fails loses nothing: the one before stays in force, and `done` gets `Failed`.
        """

    def fold_snapshot(self, fold: Fold, done: Callable[[Failed | None], None]) -> None:
        """Store a snapshot of all that is durable now, made from the latest one and the events since it.

        `fold` must be a function that can be imported: it may be called in another process. Failures as for
        `save_snapshot`. At most one may be under way; it sets `wants_snapshot` back.
        """

    def clean(self, floors: Mapping[int, int], done: Callable[[Cleaned | Failed], None]) -> None:
        """Free space, a bounded amount of it: forget batches that nobody will ask for again, and replayed events.

        `floors` says for each stream from which offset on it is still asked for; a stream that is not in it is gone.
        It must be of a durable state. Events are forgotten only where two sound snapshots are later. Call again until
        nothing is freed. A failure loses nothing. At most one may be under way; appends and reads go on meanwhile.
        """

    def compactable(self, stream: int, end_offset: int) -> tuple[int, int]:
        """Return which offsets of the stream, from and to (exclusive), could be compacted now and have not been.

        No batch that does not lie wholly below `end_offset` counts, nor one in the segment that is written to.
        """

    def compacted_to(self, stream: int) -> int:
        """Return up to which offset (exclusive) the stream is compacted; 0: nothing of it is."""

    def compact(
        self,
        orders: Sequence[CompactionOrder],
        floors: Mapping[int, int],
        rewriter: Compact,
        done: Callable[[Failed | None], None],
    ) -> None:
        """Rewrite these streams' batches up to what is `compactable`; `find` sees what is left of them from then on.

        `floors` as for `clean`; `rewriter` must be a function that can be imported: it may be called in another
        process. A failure loses nothing. At most one may be under way, and none while `clean` is; appends and reads go
        on meanwhile.
        """

    def sealed_to(self, stream: int) -> int:
        """Return from which offset on the stream lies in the segment that is written to, or will lie there."""

    def seal(self) -> None:
        """Let the next append begin a segment, so that what is written can be compacted; nothing is: nothing to do."""

    def find(self, stream: int, offset: int, end_offset: int, max_bytes: int) -> list[Extent]:
        """Find written batches of `stream`, beginning with the first whose last offset is `offset` or later.

        Only batches that lie wholly below `end_offset` count. The extents are in order of offset and hold at most
        `max_bytes` together, but always at least one batch if there is one. Empty if there is none.
        """

    def find_by_time(self, stream: int, timestamp_ms: int, offset: int, end_offset: int) -> TimeEntry | None:
        """Find the first written batch of `stream` that has a timestamp of `timestamp_ms` or later.

        Only batches count whose last offset is `offset` or later and that lie wholly below `end_offset`.
        """

    def find_latest(self, stream: int, offset: int, end_offset: int) -> TimeEntry | None:
        """Find the written batch of `stream` with the latest timestamp, the first one if there are several.

        The same batches count as for `find_by_time`.
        """

    def count_records(self, stream: int, offset: int, end_offset: int) -> int:
        """Count the records of written batches of `stream` at offsets from `offset` on.

        Only batches that lie wholly below `end_offset` count. A batch in which `offset` lies has as many left as there
        are offsets left in it, if it has so many.
        """

    def size_bytes(self, stream: int, offset: int, end_offset: int) -> int:
        """Return how many bytes the written batches of `stream` have, of those that count for `find_by_time`."""

    def offset_after(self, stream: int, offset: int, end_offset: int, size_bytes: int) -> int:
        """Return the offset behind the first batches of `stream` that have at most `size_bytes` together.

        The same batches count as for `find_by_time`. `offset` itself if already the first one has more.
        """

    def read_cached(self, extents: Sequence[Extent]) -> list[Buffer] | None:
        """Return one buffer for each extent if no disk is needed for it; None means that `read` must be asked.

        What is read is as the disk has it, unchecked: only who knows what batches are can tell damage in them.
        """

    def read(self, extents: Sequence[Extent], done: Callable[[list[Buffer | Failed]], None]) -> None:
        """Read from wherever it lies; `done` gets for each extent, in their order, a buffer, unchecked, or `Failed`."""

    def close(self) -> None:
        """Finish what is in flight, make durable what is written, and release everything; no call is allowed then.

        The callbacks of what finished are still handed to the loop, if it has not been closed.
        """
