"""The lines of the log about upkeep: what retention has deleted, what was compacted, and what the disk got back.

Owns the words and the sums. A run of retention has one line, once all that it has deleted is durable.
"""

import logging
from collections.abc import Sequence

from exacta.core.state.partition import Partition
from exacta.engine.event_lines import some_of
from exacta.ports.log import Counts

logger = logging.getLogger("exacta")
retention = logger.getChild("retention")
compaction = logger.getChild("compaction")


class RetentionRun:
    """One look at all partitions. The counts of the engine say what it has deleted."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._before = counts.trims, counts.trimmed_records
        self._undurable = 0
        self._has_ended = False

    def begins(self) -> None:
        """Note that something is being deleted, of which `durable` will tell."""
        self._undurable += 1

    def durable(self) -> None:
        """Note that what was deleted is durable."""
        self._undurable -= 1
        self._tell()

    def ends(self) -> None:
        """Note that all partitions were looked at."""
        self._has_ended = True
        self._tell()

    def _tell(self) -> None:
        partitions = self._counts.trims - self._before[0]
        if self._has_ended and not self._undurable and partitions:
            values = {"offsets": self._counts.trimmed_records - self._before[1], "partitions": partitions}
            retention.info("retention has deleted offsets=%(offsets)d in partitions=%(partitions)d", values)


def tell_of_compaction(partitions: Sequence[Partition], seconds: float) -> None:
    """Tell that partitions were compacted."""
    values = {"partitions": some_of(f"{each.topic}-{each.index}" for each in partitions), "seconds": seconds}
    compaction.info("compaction of %(partitions)s took %(seconds).1f s", values)


def tell_of_space(freed_bytes: int) -> None:
    """Tell that the journal has become smaller."""
    retention.info("the journal gave %(freed_bytes)d bytes back to the disk", {"freed_bytes": freed_bytes})
