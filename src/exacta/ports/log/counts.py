"""Counts: the integers that the engine keeps of its work. They only grow, and a restart begins again.

`exacta.metrics` reads them when it is asked. Nothing here is decided by them.
"""

from collections import defaultdict

from exacta.core.ids import Cause, PartitionId
from exacta.core.rejections import Rejection
from exacta.histogram import ENTRIES, Histogram

FENCING = frozenset({Cause.NEW_INSTANCE, Cause.TIME_OUT, Cause.MARKER, Cause.IDLE, Cause.LOSS})
"""The causes that take its pair from the holder of a transactional id, against its will."""


class AppendCounts:
    """The batches that were appended to one partition, or staged for it."""

    __slots__ = ("batches", "bytes", "records")

    def __init__(self) -> None:
        self.batches = 0
        self.bytes = 0
        self.records = 0


class Counts:
    """The work that one engine has done since its start."""

    def __init__(self) -> None:
        self.appended: defaultdict[PartitionId, AppendCounts] = defaultdict(AppendCounts)
        self.read_bytes: defaultdict[str, int] = defaultdict(int)
        """The bytes of the batches that readers were given, by topic."""
        self.groups = Histogram(ENTRIES)
        """The commit groups, by their events."""
        self.rejections: defaultdict[Rejection, int] = defaultdict(int)
        self.ended: defaultdict[tuple[bool, Cause], int] = defaultdict(int)
        """The transactions that have ended: committed or not, and the cause."""
        self.fenced: defaultdict[Cause, int] = defaultdict(int)
        """The transactional ids whose pair was taken from its holder."""
        self.rebalances = 0
        self.trims = 0
        """The times that retention has deleted records of a partition."""
        self.trimmed_records = 0
        """The offsets that retention has deleted."""
        self.compactions: defaultdict[bool, int] = defaultdict(int)
        """The runs of compaction: those that went well, and those that failed."""
        self.freed_bytes = 0
        """The bytes of the journal that were given back to the disk."""
