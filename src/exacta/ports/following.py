"""Following a log that another broker leads, and taking its lead."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from exacta.ports.journal import Failed, Journal, JournalReader


class Delivered(NamedTuple):
    """The events of the next groups, all of them durable; the log is known up to `position` now."""

    position: int
    events: Sequence[bytes]


class Leader(NamedTuple):
    """The broker that leads the log, as far as a follower knows."""

    node_id: int
    epoch: int


class SharedReader(JournalReader, Protocol):
    """Read a shared log, and tell what the cluster is told of that."""

    @property
    def catalog(self) -> int:
        """The version of the catalog by which this broker reads objects; 0: it reads none."""

    @property
    def tail_from(self) -> int:
        """The position at which the tail begins, as last read; what lies before it is in objects."""


class LedJournal(SharedReader, Journal, Protocol):
    """The journal of a shared log, as the broker that leads has it. Closing it lets another lead at once."""

    @property
    def epoch(self) -> int:
        """The epoch in which this broker leads."""


class Follower(SharedReader, Protocol):
    """Read a shared log as it grows, and take its lead when nobody else leads.

    Threads and callbacks are as for `exacta.ports.journal`. What was delivered is durable: no change of leader takes it
    back. `position` is the end of what was delivered. `on_failure` also tells that the log can no longer be followed.
    """

    def begin(self) -> tuple[bytes | None, Iterator[bytes]]:
        """Return the latest sound snapshot (None: there is none), and the events after it, up to `position`. Blocks.

        To be called and exhausted before `follow`. The iterator raises JournalDamaged as `Journal.replay` does.
        """

    def follow(self, deliver: Callable[[Delivered], None]) -> None:
        """Deliver what follows, in order, from now on; `find` sees its batches when `deliver` is called."""

    def catch_up(self, done: Callable[[Failed | None], None]) -> None:
        """Call back once all is delivered that was durable when this was called; to be called after `follow`."""

    def lead(self, done: Callable[[LedJournal | Failed], None], must_wait: Callable[[], bool] = lambda: False) -> None:
        """Wait for the lead, however long, and take it; deliver the rest; then hand out the journal that appends.

        The lead is not taken while `must_wait` returns true: it is another broker's.

        The journal begins at `position`, sees what the follower sees, and is the follower's successor: the follower is
        not to be used any more, and closing the journal closes both. Its `replay` is not to be called.
        """

    @property
    def leader(self) -> Leader | None:
        """The broker that leads; None: nobody does, or nobody knows."""

    def on_leader(self, changed: Callable[[], None]) -> None:
        """Call back when `leader` has changed. To be called once."""
