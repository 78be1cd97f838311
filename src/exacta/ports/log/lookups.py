"""Look-ups in the durable log, beside fetches: batches by their time, and counts of records and bytes.

They look at what is durable, and nothing tells whether this broker still leads the log. So an answer that rests on a
look-up is handed out by `Log.read` or `Log.when_shown`.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from exacta.core.ids import Body, Offset, PartitionId, SubscriptionKey
from exacta.core.values.runs import Run
from exacta.ports.journal import TimeEntry
from exacta.ports.record_format import Buffer


class Entries(NamedTuple):
    """Hold what was found at offsets that are said to be those of entries."""

    lasts: dict[int, Offset]
    """The last offset of each entry that begins there."""
    gaps: dict[int, Offset]
    """The last offset before the next batch, for each one that no batch has: what was there was removed, or deleted."""


class Lookups(Protocol):
    """Looks up what the fronts ask. Every method must be called on the event-loop thread; none blocks."""

    def batch_for_time(
        self, topic: str, partition: int, timestamp_ms: int, offset: int, end_offset: int
    ) -> TimeEntry | None:
        """Return the first batch with a timestamp of `timestamp_ms` or later, in offsets that readers see."""

    def latest_batch(self, topic: str, partition: int) -> TimeEntry | None:
        """Return the durable batch with the latest timestamp, the first one if there are several."""

    def entries(self, key: SubscriptionKey, bases: Iterable[int], alone: Body | None = None) -> Entries:
        """Return the entries that begin at these offsets, as far as they are there.

        Each message of a batch in the encoding `alone` is an entry of its own. So is one whose batch is not at hand.

        An entry that a delivery has noted is not looked for in the log. The others are looked for in order, many of
        them at once where they lie together.
        """

    def batch_at(self, partition_id: PartitionId, offset: int) -> tuple[Offset, Offset] | None:
        """Return the first and the last offset of the batch that has this offset; None: it is not there (any more)."""

    def body_at(self, partition_id: PartitionId, offset: int) -> Body | None:
        """Return the encoding of the batch that has this offset; None: it is not there, or not at hand.

        It is read only where a partition has batches of several encodings.
        """

    def gap_at(self, partition_id: PartitionId, offset: int) -> Run | None:
        """Return the offsets from this one to the next batch, if no batch has it; None: one has it, or none follows.

        Compaction has removed what was there, or it was deleted, so that nobody will ever get it.
        """

    def read_batch(self, topic: str, partition: int, batch: TimeEntry, done: Callable[[Buffer | None], None]) -> None:
        """Read a batch that was looked up; `done` gets None where it cannot be read, or is gone."""

    def read_batch_at(
        self, partition_id: PartitionId, first_offset: int, last_offset: int, done: Callable[[Buffer | None], None]
    ) -> None:
        """Read the batch of these offsets; `done` gets None where it cannot be read, or is gone."""

    def count_unaborted(self, partition_id: PartitionId, offset: int, end_offset: int) -> int:
        """Count the records from `offset` to `end_offset`, without those of aborted transactions; 0: no partition.

        `end_offset` is exclusive, and at most what readers of committed records see.
        """

    def count_seen(self, partition_id: PartitionId, offset: int, end_offset: int, *, read_committed: bool) -> int:
        """Count as `count_unaborted` does, for readers of uncommitted records with those of aborted transactions."""

    def count_between(self, partition_id: PartitionId, offset: int, end_offset: int, *, read_committed: bool) -> int:
        """Count as `count_seen` does, where `end_offset` may also divide a batch."""

    def visible_end(self, topic: str, partition: int, end_offset: int, *, read_committed: bool = True) -> int:
        """Return the offset after the last record that readers get before `end_offset`.

        `end_offset` is at most what they see of a durable state. Returns -1 where there is no such partition.
        """

    def size_bytes(self, topic: str, partition: int) -> int:
        """Return the bytes of a partition's durable batches, as they lie in the journal; 0 if there is no partition."""
