"""A follower of a storage in memory, whose groups it is delivered when the test says so."""

from collections.abc import Callable, Iterator
from typing import Any

from exacta.adapters.memory import MemoryJournal, MemoryStorage
from exacta.adapters.memory.journal_reader import MemoryJournalReader
from exacta.engine.engine import Engine, EngineFailed
from exacta.engine.replica import Replica
from exacta.ports.following import Delivered, Leader
from exacta.ports.journal import Failed, Journal
from exacta.ports.log import FetchPartition, FetchRequest, FetchResult, Log
from exacta.server.assembly import assemble_engine
from tests.engine.rig import Rig


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

    def catch_up(self, done: Callable[[Failed | None], None]) -> None:
        self.deliver_new()
        done(None)

    def deliver_new(self, most_groups: int | None = None) -> None:
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
        self.deliver_new()
        done(journal)

    def close(self) -> None:
        """There is nothing to release."""


def led(follower: MemoryFollower) -> Journal:
    """Return the journal of the follower, which has taken the lead."""
    journals: list[Journal] = []
    follower.lead(journals.append)
    [journal] = journals
    return journal


EVERYTHING = 1 << 30


def replica_of(rig: Rig, failures: list[EngineFailed] | None = None) -> tuple[MemoryFollower, Replica]:
    follower = MemoryFollower(rig.storage, rig.loop.call_soon)
    replica = Replica(
        follower,  # type: ignore[arg-type]  # its `lead` does not wait
        rig.format,
        scheduler=rig.loop,
        clock=lambda: rig.loop.now_ms,
        limits=rig.limits,
        on_failure=(failures if failures is not None else []).append,
    )
    return follower, replica


class Followed(Rig):
    """A leader, and a broker that follows it: `settle` also delivers what is new."""

    def __init__(self) -> None:
        super().__init__(is_exclusive=False)
        self.failures_of_replica: list[EngineFailed] = []
        self.follower, self.replica = replica_of(self, self.failures_of_replica)

    def follow(self) -> None:
        self.loop.settle()
        self.follower.deliver_new()
        self.loop.settle()

    def take_over(self) -> Engine:
        """Let the follower lead, and its leader be gone; return the engine that goes on, which `engine` is now."""
        self.follow()
        self.engine.abandon()
        journal = self.journal = led(self.follower)
        self.engine = assemble_engine(
            journal,
            self.loop,
            records=self.format,
            clock=lambda: self.loop.now_ms,
            limits=self.limits,
            on_failure=self.failures.append,
            recovered=self.replica.hand_over(journal),
            node_id=1,
        )
        self.loop.settle()
        return self.engine


def fetched(log: Log, partitions: list[tuple[str, int]], offset: int = 0, **options: Any) -> list[FetchResult]:
    found: list[FetchResult] = []
    wanted = [FetchPartition(topic, index, offset, EVERYTHING) for topic, index in partitions]
    options = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": EVERYTHING, "read_committed": True} | options
    log.fetch(FetchRequest(wanted, **options), found.extend)
    return found
