"""A follower of a storage in memory, whose groups it is delivered when the test says so."""

from collections.abc import Callable, Iterator

from exacta.adapters.memory import MemoryJournal, MemoryStorage
from exacta.adapters.memory.journal_reader import MemoryJournalReader
from exacta.ports.following import Delivered, Leader
from exacta.ports.journal import Failed, Journal


class MemoryFollower(MemoryJournalReader):
    """Implement what a replica asks of `exacta.ports.following.Follower`."""

    leader: Leader | None = None

    def __init__(self, storage: MemoryStorage, call_soon: Callable[..., object]) -> None:
        super().__init__(storage, call_soon)
        self.fail: Callable[[Failed], None] = lambda failed: None
        self._deliver: Callable[[Delivered], None] = lambda delivered: None
        self.catalog = self.tail_from = 0

    def on_failure(self, callback: Callable[[Failed], None]) -> None:
        self.fail = callback

    def on_leader(self, changed: Callable[[], None]) -> None:
        """Nobody is told: the test knows."""

    def begin(self) -> tuple[bytes | None, Iterator[bytes]]:
        at = max(self._storage.snapshots, default=0)
        groups = [group for group in self._storage.groups if at <= group.position < self._position]
        return self._storage.snapshots.get(at), (event for group in groups for event in group.events)

    def follow(self, deliver: Callable[[Delivered], None]) -> None:
        self._deliver = deliver

    def catch_up(self, most_groups: int | None = None) -> None:
        """Deliver the groups that are new: all of them, or this many."""
        new = [group for group in self._storage.groups if group.position >= self._position][:most_groups]
        for group in new:
            self._publish(group)
        if new:
            self._position = new[-1].end
            self._deliver(Delivered(self._position, [event for group in new for event in group.events]))

    def lead(self, done: Callable[[MemoryJournal], None]) -> None:
        """Take the lead at once."""
        journal = MemoryJournal(self._storage, self._call_soon, is_exclusive=False)
        self.catch_up()
        done(journal)

    def close(self) -> None:
        """There is nothing to release."""


def led(follower: MemoryFollower) -> Journal:
    """Return the journal of the follower, which has taken the lead."""
    journals: list[Journal] = []
    follower.lead(journals.append)
    [journal] = journals
    return journal
