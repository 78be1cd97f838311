"""A real server whose machine can lose power: `python -m tests.power.lossy UNDO BOOT_ID serve …`.

Owns the layer under the journal's files (`PosixFiles`) that notes, before every write, what it overwrites, and after
every sync, which writes that covers. `power.cut` then takes back, in the real files, any sectors that no sync covered.
The notes are as durable as the process's writes are: both are only read on a machine that runs on.
"""

import os
import pickle
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from exacta.adapters.local.files import PosixFiles
from exacta.ports.journal import Buffer
from simulation.disk.in_place import InPlace


class Notes:
    """The file of notes: pickled tuples, appended in one write each."""

    def __init__(self, path: Path) -> None:
        self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self._mutex = threading.Lock()
        self._count = 0

    @property
    def count(self) -> int:
        return self._count

    def add(self, *note: Any) -> None:
        with self._mutex:
            os.write(self._handle, pickle.dumps(note))
            self._count += 1


class LossyFiles(PosixFiles):
    """The same calls, noted."""

    notes: Notes
    boot: str
    _names: dict[int, str]

    def create(self, name: str, *, exclusive: bool = False) -> int:
        self.notes.add("replaced", name)
        return self._named(super().create(name, exclusive=exclusive), name)

    def open(self, name: str, *, writable: bool = False) -> int:
        return self._named(super().open(name, writable=writable), name)

    def _named(self, handle: int, name: str) -> int:
        self.__dict__.setdefault("_names", {})[handle] = name
        return handle

    def write(self, handle: int, buffers: Sequence[Buffer], offset: int) -> int:
        size, length = os.fstat(handle).st_size, sum(map(len, buffers))
        self.notes.add("wrote", self._names[handle], offset, os.pread(handle, length, offset), size)
        return super().write(handle, buffers, offset)

    def truncate(self, handle: int, size: int) -> None:
        old_size = os.fstat(handle).st_size
        self.notes.add("wrote", self._names[handle], size, os.pread(handle, old_size - size, size), old_size)
        super().truncate(handle, size)

    def sync_data(self, handle: int) -> None:
        self._sync(super().sync_data, handle)

    def sync(self, handle: int) -> None:
        self._sync(super().sync, handle)

    def _sync(self, sync: Callable[[int], None], handle: int) -> None:
        count = self.notes.count  # what is written while the sync runs is not covered
        sync(handle)
        self.notes.add("synced", self._names[handle], count)

    def rename(self, name: str, new_name: str) -> None:
        self.notes.add("renamed", name, new_name)
        super().rename(name, new_name)

    def boot_id(self) -> str:
        return self.boot


def main() -> None:
    """Run `exacta` over such files."""
    import exacta.adapters.local.journal as journal
    from exacta.cli import main as run

    LossyFiles.notes = Notes(Path(sys.argv[1]))
    LossyFiles.boot = sys.argv[2]
    journal.PosixFiles = LossyFiles  # type: ignore[attr-defined]
    journal.ChildProcess = lambda directory: InPlace(LossyFiles(directory))  # type: ignore[assignment,attr-defined,return-value]
    sys.argv[1:] = sys.argv[3:]
    run()


if __name__ == "__main__":
    main()
