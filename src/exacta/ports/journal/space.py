"""The journal's space: cleaning frees what nobody asks for any more, compaction what later records replace."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from exacta.ports.compaction import Compact, Rules
from exacta.ports.journal.results import Cleaned, Failed


class Joining(NamedTuple):
    """A stream that becomes a part of another one by its compaction: number 0 of it is the other's `first_offset`."""

    stream: int
    first_offset: int
    append_time_ms: int
    """The time of batches whose timestamps are the log's; -1: there are none."""
    size_bytes: int
    """The bytes of its batches, deleted ones included."""


class CompactionOrder(NamedTuple):
    """Order that a stream's batches which lie wholly below `end_offset` be compacted by these rules.

    The streams that are `joining`, in order of offset, lie wholly below `end_offset`, too. All of their batches are
    `compactable`, and the stream itself has none where they lie. They are compacted with it, in its order. What is left
    of them is its own from then on, and says so. They themselves stay as they are, for as long as floors name them.
    """

    stream: int
    end_offset: int
    rules: Rules
    joining: Sequence[Joining] = ()


class Room(NamedTuple):
    """The room that is left on a disk that is not far from full."""

    append_bytes: int
    """The bytes of batches that may be written."""
    is_used_up: bool
    """True if only what frees space, or ends something, should be written."""
    is_low: bool = True
    """True until there is clearly more room: batches should not begin again where they were refused."""


class JournalSpace(Protocol):
    """Free storage, and compact streams.

    What is written last is not *sealed* yet. Only sealed batches can be compacted, and only sealed storage be freed.
    """

    def clean(self, floors: Mapping[int, int], done: Callable[[Cleaned | Failed], None]) -> None:
        """Free a bounded amount of storage: forget batches that nobody will ask for again, and replayed events.

        `floors` says for each stream from which offset on it is still asked for; a stream that is not in it is gone.
        The floors must be those of a durable state. Events are forgotten only where two sound snapshots are later. Call
        again until nothing is freed. A failure loses nothing. At most one call may be under way; appends and reads go
        on meanwhile.
        """

    @property
    def room(self) -> Room | None:
        """Return the room as it was after the last append, or when it was last measured; None: there is plenty."""

    @property
    def watches_room(self) -> bool:
        """Return whether `room` may ever be anything but None."""

    def measure_room(self, done: Callable[[], None]) -> None:
        """Look how much room there is, and call back."""

    def seal(self) -> None:
        """Let the next append seal what is written, so that it can be compacted; nothing written: nothing to do."""

    def sealed_to(self, stream: int) -> int:
        """Return the first offset of the stream that is not sealed, or will not be when it is written."""

    def compactable(self, stream: int, end_offset: int) -> tuple[int, int]:
        """Return which offsets of the stream, from and to (exclusive), could be compacted now and have not been.

        Only batches count that are sealed and lie wholly below `end_offset`.
        """

    def compact(
        self,
        orders: Sequence[CompactionOrder],
        floors: Mapping[int, int],
        rewriter: Compact,
        done: Callable[[Failed | None], None],
    ) -> None:
        """Compact these streams as far as they are `compactable`; `find` sees what is left of them from then on.

        `floors` are as for `clean`. `rewriter` must be a function that can be imported: it may be called in another
        process. A failure loses nothing. At most one call may be under way, and none while `clean` is; appends and
        reads go on meanwhile.
        """
