"""One broker of a world that has nothing but the shared log: it follows, leads, and appends while it leads.

It does what `exacta.server` does of a real one, without an engine: it opens the log, follows it, takes the lead when
nobody has it, and begins again as a follower after any failure. A process that was killed begins with empty hands, but
for the cache on its disk.
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence

from exacta.adapters.shared.follower import SharedFollower
from exacta.adapters.shared.journal import SharedJournal
from exacta.adapters.shared.opening import open_follower
from exacta.adapters.shared.shared_log import Limits, Witness
from exacta.ports.following import Delivered
from exacta.ports.journal import AppendResult, Buffer, Cleaned, Conflict, Extent, Failed, GroupAppended, JournalDamaged
from simulation.cluster.history import STREAMS, LogHistory, batch, entry, fold, lines, place
from simulation.cluster.storage import SharedStorage
from simulation.disk.in_place import InPlace
from simulation.disk.simulated import SimulatedDisk
from simulation.loop import SimulatedLoop
from simulation.process import Process
from simulation.trace import Trace

REOPEN_SECONDS = 0.5
WRITE_SECONDS = (0.0, 0.2)
LOOK_SECONDS = (0.01, 0.3)


class Member:
    """One broker; `start` begins a process, `kill` ends it."""

    def __init__(
        self,
        node_id: int,
        loop: SimulatedLoop,
        trace: Trace,
        chance: random.Random,
        storage: SharedStorage,
        history: LogHistory,
        limits: Limits,
        complain: Callable[[str], None],
    ) -> None:
        self.node_id = node_id
        self.counts: Counter[str] = Counter()
        self.process: Process | None = None
        self.is_damaged = False
        self._loop = loop
        self._trace = trace
        self._chance = chance
        self._storage = storage
        self._history = history
        self._limits = limits
        self._complain = complain
        self._disk = SimulatedDisk()
        self._disk._random = node_id << 24  # no two brokers draw the same
        self._lives = 0
        self._written = 0
        self._follower: SharedFollower | None = None
        self._journal: SharedJournal | None = None
        self._witness = Witness()
        self.seen: list[bytes] = []
        self._next_offsets = [0] * STREAMS

    @property
    def name(self) -> str:
        """The name of this life."""
        return f"{self.node_id}.{self._lives}"

    @property
    def leads(self) -> bool:
        """True if it believes that it leads."""
        return self._journal is not None

    # --- lives --------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin a process."""
        self._lives += 1
        self._trace.note("start", self.name)
        self.process = Process(self._loop, lambda defect: self._complain(f"{self.name} failed: {defect}"))
        self._witness = Witness()
        self.process.run(self._open)

    def kill(self) -> None:
        """End the process at once."""
        if self.process is None:
            return
        self.process.kill()
        self.process = None
        self._journal = self._follower = None
        self._disk.lock_count = 0
        self._storage.ended(self.node_id)

    def pause(self, seconds: float) -> None:
        """Stop the process, and let it go on after so long."""
        process = self.process
        if process is not None:
            process.pause()
            self._loop.call_later(seconds, process.resume)

    def _open(self) -> None:
        process = self.process
        assert process is not None
        self._journal = self._follower = None
        self._disk.lock_count = 0
        ledger, store = self._storage.open(self.node_id, process)
        open_follower(
            ledger,
            store,
            self._disk,
            process,
            process.call_soon,
            node_id=self.node_id,
            instance=self.name,
            witness=self._witness,
            done=self._opened,
            limits=self._limits,
            new_worker=process.worker(lambda: self._chance.uniform(0.0, 0.003)),
            new_job_runner=lambda: InPlace(self._disk),
            elapsed_seconds=process.time,
        )

    def _opened(self, opened: SharedFollower | Failed | JournalDamaged) -> None:
        if isinstance(opened, JournalDamaged):
            self._tell_damage(str(opened))
        elif isinstance(opened, Failed):
            self._begin_again(opened.reason)
        else:
            self._follower = opened
            try:
                blob, events = opened.begin()
                self.seen, self._next_offsets = [], [0] * STREAMS
                self._take([*lines(blob), *events])
            except (OSError, JournalDamaged) as error:
                opened.close()
                self._begin_again(str(error))
                return
            self._trace.note("follows", self.name, len(self.seen))
            opened.on_failure(self._failed)
            opened.follow(self._delivered)
            opened.lead(self._led)
            self._look()

    def _begin_again(self, reason: str) -> None:
        """Begin as a follower, a little later."""
        self._trace.note("begins again", self.name, reason)
        self.counts["begun again"] += 1
        self._journal = self._follower = None
        assert self.process is not None
        self.process.call_later(REOPEN_SECONDS, self._open)

    def _tell_damage(self, reason: str) -> None:
        self.is_damaged = True
        self._journal = self._follower = None
        self._complain(f"damaged: {self.name}: {reason}")

    # --- following ----------------------------------------------------------------------------------------------------

    def _take(self, events: Sequence[bytes]) -> None:
        self._history.show(self.name, len(self.seen), events)
        for event in events:
            stream, offset = place(event)
            self._next_offsets[stream] = offset + 1
        self.seen += events

    def _delivered(self, delivered: Delivered) -> None:
        self._trace.note("delivered", self.name, delivered.position, len(delivered.events))
        self._take(delivered.events)

    def _failed(self, failure: Failed) -> None:
        reader = self._journal or self._follower
        if reader is not None:
            self._journal = self._follower = None
            reader.close()
            self._begin_again(failure.reason)

    def _look(self) -> None:
        """Ask something of the log, again and again; an answer is never behind what was acknowledged before."""
        follower, journal, asked_at = self._follower, self._journal, self._history.acknowledged
        if follower is None and journal is None:
            return

        def caught_up(failed: Failed | None) -> None:
            self.counts["caught up" if failed is None else "not caught up"] += 1
            if failed is None and self._follower is follower:
                self._history.reads(self.name, len(self.seen), asked_at)

        known = len(self.seen)

        def confirmed(result: AppendResult) -> None:
            self.counts["confirmed" if isinstance(result, GroupAppended) else "not confirmed"] += 1
            if isinstance(result, GroupAppended):
                self._history.reads(self.name, known, asked_at)

        if journal is not None:
            journal.confirm(confirmed)
        elif follower is not None:
            follower.catch_up(caught_up)
        self._read()
        assert self.process is not None
        self.process.call_later(self._chance.uniform(*LOOK_SECONDS), self._look)

    def _read(self) -> None:
        """Read a few batches, and compare them with what was written."""
        reader = self._journal or self._follower
        if reader is None or not self.seen:
            return
        event = self._chance.choice(self.seen)
        stream, offset = place(event)
        extents: Sequence[Extent] = reader.find(stream, offset, offset + 1, 1 << 40)

        def read(results: Sequence[Buffer | Failed]) -> None:
            failed = [each for each in results if isinstance(each, Failed)]
            self.counts["read failed" if failed else "read"] += 1
            found = b"".join(each for each in results if not isinstance(each, Failed))
            if not failed and found != batch(event) and offset >= self._history.floors[stream]:
                self._complain(f"{self.name} reads {len(found)} other bytes for {event!r}")

        reader.read(extents, read)

    # --- leading ------------------------------------------------------------------------------------------------------

    def _led(self, journal: SharedJournal | Failed) -> None:
        if isinstance(journal, Failed):
            self._failed(journal)
            return
        self._trace.note("leads", self.name, journal.epoch, len(self.seen))
        self.counts["led"] += 1
        self._journal = journal
        journal.on_failure(self._failed)
        if len(self.seen) < len(self._history.durable):
            self._complain(f"lost: {self.name} leads with {len(self.seen)} of {len(self._history.durable)} events")
        self._write()

    def _write(self) -> None:
        journal = self._journal
        if journal is None:
            return
        offsets = list(self._next_offsets)
        entries = []
        for _ in range(self._chance.choice([1, 1, 2, 5])):
            self._written += 1
            stream = self._chance.randrange(STREAMS)
            entries.append(entry(f"{self.name}.{self._written}", stream, offsets[stream], self._chance.randint(1, 400)))
            offsets[stream] += 1
        events = [bytes(each.event) for each in entries]
        journal.append(journal.position, entries, lambda result: self._written_to(journal, events, result))

    def _written_to(self, journal: SharedJournal, events: Sequence[bytes], result: AppendResult) -> None:
        if isinstance(result, Conflict):
            self._history.refuse(events)
        if journal is not self._journal:
            return  # the broker follows again, and has told nobody
        if not isinstance(result, GroupAppended):
            self._failed(Failed(f"an append was answered {result}"))
            return
        self._history.acknowledge(self.name, len(self.seen), events)
        self._take(events)
        self._keep_house(journal)
        process = self.process
        if process is not None:
            process.call_later(self._chance.uniform(*WRITE_SECONDS), self._write)

    def _keep_house(self, journal: SharedJournal) -> None:
        def cleaned(result: Cleaned | Failed) -> None:
            self.counts["cleaned" if isinstance(result, Cleaned) and result.freed_bytes else "not cleaned"] += 1

        def folded(result: Failed | None) -> None:
            self.counts["folded" if result is None else "not folded"] += 1
            if result is None and journal is self._journal and self._chance.random() < 0.5:
                floors = self._history.floors
                for stream, next_offset in enumerate(self._next_offsets):
                    floors[stream] = max(floors[stream], next_offset - self._chance.randint(5, 100))
                journal.clean(dict(enumerate(floors)), cleaned)

        if journal.wants_snapshot:
            journal.fold_snapshot(fold, folded)
