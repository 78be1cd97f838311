"""A disk in memory that fails as real ones do: the other implementation of the local journal's `Files` seam.

The fault model, which is also what the local journal claims to survive:
- a write changes what is read back at once, but the disk only at the file's next sync; until then any of its sectors
  may reach the disk, in any order, and the file may have grown over sectors that did not (they read as zeros);
- a sector of 512 bytes is written whole or not at all, and one that is overwritten by what it contains cannot be
  harmed;
- a name that was created, renamed or removed may be forgotten until the next sync of the directory; such changes reach
  the disk in order;
- what no sync covered may also have been kept, in part, in any of these ways at once;
- a write may take fewer bytes than asked; any call may fail;
- after a failed sync the pages count as clean: they can still be read, but no later sync writes them.

It may have a size, which all files share with what others have taken.

Every call that changes something is logged, so that a crash can be put after any of them when all is over:
`SimulatedDisk.after(log[:n]).crashed(...)` is the disk that a machine finds which lost power there.
"""

import errno
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from exacta.adapters.local.directory_lock import DirectoryInUse
from exacta.adapters.local.files import damage_in
from exacta.ports.journal import Buffer
from simulation.disk.simulated_file import SimulatedFile, sectors, write

UNBOUNDED = 1 << 62

Operation = tuple[Any, ...]  # name of the call, then its arguments
KeepSectors = Callable[[int], bool]  # whether a sector or a cut, numbered from 0 through all unsynced, reached the disk


class SimulatedDisk:
    """One directory on that disk."""

    directory = Path("simulated")

    def __init__(self, size: int = UNBOUNDED) -> None:
        self.log: list[Operation] = []
        self.files: dict[str, SimulatedFile] = {}
        self.durable_files: dict[str, SimulatedFile] = {}
        self._directories: list[dict[str, SimulatedFile]] = []  # as of each change of a name since the last sync
        self.write_limit = 1 << 62  # bytes that one call takes
        self.size_of_all = size
        self.taken_by_others = 0
        self.failing: dict[str, int] = {}  # call -> errno
        self.nowait: bool | None = True
        self.lock_count = 0
        self._handles: dict[int, tuple[str, SimulatedFile]] = {}
        self._next_handle = 3
        self._random = 0
        self._boot_number = 1
        self._mutex = threading.RLock()  # several of the journal's threads use the disk

    # --- crashes ------------------------------------------------------------------------------------------------------

    @classmethod
    def after(cls, log: Sequence[Operation]) -> "SimulatedDisk":
        """Return a disk on which the calls in `log` have been made: a crash can come after any of them."""
        disk = cls()
        for operation in log:
            disk._do(*operation)
        return disk

    def restarted(self) -> "SimulatedDisk":
        """Return the disk as the next process finds it when this one is killed and the machine lives on."""
        disk = SimulatedDisk.after(self.log)
        disk._boot_number = self._boot_number
        return disk

    def release(self) -> None:
        """Close what a process left open that was killed; the machine lives on."""
        self._handles.clear()
        self.lock_count = 0

    def crashed(
        self,
        *,
        keep_sector: KeepSectors = lambda _: False,
        keep_bytes: int = 0,
        grow: bool = False,
        keep_names: bool | int = False,
    ) -> "SimulatedDisk":
        """Return the disk as the machine finds it that lost power now.

        Of what was not synced, it has the first `keep_bytes` bytes, or else the changes that `keep_sector` says. Files
        have their new length, filled with zeros, if `grow`. Names that were not synced are there if `keep_names`:
        the first this many changes of them, or all.
        """
        disk = SimulatedDisk(self.size_of_all)
        disk._random = self._random
        disk._boot_number = self._boot_number + 1
        change_number = 0
        for name, file in sorted(self._files_kept(keep_names).items()):
            content = bytearray(file.durable)
            for change in file.pending:
                if isinstance(change, int):
                    if keep_sector(change_number):
                        del content[change:]
                    change_number += 1
                elif keep_bytes:
                    write(content, change[0], change[1][:keep_bytes])
                    keep_bytes -= min(keep_bytes, len(change[1]))
                else:
                    for start, part in sectors(*change):
                        if keep_sector(change_number):
                            write(content, start, part)
                        change_number += 1
            if grow:
                content.extend(bytes(max(0, len(file.content) - len(content))))
            disk.put(name, bytes(content))
        # The content of removed files comes back where others have written, and what they wrote is lost.
        disk.taken_by_others = min(self.taken_by_others, disk.free_bytes)
        return disk

    def _files_kept(self, keep_names: bool | int) -> dict[str, SimulatedFile]:
        if keep_names is True:
            return self.files
        if not keep_names or not self._directories:
            return self.durable_files
        return self._directories[min(keep_names, len(self._directories)) - 1]

    @property
    def unsynced_names(self) -> int:
        """The number of changes of names that no sync has covered."""
        return len(self._directories)

    def unsynced_bytes(self) -> int:
        """Count the bytes that were written since the last sync of their file."""
        changes = (change for file in self.files.values() for change in file.pending)
        return sum(len(change[1]) for change in changes if not isinstance(change, int))

    def unsynced_changes(self) -> int:
        """Count the sectors, and the cuts of files, that a crash may keep or lose one by one."""
        changes = [change for file in self.files.values() for change in file.pending]
        return sum(1 if isinstance(change, int) else len(sectors(*change)) for change in changes)

    def _do(self, *operation: object) -> None:
        with self._mutex:
            self.log.append(operation)
            self._apply(operation)
            if operation[0] in ("create", "rename", "remove"):
                self._directories.append(dict(self.files))

    def _apply(self, operation: Operation) -> None:
        match operation:
            case ("put", str(name), bytes(content)):  # a test's own hand
                self.files[name] = self.durable_files[name] = SimulatedFile(content)
            case ("create", str(name)):
                if name in self.files:
                    self.files[name].truncate(0)
                else:
                    self.files[name] = SimulatedFile()
            case ("write", str(name), int(offset), bytes(data)):
                self.files[name].write(offset, data)
            case ("truncate", str(name), int(size)):
                self.files[name].truncate(size)
            case ("sync", str(name)):
                self.files[name].sync()
            case ("failed sync", str(name)):
                self.files[name].fail_to_sync()
            case ("sync directory",):
                self.durable_files = dict(self.files)
                self._directories.clear()
            case ("rename", str(name), str(new_name)):
                self.files[new_name] = self.files.pop(name)
            case ("remove", str(name)):
                del self.files[name]
            case ("note", _):
                pass
            case _:
                raise AssertionError(operation)

    def note(self, what: object) -> None:
        """Put a remark into the log, such as what was acknowledged."""
        self._do("note", what)

    def put(self, name: str, content: bytes) -> None:
        """Make a file, durably."""
        self._do("put", name, content)

    def rot(self, name: str, byte: int, bit: int) -> None:
        """Alter a bit of a file, also while a process has it open or mapped."""
        file = self.files[name]
        for content in (file.content, file.durable):
            content[byte] ^= 1 << bit

    def content(self, name: str) -> bytes:
        """Return what is read back of a file."""
        return bytes(self.files[name].content)

    def _check(self, call: str) -> None:
        if call in self.failing:
            raise OSError(self.failing[call], f"simulated failure of {call}")

    # --- its size -----------------------------------------------------------------------------------------------------

    @property
    def free_bytes(self) -> int:
        """The bytes that nobody has taken; the number of them can be set, and others have all but these then."""
        if self.size_of_all == UNBOUNDED:
            return UNBOUNDED
        used = sum(len(file.content) for file in self.files.values())
        return max(0, self.size_of_all - self.taken_by_others - used)

    @free_bytes.setter
    def free_bytes(self, free: int) -> None:
        with self._mutex:
            if self.size_of_all == UNBOUNDED:
                self.size_of_all = UNBOUNDED - 1
            self.taken_by_others = 0
            self.taken_by_others = self.free_bytes - free

    def leave(self, free: int) -> None:
        """Let others take all but this many of the bytes that nobody has taken."""
        self.taken_by_others += max(0, self.free_bytes - free)

    # --- Files --------------------------------------------------------------------------------------------------------

    def tell_damage(self, name: str, offset: int, reason: str) -> str:
        """See `Files.tell_damage`."""
        return damage_in(self.directory, name, offset, reason)

    def lock(self) -> None:
        """See `Files.lock`."""
        if self.lock_count:
            raise DirectoryInUse("simulated is in use by another journal")
        self.lock_count = 1

    def unlock(self) -> None:
        """See `Files.unlock`."""
        self.lock_count = 0

    def take(self, handle: int) -> None:
        """See `Files.take`; no file is in two directories here."""

    @property
    def open_handles(self) -> list[str]:
        """Name the files that are open, one for each handle."""
        return [name for name, _ in self._handles.values()]

    def _handle(self, name: str) -> int:
        with self._mutex:
            self._next_handle += 1
            self._handles[self._next_handle] = name, self.files[name]
            return self._next_handle

    def names(self) -> list[str]:
        """See `Files.names`."""
        with self._mutex:
            return list(self.files)

    def create(self, name: str, *, exclusive: bool = False) -> int:
        """See `Files.create`."""
        self._check("create")
        if exclusive and name in self.files:
            raise FileExistsError(errno.EEXIST, name)
        self._do("create", name)
        return self._handle(name)

    def open(self, name: str, *, writable: bool = False) -> int:
        """See `Files.open`."""
        self._check("open")
        if name not in self.files:
            raise FileNotFoundError(errno.ENOENT, name)
        return self._handle(name)

    def close(self, handle: int) -> None:
        """See `Files.close`."""
        with self._mutex:
            del self._handles[handle]

    def size(self, handle: int) -> int:
        """See `Files.size`."""
        return len(self._handles[handle][1].content)

    def write(self, handle: int, buffers: Sequence[Buffer], offset: int) -> int:
        """See `Files.write`."""
        self._check("write")
        data = b"".join(buffers)[: self.write_limit]
        with self._mutex:
            name, file = self._handles[handle]
            growth = max(0, offset + len(data) - len(file.content))
            if growth and growth > (free := self.free_bytes):
                data = data[: len(data) - (growth - free)]
                if not data:
                    raise OSError(errno.ENOSPC, "no space left on the simulated disk")
            self._do("write", name, offset, data)
        return len(data)

    def truncate(self, handle: int, size: int) -> None:
        """See `Files.truncate`."""
        self._check("truncate")
        self._do("truncate", self._handles[handle][0], size)

    def sync_data(self, handle: int) -> None:
        """See `Files.sync_data`."""
        self._sync("sync_data", handle)

    def sync(self, handle: int) -> None:
        """See `Files.sync`."""
        self._sync("sync", handle)

    def _sync(self, call: str, handle: int) -> None:
        name = self._handles[handle][0]
        try:
            self._check(call)
        except OSError:
            self._do("failed sync", name)
            raise
        self._do("sync", name)

    def sync_directory(self) -> None:
        """See `Files.sync_directory`."""
        self._check("sync_directory")
        self._do("sync directory")

    def read(self, handle: int, size: int, offset: int) -> bytes:
        """See `Files.read`."""
        self._check("read")
        with self._mutex:
            return bytes(self._handles[handle][1].content[offset : offset + size])

    def read_nowait(self, handle: int, buffer: bytearray, offset: int) -> bool | None:
        """See `Files.read_nowait`."""
        if self.nowait:
            self._check("read_nowait")
            data = self.read(handle, len(buffer), offset)
            buffer[: len(data)] = data
            return len(data) == len(buffer)
        return self.nowait

    def map(self, name: str) -> memoryview:
        """See `Files.map`."""
        if name not in self.files:
            raise FileNotFoundError(errno.ENOENT, name)
        return memoryview(self.files[name].content).toreadonly()

    def release_mapped(self, view: memoryview) -> None:
        """See `Files.release_mapped`."""

    def rename(self, name: str, new_name: str) -> None:
        """See `Files.rename`."""
        self._check("rename")
        self._do("rename", name, new_name)

    def remove(self, name: str) -> None:
        """See `Files.remove`."""
        self._check("remove")
        if name not in self.files:
            raise FileNotFoundError(errno.ENOENT, name)
        self._do("remove", name)

    def remove_gradually(self, name: str, is_stopped: Callable[[], bool]) -> None:
        """See `Files.remove_gradually`: nobody here waits for the freeing."""
        self.remove(name)

    def available_bytes(self) -> int:
        """See `Files.available_bytes`."""
        return self.free_bytes

    def total_bytes(self) -> int:
        """See `Files.total_bytes`."""
        return self.size_of_all

    def allocate(self, handle: int, size: int) -> None:
        """See `Files.allocate`: all of it, or nothing, is taken."""
        growth = size - self.size(handle)
        if growth > self.free_bytes:
            raise OSError(errno.ENOSPC, "no space left on the simulated disk")
        self.write(handle, [bytes(growth)], self.size(handle))

    def random_bytes(self, size: int) -> bytes:
        """See `Files.random_bytes`."""
        self._random += 1
        return self._random.to_bytes(size, "big")

    def boot_id(self) -> str:
        """See `Files.boot_id`."""
        return f"boot {self._boot_number}"
