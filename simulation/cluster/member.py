"""One broker of a world that has nothing but the shared log: it follows, leads, and appends while it leads.

It does what `exacta.server` does of a real one, without an engine: it opens the log, follows it, takes the lead when
nobody has it, and begins again as a follower after any failure.
"""

import random
from collections.abc import Callable, Sequence

from exacta.adapters.shared.follower import SharedFollower
from exacta.adapters.shared.journal import SharedJournal
from exacta.adapters.shared.shared_log import Limits
from exacta.ports.following import Delivered
from exacta.ports.journal import AppendResult, Buffer, Cleaned, Conflict, Extent, Failed, GroupAppended
from simulation.cluster.history import STREAMS, LogHistory, batch, entry, fold, lines, place
from simulation.cluster.lives import Lives
from simulation.cluster.storage import SharedStorage
from simulation.loop import SimulatedLoop
from simulation.trace import Trace

WRITE_SECONDS = (0.0, 0.2)
LOOK_SECONDS = (0.01, 0.3)


class Member(Lives):
    """One broker that appends lines of text."""

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
        super().__init__(node_id, loop, trace, chance, storage, limits, complain)
        self._history = history
        self._written = 0
        self._follower: SharedFollower | None = None
        self._journal: SharedJournal | None = None
        self.seen: list[bytes] = []
        self._next_offsets = [0] * STREAMS

    def _forget(self) -> None:
        """See `Lives`."""
        self._journal = self._follower = None

    # --- following ----------------------------------------------------------------------------------------------------

    def _follow(self, follower: SharedFollower) -> None:
        """See `Lives`."""
        self._follower = follower
        blob, events = follower.begin()
        self.seen, self._next_offsets = [], [0] * STREAMS
        self._take([*lines(blob), *events])
        self._trace.note("follows", self.name, len(self.seen))
        follower.on_failure(self._failed)
        follower.follow(self._delivered)
        follower.lead(self._led)
        self._look()

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
