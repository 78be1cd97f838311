"""Segment indexes of newly sealed segments, written on the keeping thread.

Without its segment index a segment is not cleaned, and the next opening is slower. What could not be written is tried
again when the journal is cleaned.
"""

import logging
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from exacta.adapters.local.errors import damaged
from exacta.adapters.local.files import Files
from exacta.adapters.local.index.segment_index import map_segment_index, pack_segment_index
from exacta.adapters.local.index.segment_rows import Segment, SegmentIndex
from exacta.adapters.local.worker import Jobs
from exacta.adapters.local.writer import write_file
from exacta.ports.journal import JournalDamaged

logger = logging.getLogger(__name__)


class Sealed(NamedTuple):
    """Say what the writer knew of the segment that it left."""

    mark: bytes
    last_checksum: int


class IndexWriter:
    """Write segment indexes on a thread; every method is called on the event-loop thread."""

    def __init__(self, files: Files, thread: Jobs, post: Callable[..., None]) -> None:
        self._files = files
        self._thread = thread
        self._post = post
        self._written: deque[tuple[Segment, SegmentIndex]] = deque()  # filled by the thread
        self._missing: deque[tuple[Segment, int, Sealed]] = deque()  # filled by the thread, emptied by `try_again`

    def write(self, segment: Segment, end: int, sealed: Sealed) -> None:
        """Write the segment index of a segment that ends at this position, and let it be used once it is durable."""
        self._thread.submit(lambda: self._write_on_thread(segment, end, sealed))

    def try_again(self) -> None:
        """Write those that could not be written so far."""
        while self._missing:
            self.write(*self._missing.popleft())

    def _write_on_thread(self, segment: Segment, end: int, sealed: Sealed) -> None:
        try:
            index = write_segment_index(self._files, segment, sealed.mark, end, sealed.last_checksum)
        except (OSError, JournalDamaged) as error:
            logger.warning("the segment index of %s could not be written: %s", segment.name, error)
            self._missing.append((segment, end, sealed))
            return
        self._written.append((segment, index))
        self._post(self._use)

    def _use(self) -> None:
        while self._written:
            segment, index = self._written.popleft()
            segment.seal(index)

    def close(self) -> None:
        """Let go of the indexes that nobody uses yet; the thread has ended."""
        self._written.clear()


def write_segment_index(files: Files, segment: Segment, mark: bytes, end: int, last_checksum: int) -> SegmentIndex:
    """Write the segment index of a sealed segment from the rows that it has grown; return it mapped."""
    name = segment.index_name
    write_file(files, name, pack_segment_index(segment.growing, mark, end, last_checksum))
    segment_index = map_segment_index(files, name, mark)
    if segment_index is None:
        raise damaged(files, name, 0, "what was just written reads differently")
    return segment_index
