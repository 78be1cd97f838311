"""What the tests of the journal port's contract share: any adapter by its name, opened again and again."""

from collections.abc import Callable
from pathlib import Path

from exacta.adapters.memory import MemoryJournal, MemoryStorage
from exacta.ports.journal import Journal
from simulation.disk.in_place import open_journal
from simulation.disk.simulated import SimulatedDisk
from tests.adapters.turns import Turns

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
        self._elapsed_seconds = 0.0
        self._second = 1.0
        call_soon = self.turns.call_soon
        if name == "memory":
            self.storage = MemoryStorage()
            self._make = lambda: MemoryJournal(
                self.storage, call_soon, segment_bytes=self.segment_bytes, unsynced_writes=self.unsynced_writes
            )
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

    def _elapsed(self) -> float:
        self._elapsed_seconds += self._second
        return self._elapsed_seconds

    def be_quick(self, *, quick: bool = True) -> None:
        """Let syncs take no time from now on, or a second."""
        self._second = 0.0 if quick else 1.0
        if self.files is None:
            self.storage.is_quick = quick

    def fail_sync(self) -> None:
        """Let the next sync of the simulated disk fail."""
        assert isinstance(self.files, SimulatedDisk)
        self.files.failing["sync_data"] = 5

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


def events(journal: Journal) -> list[bytes]:
    return list(journal.replay()[1])
