"""Files of a data directory for a process in the background, which leaves the disk idle most of the time."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from exacta.adapters.local.files import PosixFiles
from exacta.ports.journal import Buffer


class BackgroundFiles(PosixFiles):
    """Write, sync and read by handle for a quarter of the time at most, so that a sync of others finds the disk idle.

    What is written is synced in small pieces, because a sync waits for all that the disk was given before it. Only one
    thread may use these files, and write one file at a time.
    """

    _PIECE_BYTES = 512 << 10
    _PAUSES = 3
    """The disk is left alone for this many times as long as it was used."""
    _OWED_S = 0.001
    """So much time at the disk may add up before it is left alone."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._unsynced_bytes = 0
        self._busy_s = 0.0

    @contextmanager
    def _at_the_disk(self) -> Iterator[None]:
        began_s = time.monotonic()
        yield
        self._busy_s += time.monotonic() - began_s
        if self._busy_s >= self._OWED_S:
            time.sleep(self._busy_s * self._PAUSES)
            self._busy_s = 0.0

    def write(self, handle: int, buffers: Sequence[Buffer], offset: int) -> int:
        """See `Files.write`; takes a piece at most."""
        with self._at_the_disk():
            taken = super().write(handle, _beginning(buffers, self._PIECE_BYTES), offset)
            self._unsynced_bytes += taken
            if self._unsynced_bytes >= self._PIECE_BYTES:
                super().sync_data(handle)
                self._unsynced_bytes = 0
        return taken

    def sync_data(self, handle: int) -> None:
        """See `Files.sync_data`."""
        with self._at_the_disk():
            super().sync_data(handle)
            self._unsynced_bytes = 0

    def sync(self, handle: int) -> None:
        """See `Files.sync`."""
        with self._at_the_disk():
            super().sync(handle)
            self._unsynced_bytes = 0

    def read(self, handle: int, size: int, offset: int) -> bytes:
        """See `Files.read`."""
        with self._at_the_disk():
            return super().read(handle, size, offset)


def _beginning(buffers: Sequence[Buffer], limit: int) -> list[Buffer]:
    """Return the first `limit` bytes of the buffers, or all of them."""
    beginning: list[Buffer] = []
    for buffer in buffers:
        if len(buffer) >= limit:
            beginning.append(memoryview(buffer)[:limit])
            break
        beginning.append(buffer)
        limit -= len(buffer)
    return beginning
