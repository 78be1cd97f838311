"""One group commit in the making: what will be written in one journal append, and who waits for it."""

from collections.abc import Callable

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


class CommitGroup:
    """Entries in order, the answers to release once they are durable, and the partitions whose readers will see more.

    `urgent`: somebody waits for this to be durable. `awaited`: somebody waits for it to be written, and has the
    `written_releases`. If it is neither, it may wait for the next one who does. `begins`: a transaction begins in it.
    """

    __slots__ = (
        "awaited",
        "begins",
        "entries",
        "number",
        "releases",
        "synced_too",
        "touched",
        "urgent",
        "written_releases",
    )

    def __init__(self, number: int) -> None:
        self.number = number
        self.entries: list[Entry] = []
        self.written_releases: list[Callable[[], None]] = []
        self.releases: list[Callable[[], None]] = []
        self.touched: set[PartitionId] = set()
        self.urgent = False
        self.awaited = False
        self.begins = False
        self.synced_too: set[PartitionId] = set()
        """What is touched by the groups before it that were only written, and are synced along with it."""

    @property
    def is_lonely(self) -> bool:
        """Whether there is something in it that only one waits for: nobody else gains by being heard meanwhile."""
        return bool(self.entries) and len(self.releases) + len(self.written_releases) == 1

    def add(self, event: Event, payload: Buffer | None, records: RecordFormat, marker_clock: Callable[[], int]) -> None:
        """Turn an event into its journal entry; a batch's bytes and markers, of that time, become its payload."""
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
