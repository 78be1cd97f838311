"""The files of a journal on a disk that meets the faults which a test has armed.

Owns what a slow, full or crashing disk does to one call. Only the segments that the broker writes its commit groups to
meet a fault, since only these make it slow or end it.
"""

import errno
import os
import time
from collections.abc import Sequence
from pathlib import Path

from exacta.adapters.local.files import PosixFiles
from exacta.adapters.local.format import SEGMENT_SUFFIX
from exacta.ports.journal import Buffer
from exacta.testing.faults import Armed, Effect, Place


class FaultyFiles(PosixFiles):
    """`PosixFiles` with the faults of a broker."""

    def __init__(self, armed: Armed, directory: Path) -> None:
        super().__init__(directory)
        self._armed = armed
        self._segments: set[int] = set()

    def create(self, name: str, *, exclusive: bool = False) -> int:
        """See `Files.create`."""
        return self._noted(name, super().create(name, exclusive=exclusive))

    def open(self, name: str, *, writable: bool = False) -> int:
        """See `Files.open`."""
        return self._noted(name, super().open(name, writable=writable))

    def _noted(self, name: str, handle: int) -> int:
        (self._segments.add if name.endswith(SEGMENT_SUFFIX) else self._segments.discard)(handle)
        return handle

    def write(self, handle: int, buffers: Sequence[Buffer], offset: int) -> int:
        """See `Files.write`."""
        fault = self._armed.meet(Place.WRITE) if handle in self._segments else None
        if fault is not None:
            self._armed.act(fault)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(handle, buffers, offset)

    def sync_data(self, handle: int) -> None:
        """See `Files.sync_data`."""
        fault = self._armed.meet(Place.SYNC) if handle in self._segments else None
        if fault is not None and fault.effect is Effect.CRASH:
            self._armed.act(fault)
            raise OSError(errno.EIO, f"the test asked for it: {fault}")
        if fault is not None:
            time.sleep(fault.seconds)
        super().sync_data(handle)
        if fault is not None:
            self._armed.act(fault)
