"""Reads of record batches: from the page cache at once, or on a thread.

This module plans a read (which bytes of a segment file in which call), and has the handles of sealed segments and the
reading threads. Look-ups are in `index.stream_index`.

Theory of operation. Batches of one stream lie between those of others. Reading each by itself would cost a call for
every batch, thousands where batches are small; so neighbours are read in one go, gaps included, and the gaps cut out
in memory.

All book-keeping of handles happens on the event-loop thread. A handle is opened on a reading thread, handed over when
that thread has done with it, and closed again when more than `HANDLE_LIMIT` are open and no read uses it. The active
segment's handle is its writer's, and open as long as it is active.
"""

import errno
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import chain
from operator import add, sub
from typing import NamedTuple

from exacta.adapters.local.files import Files
from exacta.adapters.local.index.segment_rows import Place, Segment
from exacta.adapters.local.worker import NewWorker, Worker
from exacta.ports.journal import Buffer, Extent, Failed

# Copying a page from the page cache takes no longer than another system call.
GAP_BYTES = 4096
RUN_BYTES = 4 << 20
HANDLE_LIMIT = 128
READER_THREADS = 2


class Run(NamedTuple):
    """One read of a file, and which pieces of it are wanted (None: all)."""

    offset: int
    size: int
    pieces: list[slice] | None


def plan(extent: Extent) -> tuple[Segment, list[Run]]:
    """Return the segment in which the extent lies and the reads that yield its batches in order."""
    assert isinstance(extent.place, Place)
    rows, low, high = extent.place
    positions = list(rows.positions[low:high])
    ends = rows.ends[low:high]
    sizes = list(map(sub, ends, chain((rows.end_before(low),), ends)))
    shift = rows.segment.file_offset(0)
    span = positions[-1] + sizes[-1] - positions[0]
    if span == extent.size:
        return rows.segment, [Run(positions[0] + shift, span, None)]
    if span <= RUN_BYTES and span - extent.size <= GAP_BYTES + extent.size:
        return rows.segment, [_run(shift, positions, sizes)]
    runs: list[Run] = []
    begin = 0
    for row in range(1, len(positions)):
        gap = positions[row] - positions[row - 1] - sizes[row - 1]
        if gap > GAP_BYTES or positions[row] + sizes[row] - positions[begin] > RUN_BYTES:
            runs.append(_run(shift, positions[begin:row], sizes[begin:row]))
            begin = row
    runs.append(_run(shift, positions[begin:], sizes[begin:]))
    return rows.segment, runs


def _run(shift: int, positions: list[int], sizes: list[int]) -> Run:
    origin = positions[0]
    size = positions[-1] + sizes[-1] - origin
    if len(positions) == 1:
        return Run(origin + shift, size, None)
    starts = [position - origin for position in positions]
    return Run(origin + shift, size, list(map(slice, starts, map(add, starts, sizes))))


def assemble(runs: list[Run], buffers: list[Buffer]) -> Buffer:
    """Return the wanted pieces of what was read as one buffer."""
    if len(runs) == 1 and runs[0].pieces is None:
        return buffers[0]
    parts: list[Buffer] = []
    for run, buffer in zip(runs, buffers, strict=True):
        if run.pieces is None:
            parts.append(buffer)
        else:
            parts.extend(map(memoryview(buffer).__getitem__, run.pieces))
    return b"".join(parts)


class Reader:
    """Read extents; every method is called on the event-loop thread."""

    def __init__(self, files: Files, call_soon: Callable[..., object], new_worker: NewWorker = Worker) -> None:
        self._files = files
        self._call_soon = call_soon
        self._worker = new_worker("exacta-journal-read", READER_THREADS)
        self._can_read_nowait = True
        self._closed = False
        # Handles that the threads have opened and done with, not yet taken over; a deque, as extending it is atomic.
        self._opened: deque[tuple[Segment, int]] = deque()
        self._sealed_open: dict[Segment, None] = {}  # in order of last use
        self._retiring: list[tuple[Sequence[Segment], Callable[[], None]]] = []

    def seal(self, segment: Segment) -> None:
        """Take over the handle of a segment that was active."""
        self._sealed_open[segment] = None
        self._evict()

    def retire(self, segments: Sequence[Segment], done: Callable[[], None]) -> None:
        """Call back once nobody reads these any more, in which nothing will be found from now on."""
        self._retiring.append((segments, done))
        self._finish_retiring()

    def _finish_retiring(self) -> None:
        for each in [each for each in self._retiring if not any(segment.readers for segment in each[0])]:
            self._retiring.remove(each)
            segments, done = each
            for segment in segments:
                if segment in self._sealed_open:
                    self._close(segment)
            done()

    def _close(self, segment: Segment) -> None:
        del self._sealed_open[segment]
        assert segment.handle is not None
        self._files.close(segment.handle)
        segment.handle = None

    def read_cached(self, extents: Sequence[Extent]) -> list[Buffer] | None:
        """See `Journal.read_cached`."""
        if not self._can_read_nowait:
            return None
        results: list[Buffer] = []
        for extent in extents:
            segment, runs = plan(extent)
            if segment.handle is None:
                return None
            buffers: list[Buffer] = []
            for run in runs:
                buffer = bytearray(run.size)
                try:
                    whole = self._files.read_nowait(segment.handle, buffer, run.offset)
                except OSError:
                    return None  # the thread will meet the error again, and tells of it
                if not whole:
                    self._can_read_nowait = whole is not None
                    return None
                buffers.append(buffer)
            self._touch(segment)
            results.append(assemble(runs, buffers))
        return results

    def read(self, extents: Sequence[Extent], done: Callable[[list[Buffer | Failed]], None]) -> None:
        """See `Journal.read`."""
        plans = [plan(extent) for extent in extents]
        handles = {segment: segment.handle for segment, _ in plans}
        for segment in handles:
            segment.readers += 1
            self._touch(segment)
        self._worker.submit(lambda: self._read_on_thread(plans, handles, done))

    def _read_on_thread(
        self,
        plans: list[tuple[Segment, list[Run]]],
        handles: dict[Segment, int | None],
        done: Callable[[list[Buffer | Failed]], None],
    ) -> None:
        results: list[Buffer | Failed] = []
        opened: list[tuple[Segment, int]] = []
        try:
            for segment, runs in plans:
                try:
                    handle = handles[segment]
                    if handle is None:
                        handle = handles[segment] = self._files.open(segment.name)
                        opened.append((segment, handle))
                    results.append(assemble(runs, [self._read_run(segment, handle, run) for run in runs]))
                except OSError as error:
                    results.append(self._failed(error))
        finally:
            results += [Failed("the read did not finish")] * (len(plans) - len(results))
            self._opened.extend(opened)  # not before: of two handles of one segment the second is closed at once
            with suppress(RuntimeError):  # the event loop is closed: nobody waits any more
                self._call_soon(self._finish, list(handles), results, done)

    @staticmethod
    def _failed(error: OSError) -> Failed:
        return Failed(str(error))

    def _read_run(self, segment: Segment, handle: int, run: Run) -> bytes:
        data = self._files.read(handle, run.size, run.offset)
        if len(data) != run.size:
            raise OSError(errno.EIO, f"{segment.name} ends before byte {run.offset + run.size}")
        return data

    def _finish(
        self,
        segments: list[Segment],
        results: list[Buffer | Failed],
        done: Callable[[list[Buffer | Failed]], None],
    ) -> None:
        for segment in segments:
            segment.readers -= 1
        if not self._closed:
            self._take_over()
            self._evict()
            self._finish_retiring()
        done(results)

    def _take_over(self) -> None:
        while self._opened:
            segment, handle = self._opened.popleft()
            if segment.handle is None:
                segment.handle = handle
                self._sealed_open[segment] = None
            else:
                self._files.close(handle)  # two threads opened it at once

    def _touch(self, segment: Segment) -> None:
        if segment in self._sealed_open:
            del self._sealed_open[segment]
            self._sealed_open[segment] = None

    def _evict(self) -> None:
        excess = len(self._sealed_open) - HANDLE_LIMIT
        if excess <= 0:
            return
        for segment in [segment for segment in self._sealed_open if not segment.readers][:excess]:
            self._close(segment)

    def close(self) -> None:
        """Finish the reads that wait and close all handles of sealed segments."""
        self._worker.close()
        self._take_over()
        self._closed = True
        for segment in list(self._sealed_open):
            self._close(segment)
