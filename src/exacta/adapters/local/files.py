"""Files of one data directory: every system call of the local journal on them, and nothing else.

Here tests exchange the disk for a simulated one that writes short, fails, loses what was not synced and tears what was.
Nothing here knows what the files contain.

`Files` speaks of one directory and of the names in it. Errors are OSError throughout; the callers turn them into what
the port promises.
"""

import errno
import mmap
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from exacta.adapters.local.directory_lock import DirectoryLock, take_file
from exacta.ports.journal import Buffer
from exacta.posix import fcntl

# The kernel takes at most IOV_MAX buffers in one call; longer lists are written in several.
IOV_MAX = os.sysconf("SC_IOV_MAX") if os.sysconf("SC_IOV_MAX") > 0 else 1024

# To free 128 MiB at once holds up every sync on ext4 for 30 ms and more; so much, so often, for 6 ms at most.
_FREED_AT_ONCE_BYTES = 4 << 20
_FREED_EVERY_S = 0.01

_HAS_PWRITEV = hasattr(os, "pwritev")
# macOS has no fdatasync, and its fsync does not reach the platter: F_FULLFSYNC does.
_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)


class Files(Protocol):
    """The files of one data directory; a handle is what `create` and `open` return."""

    @property
    def directory(self) -> Path:
        """The directory, for messages."""

    def tell_damage(self, name: str, offset: int, reason: str) -> str:
        """Say for the operator what is wrong with a file, and what helps."""

    def lock(self) -> None:
        """Create the directory if need be and take it for this journal alone; raise DirectoryInUse if it is taken."""

    def unlock(self) -> None:
        """Release the directory."""

    def take(self, handle: int) -> None:
        """Take the file for this journal alone until its handle is closed; raise DirectoryInUse if it is taken.

        The same file may be in two directories (hard links).
        """

    def names(self) -> list[str]:
        """List the files, in no order."""

    def create(self, name: str, *, exclusive: bool = False) -> int:
        """Create the file for reading and writing, empty.

        An old one of the name loses its content; if `exclusive`, FileExistsError is raised instead.
        """

    def open(self, name: str, *, writable: bool = False) -> int:
        """Open the file for reading and, if asked, for writing."""

    def close(self, handle: int) -> None:
        """Close the handle."""

    def size(self, handle: int) -> int:
        """Return the file's size in bytes."""

    def write(self, handle: int, buffers: Sequence[Buffer], offset: int) -> int:
        """Write at most IOV_MAX buffers at `offset`; return how many bytes were taken, which may be fewer."""

    def truncate(self, handle: int, size: int) -> None:
        """Cut the file to `size`."""

    def sync_data(self, handle: int) -> None:
        """Make the file's content durable; raise OSError if the file, or the directory, was taken away."""

    def sync(self, handle: int) -> None:
        """Make the file's content and attributes durable; raise OSError if it, or the directory, was taken away."""

    def sync_directory(self) -> None:
        """Make creations, renames and removals in the directory durable."""

    def read(self, handle: int, size: int, offset: int) -> bytes:
        """Read up to `size` bytes at `offset`; fewer at the end of the file."""

    def read_nowait(self, handle: int, buffer: bytearray, offset: int) -> bool | None:
        """Fill `buffer` from `offset` without waiting for the disk.

        False: not all of it is in memory. None: this file system cannot tell.
        """

    def map(self, name: str) -> memoryview:
        """Map the whole file into memory, read-only; the mapping lives as long as the view."""

    def release_mapped(self, view: memoryview) -> None:
        """Release the memory that the mapping of this view has taken so far; it can be read as before."""

    def rename(self, name: str, new_name: str) -> None:
        """Rename the file, in place of the one that has the new name."""

    def remove(self, name: str) -> None:
        """Remove the file."""

    def remove_gradually(self, name: str, is_stopped: Callable[[], bool]) -> None:
        """Remove the file; free its space a piece at a time, lest others wait for a sync, or at once when stopped."""

    def available_bytes(self) -> int:
        """Return how many more bytes can be written."""

    def total_bytes(self) -> int:
        """Return how large the file system is."""

    def allocate(self, handle: int, size: int) -> None:
        """Let the file have `size` bytes and take up as much of the disk; what it held before stays."""

    def random_bytes(self, size: int) -> bytes:
        """Return bytes that nobody can guess."""

    def boot_id(self) -> str:
        """Return an id of the time since the machine was started, of up to 40 ASCII characters; empty if unknown."""


def damage_in(directory: Path, name: str, offset: int, reason: str) -> str:
    """Say what `Files.tell_damage` does of files in a directory."""
    return (
        f"{directory / name}, byte {offset}: {reason}. Durable data is damaged or missing, so the journal is not "
        "opened; restore the directory from a copy, or see what `exacta log repair` can do."
    )


def write_fully(files: Files, handle: int, buffers: Sequence[Buffer], offset: int) -> None:
    """Write all of the buffers at `offset`, in as many calls as it takes."""
    pending: list[Buffer] = [buffer for buffer in buffers if len(buffer)]
    left = sum(map(len, pending))
    while left:
        taken = files.write(handle, pending[:IOV_MAX], offset)
        if taken <= 0:
            raise OSError(errno.EIO, "the disk took no byte of a write")
        left -= taken
        if not left:
            break
        offset += taken
        done = 0
        while taken >= len(pending[done]):
            taken -= len(pending[done])
            done += 1
        del pending[:done]
        if taken:
            pending[0] = memoryview(pending[0])[taken:]


def read_file(files: Files, name: str) -> bytes:
    """Return what the file holds."""
    handle = files.open(name)
    try:
        return files.read(handle, files.size(handle), 0)
    finally:
        files.close(handle)


class PosixFiles:
    """Implement `Files` by the operating system's calls."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._lock: DirectoryLock | None = None
        self._counts_links = False

    def tell_damage(self, name: str, offset: int, reason: str) -> str:
        """See `Files.tell_damage`."""
        return damage_in(self.directory, name, offset, reason)

    def _open(self, name: str, flags: int) -> int:
        path, directory = self._place(name)
        return os.open(path, flags | os.O_CLOEXEC, 0o600, dir_fd=directory)

    def _place(self, name: str) -> tuple[str, int | None]:
        """Return the path of a file, and the handle of the directory that the path begins at.

        What is locked is the directory itself, and another may get its name.
        """
        if self._lock is None:
            return os.path.join(self.directory, name), None
        return name, self._lock.handle

    def lock(self) -> None:
        """See `Files.lock`."""
        self._make_directory(self.directory)
        lock = DirectoryLock(self.directory)
        lock.lock()
        self._lock = lock
        self._counts_links = lock.counts_links

    def _make_directory(self, directory: Path) -> None:
        if directory.is_dir():
            return
        self._make_directory(directory.parent)
        directory.mkdir(mode=0o700, exist_ok=True)
        self._sync_path(directory.parent)

    @staticmethod
    def _sync_path(directory: Path) -> None:
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def unlock(self) -> None:
        """See `Files.unlock`."""
        if self._lock is not None:
            lock, self._lock = self._lock, None
            lock.unlock()

    def take(self, handle: int) -> None:
        """See `Files.take`."""
        take_file(handle, self.directory)

    def names(self) -> list[str]:
        """See `Files.names`."""
        return os.listdir(self.directory if self._lock is None else self._lock.handle)

    def create(self, name: str, *, exclusive: bool = False) -> int:
        """See `Files.create`."""
        old = os.O_EXCL if exclusive else os.O_TRUNC
        return self._open(name, os.O_RDWR | os.O_CREAT | old)

    def open(self, name: str, *, writable: bool = False) -> int:
        """See `Files.open`."""
        return self._open(name, os.O_RDWR if writable else os.O_RDONLY)

    def close(self, handle: int) -> None:
        """See `Files.close`."""
        os.close(handle)

    def size(self, handle: int) -> int:
        """See `Files.size`."""
        return os.fstat(handle).st_size

    def write(self, handle: int, buffers: Sequence[Buffer], offset: int) -> int:
        """See `Files.write`."""
        if len(buffers) == 1:
            return os.pwrite(handle, buffers[0], offset)
        if _HAS_PWRITEV:
            return os.pwritev(handle, buffers, offset)
        return os.pwrite(handle, b"".join(buffers), offset)

    def truncate(self, handle: int, size: int) -> None:
        """See `Files.truncate`."""
        os.ftruncate(handle, size)

    def sync_data(self, handle: int) -> None:
        """See `Files.sync_data`."""
        if _FULL_SYNC is not None:
            fcntl.fcntl(handle, _FULL_SYNC)
        else:
            os.fdatasync(handle)
        self._check_names(handle)

    def sync(self, handle: int) -> None:
        """See `Files.sync`."""
        if _FULL_SYNC is not None:
            fcntl.fcntl(handle, _FULL_SYNC)
        else:
            os.fsync(handle)
        self._check_names(handle)

    def _check_names(self, handle: int) -> None:
        """Raise OSError where file or directory has lost its name: the next start does not find what is durable in it.

        The file would even be gone when it is closed.
        """
        if self._lock is not None:
            self._lock.require_place()
        if self._counts_links and not os.fstat(handle).st_nlink:
            raise OSError(errno.ENOENT, "the file was removed while it was in use", str(self.directory))

    def sync_directory(self) -> None:
        """See `Files.sync_directory`."""
        if self._lock is None or self._lock.handle is None:
            self._sync_path(self.directory)
        else:
            os.fsync(self._lock.handle)

    def read(self, handle: int, size: int, offset: int) -> bytes:
        """See `Files.read`."""
        data = os.pread(handle, size, offset)
        while len(data) < size:
            more = os.pread(handle, size - len(data), offset + len(data))
            if not more:
                break
            data += more
        return data

    def read_nowait(self, handle: int, buffer: bytearray, offset: int) -> bool | None:
        """See `Files.read_nowait`; needs Linux 4.14 and a file system that knows RWF_NOWAIT (tmpfs does not)."""
        if not hasattr(os, "RWF_NOWAIT"):
            return None
        try:
            return os.preadv(handle, [buffer], offset, os.RWF_NOWAIT) == len(buffer)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno in (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL):
                return None
            raise

    def map(self, name: str) -> memoryview:
        """See `Files.map`."""
        handle = self.open(name)
        try:
            if not os.fstat(handle).st_size:
                return memoryview(b"")
            if sys.version_info >= (3, 13):
                return memoryview(mmap.mmap(handle, 0, prot=mmap.PROT_READ, trackfd=False))
            return memoryview(mmap.mmap(handle, 0, prot=mmap.PROT_READ))  # which keeps a handle of its own
        finally:
            os.close(handle)

    def release_mapped(self, view: memoryview) -> None:
        """See `Files.release_mapped`: the pages stay in the system's cache, as far as it has room."""
        if isinstance(view.obj, mmap.mmap):
            view.obj.madvise(mmap.MADV_DONTNEED)

    def rename(self, name: str, new_name: str) -> None:
        """See `Files.rename`."""
        (old, directory), (new, _) = self._place(name), self._place(new_name)
        os.rename(old, new, src_dir_fd=directory, dst_dir_fd=directory)

    def remove(self, name: str) -> None:
        """See `Files.remove`."""
        path, directory = self._place(name)
        os.unlink(path, dir_fd=directory)

    def remove_gradually(self, name: str, is_stopped: Callable[[], bool]) -> None:
        """See `Files.remove_gradually`; the end of the handle, or of this process, frees the rest."""
        try:
            handle = self.open(name, writable=True)
        except OSError:  # it may not be written to, or no handle is left: then as any other
            self.remove(name)
            return
        try:
            self.remove(name)
            # Under another name the content is somebody's copy. Where names are not counted, all is freed at once.
            if not self._counts_links or os.fstat(handle).st_nlink:
                return
            for size in range(self.size(handle) - _FREED_AT_ONCE_BYTES, 0, -_FREED_AT_ONCE_BYTES):
                if is_stopped():
                    return
                self.truncate(handle, size)
                time.sleep(_FREED_EVERY_S)
        finally:
            self.close(handle)

    def available_bytes(self) -> int:
        """See `Files.available_bytes`."""
        found = os.statvfs(self.directory)
        return found.f_bavail * found.f_frsize

    def total_bytes(self) -> int:
        """See `Files.total_bytes`."""
        found = os.statvfs(self.directory)
        return found.f_blocks * found.f_frsize

    def allocate(self, handle: int, size: int) -> None:
        """See `Files.allocate`; macOS takes no such call, and gets zeros."""
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(handle, 0, size)
            return
        for offset in range(self.size(handle), size, _FREED_AT_ONCE_BYTES):
            write_fully(self, handle, [bytes(min(_FREED_AT_ONCE_BYTES, size - offset))], offset)

    def random_bytes(self, size: int) -> bytes:
        """See `Files.random_bytes`."""
        return os.urandom(size)

    def boot_id(self) -> str:
        """See `Files.boot_id`; Linux says it."""
        try:
            return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        except OSError:
            return ""
