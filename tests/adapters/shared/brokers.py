"""Brokers over one ledger and one store, in virtual time: what each has followed, and what a leader appends."""

import asyncio
from collections.abc import Callable
from copy import copy
from typing import Any

import pytest

from exacta.adapters.memory import DatabaseWire, MemoryDatabase, MemoryLedger, MemoryObjects
from exacta.adapters.shared.follower import SharedFollower
from exacta.adapters.shared.journal import SharedJournal
from exacta.adapters.shared.opening import open_follower
from exacta.adapters.shared.shared_log import Limits, Witness
from exacta.ports.following import Delivered
from exacta.ports.journal import AppendResult, Buffer, Failed, GroupAppended, JournalDamaged, JournalEntry
from exacta.ports.shared import Appended, Ledger, Superseded, TailGroup
from simulation.disk.in_place import InPlace
from simulation.disk.simulated import SimulatedDisk
from simulation.loop import SimulatedLoop
from tests.adapters.turns import batch

PATIENCE_SECONDS = 60


class InTurn:
    """A worker that does each job in a turn of the loop of its own."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def submit(self, job: Callable[[], None]) -> None:
        self._loop.call_soon(job)

    def close(self) -> None:
        """Nothing runs between turns."""


class BrokerOf:
    """One broker: a follower, and a journal once it leads."""

    def __init__(self, brokers: "Brokers", node_id: int, witness: Witness) -> None:
        self.brokers = brokers
        self.node_id = node_id
        self.witness = witness
        self.wire = DatabaseWire(brokers.loop)
        self.ledger = brokers.new_ledger(self.wire)
        self.disk = SimulatedDisk()
        self.opened: SharedFollower | Failed | JournalDamaged | None = None
        self.blob: bytes | None = None
        self.begun: list[bytes] = []
        self.delivered: list[Delivered] = []
        self.failures: list[Failed] = []
        self.led: SharedJournal | Failed | None = None
        open_follower(
            self.ledger,
            brokers.store,
            self.disk,
            brokers.loop,
            brokers.loop.call_soon,
            node_id=node_id,
            instance=f"instance {node_id}",
            witness=witness,
            done=self._opened,
            limits=Limits(segment_bytes=brokers.segment_bytes),
            new_worker=lambda name, threads: InTurn(brokers.loop),
            new_job_runner=lambda: InPlace(self.disk),
            elapsed_seconds=brokers.loop.time,
        )

    def _opened(self, opened: SharedFollower | Failed | JournalDamaged) -> None:
        self.opened = opened

    @property
    def follower(self) -> SharedFollower:
        assert isinstance(self.opened, SharedFollower), self.opened
        return self.opened

    @property
    def journal(self) -> SharedJournal:
        assert isinstance(self.led, SharedJournal), self.led
        return self.led

    @property
    def events(self) -> list[bytes]:
        """All events that it has seen, the first ones included."""
        return self.begun + [event for delivered in self.delivered for event in delivered.events]

    def open(self) -> SharedFollower | Failed | JournalDamaged:
        """Wait until it is open, or cannot be opened."""
        self.brokers.until(lambda: self.opened is not None)
        assert self.opened is not None
        return self.opened

    def follow(self) -> "BrokerOf":
        """Open, and follow from now on."""
        self.open()
        self.blob, events = self.follower.begin()
        self.begun = list(events)
        self.follower.on_failure(self.failures.append)
        self.follower.follow(self.delivered.append)
        return self

    def want_lead(self) -> "BrokerOf":
        def led(result: Any) -> None:
            self.led = result
            if isinstance(result, SharedJournal):
                result.on_failure(self.failures.append)

        self.follower.lead(led)
        return self

    def lead(self) -> SharedJournal:
        """Lead as soon as nobody else does."""
        self.want_lead()
        self.brokers.until(lambda: self.led is not None)
        return self.journal

    def append(self, *entries: JournalEntry) -> int:
        """Append a group; return the position after it."""
        results = self.begin_append(*entries)
        self.brokers.until(lambda: bool(results))
        assert isinstance(results[0], GroupAppended)
        return results[0].position

    def read(self, stream: int, offset: int, end_offset: int) -> bytes:
        """Return the batches of these offsets, as this broker finds and reads them."""
        reader = self.led if isinstance(self.led, SharedJournal) else self.follower
        results: list[list[Buffer | Failed]] = []
        reader.read(reader.find(stream, offset, end_offset, 1 << 40), results.append)
        self.brokers.until(lambda: bool(results))
        buffers = [each for each in results[0] if not isinstance(each, Failed)]
        assert buffers == results[0]
        return b"".join(buffers)

    def begin_append(self, *entries: JournalEntry) -> "list[AppendResult]":
        """Begin to append a group; return the list that will have its result."""
        results: list[AppendResult] = []
        self.journal.append(self.journal.position, entries, results.append)
        return results

    def delay_appends(self, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
        """Let what it appends be on its way for this long."""
        append = self.ledger.append

        def later(group: TailGroup, done: Callable[[Appended | Superseded | Failed], None]) -> None:
            self.brokers.loop.call_later(seconds, append, group, done)

        monkeypatch.setattr(self.ledger, "append", later)

    def again(self) -> "BrokerOf":
        """Close it, and open it once more in the same process."""
        (self.journal if isinstance(self.led, SharedJournal) else self.follower).close()
        return BrokerOf(self.brokers, self.node_id, self.witness)

    def kill(self) -> None:
        """End its process: the kernel closes its connections."""
        self.brokers.loop.call_soon(self.ledger.close)
        self.brokers.pass_seconds(0)


class Brokers:
    """A database, a store, and the brokers that are opened on them."""

    def __init__(self, segment_bytes: int = 2_000, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.loop = SimulatedLoop() if loop is None else loop
        self.segment_bytes = segment_bytes
        self.database = MemoryDatabase(self.loop, lambda: int(self.loop.time() * 1_000))
        self.store = MemoryObjects()

    def new_ledger(self, wire: DatabaseWire) -> Ledger:
        """Return the ledger of one more broker."""
        return MemoryLedger(self.database, self.loop, wire)

    def copy(self) -> "Brokers":
        """Return a world in which the database has what is committed here, and no session."""
        copied = copy(self)
        copied.database = MemoryDatabase(self.loop, lambda: int(self.loop.time() * 1_000))
        copied.database.primary.visible = self.database.primary.visible
        return copied

    def open(self, node_id: int, witness: Witness | None = None) -> BrokerOf:
        """Begin to open the log at one more broker, or at one again whose witness this is."""
        return BrokerOf(self, node_id, witness or Witness())

    def pass_seconds(self, seconds: float) -> None:
        """Let this time pass."""
        self.loop.run_until_complete(asyncio.sleep(seconds))

    def until(self, condition: Callable[[], bool]) -> None:
        """Let time pass until the condition holds."""
        end = self.loop.time() + PATIENCE_SECONDS
        while not condition():
            assert self.loop.time() < end, "nothing came of it"
            self.pass_seconds(0.001)


def event(number: int) -> JournalEntry:
    return JournalEntry(b"%d" % number)


def events(*numbers: int) -> list[bytes]:
    return [b"%d" % number for number in numbers]


def leader_and_follower(brokers: Brokers) -> tuple[BrokerOf, BrokerOf]:
    one, two = brokers.open(1).follow(), brokers.open(2).follow()
    one.lead()
    one.append(event(0))
    brokers.until(lambda: two.events == events(0))
    return one, two


def fill(broker: BrokerOf, begin: int, end: int) -> None:
    for number in range(begin, end):
        broker.append(batch(1, number, b"%03d" % number * 100))


def written(begin: int, end: int) -> bytes:
    return b"".join(b"%03d" % number * 100 for number in range(begin, end))
