"""A commit group in the making: the entries of one journal append, and the answers that wait for it."""

from collections.abc import Callable, Iterable, Set
from enum import IntEnum

from exacta.core.event_codec import encode_event
from exacta.core.events import (
    BatchAppended,
    BatchStaged,
    Event,
    StagedStreamSpilled,
    TransactionEnded,
)
from exacta.core.ids import PartitionId
from exacta.engine.staged_batches import NO_HELD, Held, lay_out
from exacta.ports.journal import IndexEntry, JournalEntry
from exacta.ports.record_format import Buffer, RecordFormat

Release = Callable[[], None]


class Wait(IntEnum):
    """The stage of a group that an answer waits for; a later stage includes the earlier ones."""

    NOTHING = 0
    WRITE = 1
    """The group is written: the death of the process does not lose it, a stop of the machine may."""
    SYNC = 2
    """The group is durable."""


NOTHING, WRITE, SYNC = Wait
"""The members as names of the module: each answer looks them up, and a look-up in an Enum costs more."""


class CommitGroup:
    """Gathers entries in order, the answers that wait for them, and the partitions whose readers will see more."""

    __slots__ = (
        "entries",
        "holds_begin",
        "marker_clock",
        "number",
        "records",
        "releases",
        "synced_too",
        "touched",
        "waited_for",
        "written_releases",
    )

    def __init__(self, number: int, records: RecordFormat, marker_clock: Callable[[], int]) -> None:
        """Begin the group of this number; groups are numbered in the order in which they are written.

        `marker_clock` gives the timestamp of markers, in milliseconds since 1970.
        """
        self.number = number
        self.records = records
        self.marker_clock = marker_clock
        self.entries: list[JournalEntry] = []
        self.written_releases: list[Release] = []
        """The answers to release once the group is written."""
        self.releases: list[Release] = []
        """The answers to release once the group is durable."""
        self.touched: set[PartitionId] = set()
        self.waited_for: Wait = NOTHING
        """The latest stage that an answer waits for. If none waits, the group stays open for more."""
        self.holds_begin = False
        """True if a transaction begins in it whose first write waits until the begin is durable."""
        self.synced_too: Set[PartitionId] = frozenset()
        """The partitions touched by the groups before it that were only written, and are synced along with it."""

    def next(self) -> "CommitGroup":
        """Return the group after this one, empty."""
        return CommitGroup(self.number + 1, self.records, self.marker_clock)

    @property
    def payload_bytes(self) -> int:
        """The bytes of all payloads."""
        return sum(len(part) for entry in self.entries for part in entry.payload)

    @property
    def has_one_waiter(self) -> bool:
        """True if it has entries and exactly one answer waits: no other client gains from being heard meanwhile."""
        return bool(self.entries) and len(self.releases) + len(self.written_releases) == 1

    def add(self, event: Event, payload: Buffer | None, held: list[Held] = NO_HELD) -> None:
        """Turn an event into its journal entry.

        The entry's payload is the batch's bytes, or the transaction's markers and the batches that the state has held.
        """
        encoded = encode_event(event)
        if type(event) is BatchAppended:  # isinstance costs more where the answer is no
            self._add_batch(event, encoded, payload, event.partition_id, event.base_offset)
        elif type(event) is TransactionEnded:
            self.entries.append(_ended(event, encoded, self.records, self.marker_clock(), held))
        elif type(event) is BatchStaged and not event.is_held:
            self._add_batch(event, encoded, payload, event.stream, event.first_index)
        elif type(event) is StagedStreamSpilled:
            self.entries.append(JournalEntry(encoded, *lay_out(held, self.records, 0, append_time_ms=-1)))
        else:
            self.entries.append(JournalEntry(encoded))

    def _add_batch(
        self, event: BatchAppended | BatchStaged, encoded: bytes, payload: Buffer | None, stream: int, first: int
    ) -> None:
        """Add the batch of an event, which lies in the stream from the offset `first` on."""
        assert payload is not None
        last, time_ms = first + event.record_count - 1, event.max_timestamp_ms
        row = IndexEntry(stream, first, last, time_ms, 0, event.size, event.record_count)
        self.entries.append(JournalEntry(encoded, self.records.place(payload, first), (row,)))


def _ended(
    event: TransactionEnded, encoded: bytes, records: RecordFormat, at_ms: int, held: list[Held]
) -> JournalEntry:
    markers: list[Buffer] = []
    rows: list[IndexEntry] = []
    start = 0
    for partition_id, offset, producer_id in event.markers:
        marker = records.marker(offset, producer_id, event.marker_epoch, commit=event.committed, timestamp_ms=at_ms)
        markers.append(marker)
        rows.append(IndexEntry(partition_id, offset, offset, at_ms, start, len(marker), 0))
        start += len(marker)
    if held:
        batches, rows_of_held = lay_out(held, records, start, event.at_ms)
        markers += batches
        rows += rows_of_held
    return JournalEntry(encoded, markers, rows)


def call_all(releases: Iterable[Release]) -> None:
    """Call all, even if one fails: a defect in one front's callback must not keep another client waiting for ever."""
    remaining = iter(releases)
    for release in remaining:
        try:
            release()
        except BaseException:
            call_all(remaining)
            raise
