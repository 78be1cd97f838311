"""How much room the disk has: asked on a thread, since a disk may keep who asks waiting."""

import shutil
from collections.abc import Callable
from pathlib import Path

from exacta.front.threads import on_thread

DiskSpace = tuple[int, int]
"""Bytes in all, and bytes that are free; -1 where it is not known."""

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
