"""The database and the object store that the brokers of a world share, and the ways between.

The fault model, beyond what `exacta.adapters.memory.database` says of the database itself:
- each broker has a wire of its own to the database: slow, or cut in one direction or in both, for up to a minute, or it
  loses a message. What is sent into a cut arrives when it is mended. A cut of some seconds ends the broker's sessions;
- each broker has a way of its own to the object store: it may be cut, and a call fails before or after it was done;
- a broker that is killed leaves what it has sent on its way. Its sessions end at once, or, if its machine is gone, when
  the database takes them for lost.

Owns no broker: a `SharedStorage` hands a process what it needs, and is told when the process has ended.
"""

import random
from collections.abc import Callable

from exacta.adapters.memory import DatabaseWire, MemoryDatabase, MemoryLedger, MemoryObjects, StoreFault
from simulation.loop import SimulatedLoop
from simulation.process import Process
from simulation.trace import Trace

USUAL_SECONDS = (0.0001, 0.002)
"""The time that a message takes, one way, and a commit on disk and standby."""


class Reach:
    """The ways of one broker to database and object store. They outlive its processes."""

    def __init__(self, loop: SimulatedLoop, store: MemoryObjects, chance: random.Random) -> None:
        self.wire = DatabaseWire(loop)
        self.ledger: MemoryLedger | None = None
        self.store = MemoryObjects(store)
        self.store.fault = self._fault
        self.store_is_cut = False
        self.failing_share = 0.0
        """The share of calls to the object store that fail."""
        self.slow_seconds = 0.0
        """The time that a message takes at most, beyond what is usual."""
        self._chance = chance
        self.wire.requests.seconds = self.wire.replies.seconds = self._seconds

    def _seconds(self) -> float:
        seconds = self._chance.uniform(*USUAL_SECONDS)
        return seconds + self._chance.uniform(0.0, self.slow_seconds) if self.slow_seconds else seconds

    def _fault(self, call: str, key: str) -> StoreFault | None:
        if self.store_is_cut:
            return StoreFault.REFUSED
        if self.failing_share and self._chance.random() < self.failing_share:
            return self._chance.choice(list(StoreFault))
        return None

    def mend(self) -> None:
        """Let all be well between this broker and what it shares with the others."""
        self.wire.mend()
        self.store_is_cut = False
        self.failing_share = self.slow_seconds = 0.0


class SharedStorage:
    """Database and object store of one world."""

    def __init__(
        self,
        loop: SimulatedLoop,
        trace: Trace,
        chance: random.Random,
        now_ms: Callable[[], int],
        node_ids: range,
    ) -> None:
        self.database = MemoryDatabase(loop, now_ms)
        self.store = MemoryObjects()
        self.reaches = {node_id: Reach(loop, self.store, chance) for node_id in node_ids}
        self._loop = loop
        self._trace = trace
        self._chance = chance
        self.database.primary.commit_seconds = lambda: chance.uniform(*USUAL_SECONDS)

    def open(self, node_id: int, process: Process) -> tuple[MemoryLedger, MemoryObjects]:
        """Return what a process of this broker opens its log with."""
        reach = self.reaches[node_id]
        reach.ledger = MemoryLedger(self.database, process, reach.wire)
        return reach.ledger, reach.store

    def ended(self, node_id: int) -> None:
        """Hear that the process has ended: its kernel closes its connections."""
        reach = self.reaches[node_id]
        if reach.ledger is not None:
            reach.ledger.close()
            reach.ledger = None

    def durable_position(self) -> int:
        """Return the position up to which no failover can take anything of the log away."""
        return self.database.primary.on_standby(received=0, lost=0).end

    # --- faults -------------------------------------------------------------------------------------------------------

    def cut(self, node_id: int, *, requests: bool, replies: bool, store: bool) -> None:
        """Cut a broker off, from its database by direction, and from its object store."""
        self._trace.fault("cut off", node_id, f"requests={requests} replies={replies} store={store}")
        reach = self.reaches[node_id]
        if requests or replies:
            reach.wire.cut(requests=requests, replies=replies)
        reach.store_is_cut = store

    def mend(self, node_id: int) -> None:
        """Mend what was cut or slow for this broker."""
        self._trace.note("mended", node_id)
        self.reaches[node_id].mend()

    def slow(self, node_id: int, seconds: float) -> None:
        """Let the messages of a broker take up to so long."""
        self._trace.fault("slow wire", node_id, seconds)
        self.reaches[node_id].slow_seconds = seconds

    def lose_messages(self, node_id: int, *, requests: int = 0, replies: int = 0) -> None:
        """Let the next messages of a broker be lost."""
        self._trace.fault("messages lost", node_id, requests, replies)
        wire = self.reaches[node_id].wire
        wire.requests.to_lose += requests
        wire.replies.to_lose += replies

    def fail_store(self, node_id: int, share: float) -> None:
        """Let this share of a broker's calls to the object store fail."""
        self._trace.fault("store fails", node_id, share)
        self.reaches[node_id].failing_share = share

    def restart_database(self, seconds: float) -> None:
        """Stop the database at once, and start it again after this long; of what is in flight the disk keeps a part."""
        primary = self.database.primary
        kept = self._chance.randint(0, len(primary.in_flight()))
        self._trace.fault("database restarts", seconds, kept)
        primary.stop(kept=kept)
        self._loop.call_later(seconds, primary.start)

    def fail_over(self, seconds: float, *, lost: int = 0, old_lives_seconds: float = 0.0) -> None:
        """Let the standby take over, which serves after this long; `lost` acknowledged commits are missing there.

        The old primary may live on for a while for those who are connected to it.
        """
        received = 0 if lost else self._chance.randint(0, len(self.database.primary.unacknowledged()))
        self._trace.fault("failover", seconds, f"received={received} lost={lost} old lives={old_lives_seconds}")
        old = self.database.fail_over(received=received, lost=lost, old_lives=old_lives_seconds > 0)
        self._loop.call_later(old_lives_seconds, old.stop)
        new = self.database.primary
        new.is_up = False
        self._loop.call_later(seconds, new.start)

    def keep_standby_away(self, seconds: float) -> None:
        """Let nothing be committed for this long; by chance, all that waits is cancelled meanwhile, hence visible.

        In the end the standby answers again, or takes over, without what it has not received.
        """
        primary = self.database.primary
        primary.standby_is_away = True
        cancelled_at = self._chance.choice([None, self._chance.uniform(0.0, seconds)])
        takes_over = self._chance.random() < 0.5
        self._trace.fault("standby away", seconds, cancelled_at, takes_over)
        if cancelled_at is not None:
            self._loop.call_later(cancelled_at, primary.cancel_waits)

        def end() -> None:
            if primary is self.database.primary and takes_over:
                self.fail_over(0.05)
            elif primary is self.database.primary:
                primary.bring_standby_back()

        self._loop.call_later(seconds, end)

    def alter_object(self) -> str | None:
        """Alter a byte of some object; return its key."""
        return self._spoil("object altered", lambda key: self.store.alter(key, self._place(key)))

    def lose_object(self) -> str | None:
        """Lose some object; return its key."""
        return self._spoil("object lost", self.store.lose)

    def _place(self, key: str) -> int:
        return self._chance.randrange(len(self.store.objects[key]))

    def _spoil(self, kind: str, spoil: Callable[[str], None]) -> str | None:
        keys = sorted(key for key, data in self.store.objects.items() if data)
        if not keys:
            return None
        key = self._chance.choice(keys)
        self._trace.fault(kind, key)
        spoil(key)
        return key
