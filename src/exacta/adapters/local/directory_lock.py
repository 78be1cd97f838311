"""The lock of a data directory: it is held on the directory itself, and on the segment that is written to.

This module owns how a directory is taken for one journal alone, and how its holder notices that it was taken away.

Theory of operation. A lock (`flock`) is held by an inode, and a second process finds it by a name. So a lock on a file
of its own protects nothing where that file is removed: the second process makes another and locks that. The directory
cannot be parted from what is in it, so its own inode is locked. The holder works below its handle of the directory, and
never writes into another one that has got its name.

    while the journal is open                    the next opening             the holder
    the file `lock` is removed or replaced       is refused                   goes on
    the directory is moved or replaced           opens another directory      fails at its next sync
    the directory is copied by hard links        of the copy is refused *     goes on
    the segment that is written to is removed    finds that it is missing     fails at its next sync **

* See `take_file`. ** See `files`.

The holder fails rather than goes on where the directory has another name, since the next start looks under the old one,
and would find nothing of what is acknowledged meanwhile.

A file system may be unable to lock a directory (NFS makes record locks of these locks, which need a file that is
written to). There the file `lock` is what counts, and the holder fails at its next sync where that is gone. It is
locked everywhere, because older versions lock nothing else.
"""

import errno
import os
from pathlib import Path

from exacta.ports.journal import JournalError
from exacta.posix import fcntl

LOCK_NAME = "lock"

_TAKEN = (errno.EAGAIN, errno.EACCES)
_TRIES = 3
"""The number of times that a name is opened which leads to something else by the time the lock is held."""


class DirectoryInUse(JournalError):
    """Another process, or another journal of this one, has the data directory open."""


class DirectoryLock:
    """The lock of one directory, which is there. `handle` is the directory's while the lock is held."""

    def __init__(self, directory: Path) -> None:
        self.handle: int | None = None
        self.counts_links = False
        """True if the file system counts the names of a file, as most do; known once the lock is held."""
        self._directory = directory
        self._path = os.path.abspath(directory)  # the working directory may change
        self._lock_handle: int | None = None
        self._held: list[tuple[str, int]] = []
        """Paths, each with the handle that it must lead to."""

    def lock(self) -> None:
        """Take the directory for this journal alone; raise DirectoryInUse if it is taken."""
        try:
            handle, is_locked = self._open_locked(self._path, os.O_RDONLY | os.O_DIRECTORY)
            self.handle = handle
            lock_path = os.path.join(self._path, LOCK_NAME)
            self._lock_handle, is_file_locked = self._open_locked(lock_path, os.O_RDWR | os.O_CREAT)
            self.counts_links = os.fstat(self._lock_handle).st_nlink > 0
            if not is_locked and not is_file_locked:
                raise OSError(errno.ENOLCK, "this file system has no locks, so two servers could open it", self._path)
            self._held = [(self._path, handle)] + ([] if is_locked else [(lock_path, self._lock_handle)])
        except BaseException:
            self.unlock()
            raise

    def unlock(self) -> None:
        """Release the directory; harmless if it is not locked."""
        for handle in (self._lock_handle, self.handle):
            if handle is not None:
                os.close(handle)
        self.handle = self._lock_handle = None
        self._held = []

    def require_place(self) -> None:
        """Raise OSError where the directory is no longer where the next opening looks for it."""
        for path, handle in self._held:
            if not _leads_to(path, handle):
                raise OSError(errno.ENOENT, "it was taken away or replaced while it was in use", path)

    def _open_locked(self, path: str, flags: int) -> tuple[int, bool]:
        """Return a handle of what the path leads to, and whether it could be locked."""
        for number in range(_TRIES):
            handle = os.open(path, flags | os.O_CLOEXEC, 0o600)
            try:
                is_locked = take_file(handle, self._directory)
                # Another may have been put in its place, and locked, between the two calls. (Where a file system's
                # inodes are not to be relied on, this is all that can be had.)
                if _leads_to(path, handle) or number + 1 == _TRIES:
                    return handle, is_locked
            except BaseException:
                os.close(handle)
                raise
            os.close(handle)
        raise AssertionError("the last try returns")


def take_file(handle: int, named: Path) -> bool:
    """Lock an open file for this handle alone; return False where the file system cannot.

    The lock ends with the handle. The segment that is written to is locked, too: a file may be in two directories.
    Raises DirectoryInUse, about what is `named`, if another handle has it.
    """
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _TAKEN:
            raise DirectoryInUse(f"{named} is in use by another journal") from None
        return False
    return True


def _leads_to(path: str, handle: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(handle))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # who may not look cannot tell
        return True
