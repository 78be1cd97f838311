"""The event loop as the journals see it: a queue of callbacks, which the test runs by hand on its own thread."""

import asyncio
import queue
from collections.abc import Callable, Sequence
from typing import Any

from exacta.adapters.local.sync_pace import QUICK_SYNCS
from exacta.ports.journal import Buffer, Extent, Failed, GroupAppended, IndexEntry, Journal, JournalEntry, TimeEntry

PATIENCE_SECONDS = 60  # a failing test ends then; a passing one waits only for the event itself


class Turns:
    """Collect callbacks from all threads, run them on this one."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[tuple[Callable[..., object], tuple[object, ...]]] = queue.SimpleQueue()

    def call_soon(self, callback: Callable[..., object], *args: object) -> None:
        self._queue.put((callback, args))

    def turn(self) -> None:
        """Run the next callback, waiting for it if there is none yet."""
        callback, args = self._queue.get(timeout=PATIENCE_SECONDS)
        callback(*args)

    def run_until(self, condition: Callable[[], bool]) -> None:
        """Run callbacks until the condition holds."""
        while not condition():
            self.turn()

    def drain(self) -> None:
        """Run the callbacks that are there."""
        while not self._queue.empty():
            self.turn()

    def wait(self, start: Callable[..., object]) -> Any:
        """Hand `start` a callback and return what it is called with. (No type checker can infer that from a lambda.)"""
        results: list[Any] = []
        start(results.append)
        self.run_until(lambda: bool(results))
        return results[0]


class LoopTurns(Turns):
    """The turns of a loop whose time is virtual: it passes while the test waits."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._loop = loop

    def call_soon(self, callback: Callable[..., object], *args: object) -> None:
        self._loop.call_soon(callback, *args)

    def turn(self) -> None:
        """Let a little time pass."""
        self._loop.run_until_complete(asyncio.sleep(0.001))

    def drain(self) -> None:
        """Let time pass until nothing is left to do."""
        self._loop.run_until_complete(asyncio.sleep(1))


def append(turns: Turns, journal: Journal, *entries: JournalEntry) -> int:
    """Append one group and return the position after it."""
    end: list[int] = []
    result = turns.wait(lambda done: end.append(journal.append(journal.position, entries, done)))
    assert result == GroupAppended(end[0])
    assert journal.position == end[0]
    return end[0]


def wants_snapshot(journal: Journal) -> bool:
    """Return whether the journal asks for one now. (Type checkers take an attribute for what it was a line above.)"""
    return journal.wants_snapshot


def first_offset(found: TimeEntry | None) -> int:
    """Return where the batch begins that was found."""
    assert found is not None
    return found.first_offset


def become_quick(turns: Turns, journal: Journal) -> None:
    """Append until it is known that the disk is quick, where it is."""
    for number in range(QUICK_SYNCS):
        append(turns, journal, JournalEntry(b"%d" % number))


def read(turns: Turns, journal: Journal, extents: Sequence[Extent]) -> bytes:
    """Read the extents on the reading threads, and from the cache if they are there; return all bytes."""
    read: list[Buffer | Failed] = turns.wait(lambda done: journal.read(extents, done))
    buffers = [each for each in read if not isinstance(each, Failed)]
    assert buffers == read
    assert [len(buffer) for buffer in buffers] == [extent.size for extent in extents]
    cached = journal.read_cached(extents)
    assert cached is None or cached == buffers
    return b"".join(buffers)


def batch(stream: int, first_offset: int, data: bytes, *, count: int = 1, timestamp_ms: int = 0) -> JournalEntry:
    """Return an entry whose payload is one batch."""
    row = IndexEntry(stream, first_offset, first_offset + count - 1, timestamp_ms, 0, len(data), count)
    return JournalEntry(b"event of %d at %d" % (stream, first_offset), (data,), (row,))
