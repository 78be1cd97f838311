"""How much room the disk has: asked on a thread, since a disk may keep who asks waiting."""

import asyncio
import shutil
from asyncio import Future
from collections.abc import Callable
from pathlib import Path

DiskSpace = tuple[int, int]
"""Bytes in all, and bytes that are free; -1 where it is not known."""

UNKNOWN: DiskSpace = (-1, -1)


def ask_disk_space(folder: Path | None, done: Callable[[DiskSpace], None]) -> None:
    """Call back, on the running loop, with the room on the disk of a folder; None is no folder."""
    if folder is None:
        done(UNKNOWN)
        return

    def answered(future: "Future[DiskSpace]") -> None:
        done(UNKNOWN if future.cancelled() or future.exception() is not None else future.result())

    asyncio.get_running_loop().run_in_executor(None, _measure, folder).add_done_callback(answered)


def _measure(folder: Path) -> DiskSpace:
    usage = shutil.disk_usage(folder)
    return usage.total, usage.free
