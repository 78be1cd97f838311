"""One process's view of the simulated disk: where its faults are injected, and where it can be killed.

Owns the moment: before each call to the disk, and after each that changes something, the plan of faults is asked. A
process that is dead does nothing to the disk, not even from a `finally`.
"""

import errno
import zlib
from collections.abc import Callable, Sequence
from typing import Protocol

from exacta.ports.journal import Buffer
from simulation.disk.simulated import SimulatedDisk
from simulation.process import Process
from simulation.trace import Trace

CHANGES = frozenset({"create", "write", "truncate", "sync_data", "sync", "sync_directory", "rename", "remove"})


class Plan(Protocol):
    """The faults of the disk."""

    def error(self, call: str) -> int | None:
        """Return the errno with which this call fails, if it does."""

    def dies(self, call: str) -> bool:
        """Say whether the process dies at this call; it is asked before the call and after it."""

    def taken(self, size: int) -> int:
        """Return how many of this many bytes a write takes: one at least."""


class ProcessFiles:
    """Implement `exacta.adapters.local.files.Files` for one life of a process."""

    def __init__(
        self,
        disk: SimulatedDisk,
        process: Process,
        plan: Plan,
        trace: Trace,
    ) -> None:
        self.directory = disk.directory
        self._disk = disk
        self._process = process
        self._plan = plan
        self._trace = trace
        self._names: dict[int, str] = {}

    def tell_damage(self, name: str, offset: int, reason: str) -> str:
        """See `Files.tell_damage`."""
        return self._disk.tell_damage(name, offset, reason)

    def _enter(self, call: str, *details: object) -> None:
        if not self._process.alive:
            self._process.die()
        if call not in CHANGES:
            number = self._plan.error(call)
            if number is not None:
                raise OSError(number, f"simulated failure of {call}")
            return
        self._trace.note("disk", call, *details)
        if self._plan.dies(call):
            self._process.die()

    def _failing(self, call: str) -> bool:
        number = self._plan.error(call)
        if number is None:
            return False
        self._disk.failing[call] = number
        return True

    def _leave(self, call: str) -> None:
        self._disk.failing.pop(call, None)
        if self._plan.dies(call):
            self._process.die()

    def _change(self, call: str, name: str, *args: object) -> None:
        """Do what the disk does, or fail as it does."""
        self._enter(call, name, *args[1:])
        self._failing(call)
        try:
            getattr(self._disk, call)(*args)
        finally:
            self._disk.failing.pop(call, None)
        self._leave(call)

    def lock(self) -> None:
        """See `Files.lock`."""
        self._disk.lock()

    def unlock(self) -> None:
        """See `Files.unlock`."""
        if self._process.alive:
            self._disk.unlock()

    def take(self, handle: int) -> None:
        """See `Files.take`."""
        self._disk.take(handle)

    def names(self) -> list[str]:
        """See `Files.names`."""
        self._enter("names")
        return self._disk.names()

    def create(self, name: str, *, exclusive: bool = False) -> int:
        """See `Files.create`."""
        self._enter("create", name)
        self._failing("create")
        try:
            handle = self._disk.create(name, exclusive=exclusive)
        finally:
            self._disk.failing.pop("create", None)
        self._names[handle] = name
        self._leave("create")
        return handle

    def open(self, name: str, *, writable: bool = False) -> int:
        """See `Files.open`."""
        self._enter("open")
        handle = self._disk.open(name, writable=writable)
        self._names[handle] = name
        return handle

    def close(self, handle: int) -> None:
        """See `Files.close`."""
        if self._process.alive:
            self._disk.close(handle)

    def size(self, handle: int) -> int:
        """See `Files.size`."""
        self._enter("size")
        return self._disk.size(handle)

    def write(self, handle: int, buffers: Sequence[Buffer], offset: int) -> int:
        """See `Files.write`; who is killed meanwhile has written a part."""
        data = b"".join(buffers)
        name = self._names[handle]
        # What a snapshot says may stand in an order that differs between processes: its length is noted only.
        checksum = 0 if ".snapshot" in name else zlib.crc32(data)
        self._enter("write", name, offset, len(data), checksum)
        if self._failing("write") and self._disk.failing["write"] == errno.ENOSPC:
            # A full disk takes what it has room for.
            self._disk.failing.pop("write")
            room = self._plan.taken(len(data)) - 1
            if not room:
                raise OSError(errno.ENOSPC, "no space left on the simulated disk")
            return self._disk.write(handle, [data[:room]], offset)
        try:
            taken = self._disk.write(handle, [data[: self._plan.taken(len(data))]], offset)
        finally:
            self._disk.failing.pop("write", None)
        self._leave("write")
        return taken

    def truncate(self, handle: int, size: int) -> None:
        """See `Files.truncate`."""
        self._change("truncate", self._names[handle], handle, size)

    def sync_data(self, handle: int) -> None:
        """See `Files.sync_data`."""
        self._change("sync_data", self._names[handle], handle)

    def sync(self, handle: int) -> None:
        """See `Files.sync`."""
        self._change("sync", self._names[handle], handle)

    def sync_directory(self) -> None:
        """See `Files.sync_directory`."""
        self._change("sync_directory", "")

    def read(self, handle: int, size: int, offset: int) -> bytes:
        """See `Files.read`."""
        self._enter("read")
        return self._disk.read(handle, size, offset)

    def read_nowait(self, handle: int, buffer: bytearray, offset: int) -> bool | None:
        """See `Files.read_nowait`."""
        self._enter("read_nowait")
        return self._disk.read_nowait(handle, buffer, offset)

    def map(self, name: str) -> memoryview:
        """See `Files.map`."""
        self._enter("map")
        return self._disk.map(name)

    def release_mapped(self, view: memoryview) -> None:
        """See `Files.release_mapped`."""

    def rename(self, name: str, new_name: str) -> None:
        """See `Files.rename`."""
        self._change("rename", name, name, new_name)

    def remove(self, name: str) -> None:
        """See `Files.remove`."""
        self._change("remove", name, name)

    def remove_gradually(self, name: str, is_stopped: Callable[[], bool]) -> None:
        """See `Files.remove_gradually`: nobody here waits for the freeing."""
        self.remove(name)

    def available_bytes(self) -> int:
        """See `Files.available_bytes`."""
        return self._disk.available_bytes()

    def total_bytes(self) -> int:
        """See `Files.total_bytes`."""
        return self._disk.total_bytes()

    def allocate(self, handle: int, size: int) -> None:
        """See `Files.allocate`."""
        self._disk.allocate(handle, size)

    def random_bytes(self, size: int) -> bytes:
        """See `Files.random_bytes`."""
        return self._disk.random_bytes(size)

    def boot_id(self) -> str:
        """See `Files.boot_id`."""
        return self._disk.boot_id()
