"""`exacta serve` on a disk of a size of its own, which others fill as well: run as a process by the tests.

    python -m tests.small_disk_server BYTES FILL serve-arguments...

`FILL` is a file that holds a number: the bytes that others have taken. What the journal's files take is what is in
them. A write takes what there is room for, and then fails, as a full disk does. It holds for root, and needs no mount.
"""

import errno
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from exacta.adapters.local import journal
from exacta.adapters.local.files import PosixFiles
from exacta.cli.serve import run
from exacta.ports.journal import Buffer
from simulation.disk.in_place import InPlace


class SmallDisk(PosixFiles):
    """Files on a disk of `total` bytes."""

    total = 1 << 40
    fill: Path | None = None

    def total_bytes(self) -> int:
        return self.total

    def available_bytes(self) -> int:
        others = int(self.fill.read_text()) if self.fill is not None else 0
        sizes = 0
        for name in self.names():
            try:
                sizes += os.stat(self.directory / name).st_size
            except FileNotFoundError:
                continue  # removed meanwhile
        return max(0, self.total - others - sizes)

    def write(self, handle: int, buffers: Sequence[Buffer], offset: int) -> int:
        data = b"".join(buffers)
        fits = max(0, self.size(handle) - offset) + self.available_bytes()
        if data and not fits:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(handle, [data[:fits]], offset)

    def allocate(self, handle: int, size: int) -> None:
        if size - self.size(handle) > self.available_bytes():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if size > self.size(handle):
            os.truncate(handle, size)


if __name__ == "__main__":
    total_, fill_, *arguments_ = sys.argv[1:]
    SmallDisk.total, SmallDisk.fill = int(total_), Path(fill_)
    journal.PosixFiles = SmallDisk  # type: ignore[attr-defined]
    # A child process would know nothing of the size, so its jobs run in this one.
    journal.ChildProcess = lambda directory: InPlace(SmallDisk(directory))  # type: ignore[assignment,attr-defined,return-value]
    sys.exit(run(arguments_))
