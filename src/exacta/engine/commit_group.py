"""One group commit in the making: the entries of one journal append, and the answers that wait for it."""

from collections.abc import Callable, Iterable
from enum import IntEnum

from exacta.core.events import (
    BatchAppended,
    Event,
    LogStartMoved,
    PartitionsAdded,
    TopicCreated,
    TransactionEnded,
    encode_event,
)
from exacta.core.ids import PartitionId
from exacta.ports.journal import Entry, IndexEntry
from exacta.ports.record_format import Buffer, RecordFormat

Release = Callable[[], None]


class Wait(IntEnum):
    """How long something waits for the disk; a later one includes the earlier ones."""

    NOTHING = 0
    WRITE = 1
    """Until the group is written: the death of the process does not lose it, a stop of the machine may."""
    SYNC = 2
    """Until the group is durable."""


class CommitGroup:
    """Entries in order, the answers that wait for them, and the partitions whose readers will see more."""

    __slots__ = (
        "entries",
        "holds_begin",
        "number",
        "releases",
        "synced_too",
        "touched",
        "waited_for",
        "written_releases",
    )

    def __init__(self, number: int) -> None:
        self.number = number
        """Groups are numbered in the order in which they are written."""
        self.entries: list[Entry] = []
        self.written_releases: list[Release] = []
        """The answers to release once the group is written."""
        self.releases: list[Release] = []
        """The answers to release once the group is durable."""
        self.touched: set[PartitionId] = set()
        self.waited_for = Wait.NOTHING
        """The most that somebody waits for. A group that nobody waits for is written with the next one."""
        self.holds_begin = False
        """Whether a transaction begins in it whose first write waits until that is durable."""
        self.synced_too: set[PartitionId] = set()
        """The partitions touched by the groups before it that were only written, and are synced along with it."""

    @property
    def has_one_waiter(self) -> bool:
        """Whether it has entries, and exactly one answer waits: no other client gains from being heard meanwhile."""
        return bool(self.entries) and len(self.releases) + len(self.written_releases) == 1

    def add(self, event: Event, payload: Buffer | None, records: RecordFormat, marker_clock: Callable[[], int]) -> None:
        """Turn an event into its journal entry, whose payload is the batch's bytes or the transaction's markers.

        `marker_clock` gives the timestamp of markers, in milliseconds since 1970.
        """
        encoded = encode_event(event)
        if isinstance(event, BatchAppended):
            assert payload is not None
            last_offset = event.base_offset + event.record_count - 1
            row = IndexEntry(
                event.partition_id,
                event.base_offset,
                last_offset,
                event.max_timestamp_ms,
                0,
                event.size,
                event.record_count,
            )
            self.entries.append(Entry(encoded, records.place(payload, event.base_offset), (row,)))
            self.touched.add(event.partition_id)
        elif isinstance(event, TransactionEnded):
            self.entries.append(_ended(event, encoded, records, marker_clock()))
            self.touched.update(partition_id for partition_id, _, _ in event.markers)
        else:
            self.entries.append(Entry(encoded))
            if isinstance(event, LogStartMoved):
                self.touched.add(event.partition_id)
            if isinstance(event, TopicCreated | PartitionsAdded):
                first = event.first_partition_id
                self.touched.update(PartitionId(first + index) for index in range(event.partition_count))


def _ended(event: TransactionEnded, encoded: bytes, records: RecordFormat, at_ms: int) -> Entry:
    markers: list[bytes] = []
    rows: list[IndexEntry] = []
    start = 0
    for partition_id, offset, producer_id in event.markers:
        marker = records.marker(offset, producer_id, event.marker_epoch, commit=event.committed, timestamp_ms=at_ms)
        markers.append(marker)
        rows.append(IndexEntry(partition_id, offset, offset, at_ms, start, len(marker), 0))
        start += len(marker)
    return Entry(encoded, markers, rows)


def call_all(releases: Iterable[Release]) -> None:
    """Call all, even if one fails: a defect in one front's callback must not keep another client waiting for ever."""
    remaining = iter(releases)
    for release in remaining:
        try:
            release()
        except BaseException:
            call_all(remaining)
            raise
