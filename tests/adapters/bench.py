"""What the tests of the journal port's contract share: any adapter by its name, opened again and again."""

from collections.abc import Callable, Iterator
from pathlib import Path
from weakref import WeakKeyDictionary

from exacta.adapters.memory import MemoryJournal, MemoryStorage, StoreFault
from exacta.ports.journal import Journal
from simulation.disk.in_place import open_journal
from simulation.disk.simulated import SimulatedDisk
from tests.adapters.shared.brokers import Brokers
from tests.adapters.turns import LoopTurns, Turns

SEGMENT_BYTES = 2000
EVERYTHING = 1 << 40


class Bench:
    """One adapter under test: opens it again and again over the same storage, one at a time."""

    def __init__(self, name: str, directory: Path) -> None:
        self.turns = Turns()
        self._open: Journal | None = None
        self._make: Callable[[], Journal]
        self.files: SimulatedDisk | Path | None = None
        self.unsynced_writes = True
        self.segment_bytes = SEGMENT_BYTES
        self._brokers: Brokers | None = None
        self._elapsed_seconds = 0.0
        self._second = 1.0
        call_soon = self.turns.call_soon
        if name == "memory":
            self.storage = MemoryStorage()
            self._make = lambda: MemoryJournal(
                self.storage, call_soon, segment_bytes=self.segment_bytes, unsynced_writes=self.unsynced_writes
            )
        elif name == "shared":
            self._brokers = Brokers(segment_bytes=SEGMENT_BYTES)
            self.turns = LoopTurns(self._brokers.loop)
            self._make = self._lead
        else:
            self.files = SimulatedDisk() if name == "simulated disk" else directory
            self._make = self._open_files

    def _open_files(self) -> Journal:
        assert self.files is not None
        return open_journal(
            self.files,
            self.turns.call_soon,
            segment_bytes=self.segment_bytes,
            unsynced_writes=self.unsynced_writes,
            elapsed_seconds=self._elapsed,
        )

    def _lead(self) -> Journal:
        """Open a shared log at one more broker, and lead it."""
        assert self._brokers is not None
        self._brokers.segment_bytes = self.segment_bytes
        broker = self._brokers.open(1).follow()
        _SHARED[journal := broker.lead()] = self._brokers
        return journal

    def _elapsed(self) -> float:
        self._elapsed_seconds += self._second
        return self._elapsed_seconds

    def be_quick(self, *, quick: bool = True) -> None:
        """Let syncs take no time from now on, or a second."""
        self._second = 0.0 if quick else 1.0
        if self.files is None and self._brokers is None:
            self.storage.is_quick = quick

    def fail_sync(self) -> None:
        """Let the next sync of the simulated disk fail."""
        assert isinstance(self.files, SimulatedDisk)
        self.files.failing["sync_data"] = 5

    def fail_rewrites(self, *, fails: bool = True) -> bool:
        """Let what a compaction writes fail from now on, or no more; return whether this bench can."""
        if self._brokers is not None:
            fault = StoreFault.REFUSED if fails else None
            self._brokers.store.fault = lambda call, key: fault if call == "put" else None
        elif isinstance(self.files, SimulatedDisk):
            self.files.failing = {"write": 5} if fails else {}
        elif self.files is None:
            self.storage.clean_fault = "broken" if fails else None
        else:
            return False
        return True

    def open(self) -> Journal:
        self.close()
        self._open = self._make()
        return self._open

    def abandon(self) -> None:
        """Leave the open journal to the machine that stopped."""
        self._open = None

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None
            self.turns.drain()

    def end(self) -> None:
        """Close the journal, and whatever it was opened on."""
        self.close()
        if self._brokers is not None:
            self._brokers.loop.close()


_SHARED: "WeakKeyDictionary[Journal, Brokers]" = WeakKeyDictionary()


def replay(journal: Journal) -> tuple[bytes | None, Iterator[bytes]]:
    """Return what a replay gives; of a shared log it is what another leader would begin with."""
    brokers = _SHARED.get(journal)
    if brokers is None:
        return journal.replay()
    broker = brokers.copy().open(2).follow()
    broker.lead()
    return broker.blob, iter(broker.events)


def events(journal: Journal) -> list[bytes]:
    return list(replay(journal)[1])
