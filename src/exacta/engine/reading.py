"""Reads of batches, every bit of which is checked before anybody gets them.

What is acknowledged may be altered on the disk later, and it is read from there again and again. Owns the checking and
what the operator is told, once for each place. What a reader is answered is the reader's.
"""

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from exacta.ports.journal import Buffer, Extent, Failed, Journal
from exacta.ports.record_format import RecordFormat

logger = logging.getLogger(__name__)

_MOST_TOLD = 1_000


class Read(NamedTuple):
    """What there is of an extent: whole batches, as they were acknowledged; then, if there is one, the `fault`."""

    batches: Buffer
    fault: str = ""


class BatchReader:
    """Read from the journal, and check."""

    def __init__(self, journal: Journal, records: RecordFormat) -> None:
        self._journal = journal
        self._records = records
        self._told: set[tuple[str, int, int]] = set()

    def read(self, extents: Sequence[Extent], done: Callable[[list[Read]], None]) -> None:
        """Read these, found in this turn of the loop; `done` gets as many in their order, at once or later."""
        buffers = self._journal.read_cached(extents)
        if buffers is not None:
            done(list(map(self._checked, extents, buffers)))
        else:
            self._journal.read(extents, lambda read: done(list(map(self._checked, extents, read))))

    def _checked(self, extent: Extent, buffer: Buffer | Failed) -> Read:
        if isinstance(buffer, Failed):
            return Read(b"", buffer.reason)
        size, fault = self._records.sound(buffer, extent.first_offsets)
        return Read(memoryview(buffer)[:size], fault) if fault else Read(buffer)

    def tell(self, topic: str, partition: int, offset: int, fault: str) -> None:
        """Tell the operator what is wrong with the batch at this offset; its readers ask for it again and again."""
        place = topic, partition, offset
        if place in self._told or len(self._told) >= _MOST_TOLD:
            return
        self._told.add(place)
        logger.error(
            "%s-%d cannot be read from offset %d on: %s. Stop the broker; `exacta log verify` says what is damaged, "
            "and `exacta log repair` what can be put right",
            topic,
            partition,
            offset,
            fault,
        )
