"""The room on a disk. A thread asks for it, since a disk may keep its caller waiting."""

import shutil
from collections.abc import Callable
from pathlib import Path

from exacta.front.threads import on_thread

DiskSpace = tuple[int, int]
"""The bytes of the disk, and its free bytes; -1 where they are not known."""

UNKNOWN: DiskSpace = (-1, -1)


def ask_disk_space(folder: Path | None, done: Callable[[DiskSpace], None]) -> None:
    """Call back, on the running loop, with the room on the disk of a folder; None is no folder."""
    if folder is None:
        done(UNKNOWN)
    else:
        on_thread(lambda: _measure(folder), lambda found: done(UNKNOWN if isinstance(found, Exception) else found))


def _measure(folder: Path) -> DiskSpace:
    usage = shutil.disk_usage(folder)
    return usage.total, usage.free
