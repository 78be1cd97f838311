"""A journal in memory: the same contract as the local one, held to it by the same test suite.

This fake has no trick of speed: everything is written as plainly as the contract reads, so that comparing the local
journal with it means something. Faults are set in `MemoryStorage`.

Theory of operation. `MemoryStorage` plays the disk: it outlives the journals opened on it, one after another. An
append puts its group beside the durable ones and asks the loop for a turn; in that turn the group becomes durable and
`done` is called. A test that abandons a journal before that turn has crashed it with an append in flight, and chooses
by `keep_in_flight` what the disk makes of it. A journal left behind is fenced like any other: its position is
outdated, so that its appends conflict. A group that was only written stays, unless the test says that the machine
stopped, too (`stop_machine`).

A journal that is not exclusive plays one of several brokers: the journal that was opened last has the lead, and those
before it live on. They are told so at their next append or confirm, and an append in flight fails.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from exacta.adapters.memory.journal_reader import MemoryJournalReader
from exacta.adapters.memory.storage import MemoryStorage, StoredGroup
from exacta.ports.compaction import Compact, Compaction, Rewritten
from exacta.ports.journal import (
    AppendResult,
    Cleaned,
    CompactionOrder,
    Conflict,
    Failed,
    Fold,
    GroupAppended,
    IndexEntry,
    Joining,
    JournalEntries,
    Room,
)

EVERYTHING = 1 << 63
"""The floor of a stream that is gone."""
GROUP_OVERHEAD_BYTES = 44  # any positive number would do: a group must move the position, however empty it is


class MemoryJournal(MemoryJournalReader):
    """Implement `exacta.ports.journal.Journal` over a `MemoryStorage`."""

    def __init__(
        self,
        storage: MemoryStorage,
        call_soon: Callable[..., object],
        *,
        segment_bytes: int = 128 << 20,
        at_once_bytes: int = 64 << 10,
        unsynced_writes: bool = True,
        is_exclusive: bool = True,
    ) -> None:
        """Open the storage as after a restart: a group in flight is lost, unless `keep_in_flight` saved it."""
        storage.in_flight = storage.last_appended = None
        storage.unsynced = 0
        storage.openings += 1
        super().__init__(storage, call_soon)
        self.is_exclusive = is_exclusive
        self._opening = storage.openings
        self.may_have_lost = storage.may_have_lost
        self._has_appended = False
        self.wants_snapshot = False
        self._segment_bytes = segment_bytes
        self._at_once_bytes = at_once_bytes
        self._unsynced_writes = unsynced_writes and is_exclusive
        self._segment_base = storage.position
        self._failure: Failed | None = None
        self._wants_seal = False

    @property
    def is_quick(self) -> bool:
        """See `Journal.is_quick`."""
        return self._storage.is_quick and self._goes_on and self.is_exclusive

    @property
    def _goes_on(self) -> bool:
        return self._has_appended and not self._is_full

    def confirm(self, done: Callable[[AppendResult], None]) -> None:
        """See `Journal.confirm`."""
        self._call_soon(lambda: done(self._confirmed()))

    def _confirmed(self) -> AppendResult:
        if self._failure is None and self._storage.append_fault is not None:
            self._failure = Failed(self._storage.append_fault)
        if self._failure is not None:
            return self._failure
        return Conflict(self._storage.position) if self._is_superseded else GroupAppended(self._position)

    @property
    def _is_superseded(self) -> bool:
        return not self.is_exclusive and self._opening != self._storage.openings

    def append(self, expected_position: int, entries: JournalEntries, done: Callable[[AppendResult], None]) -> int:
        """See `Journal.append`."""
        storage = self._storage
        if self._failure is not None:
            self._call_soon(done, self._failure)
            return self._position
        if not expected_position == self._position == storage.position or self._is_superseded:
            self._call_soon(done, Conflict(storage.position))
            return self._position
        assert storage.in_flight is None, "one append at a time"
        if not entries and not storage.unsynced:
            raise ValueError("an append needs entries where all is durable")
        group = self._make_group(entries)
        if self._is_full:
            self._segment_base = self._position
            self._wants_seal = False
            self.wants_snapshot = True
        storage.in_flight = group
        self._call_soon(self._finish_append, group, done)
        return group.end

    @property
    def _is_full(self) -> bool:
        size = self._position - self._segment_base
        return size >= self._segment_bytes or self._wants_seal

    def write(self, expected_position: int, entries: JournalEntries, *, durably: bool = False) -> AppendResult | None:
        """See `Journal.write`."""
        storage = self._storage
        if self._failure is not None:
            return self._failure
        if not expected_position == self._position == storage.position or self._is_superseded:
            return Conflict(storage.position)
        assert storage.in_flight is None, "no write while an append is in flight"
        if not entries:
            raise ValueError("a write needs entries")
        if not (self.is_quick if durably else self._unsynced_writes and self._goes_on):
            return None
        group = self._make_group(entries)
        with_it = storage.groups[len(storage.groups) - storage.unsynced :] if durably else []
        if group.size - GROUP_OVERHEAD_BYTES + sum(each.size for each in with_it) > self._at_once_bytes:
            return None
        if storage.append_fault is not None:
            self._failure = Failed(storage.append_fault)
            return self._failure
        storage.groups.append(group)
        storage.unsynced = 0 if durably else storage.unsynced + 1
        self._position = group.end
        self._publish(group)
        return GroupAppended(group.end)

    def _make_group(self, entries: JournalEntries) -> StoredGroup:
        size = GROUP_OVERHEAD_BYTES if entries else 0
        batches: list[tuple[IndexEntry, bytes]] = []
        last_offsets: dict[int, int] = {}
        for entry in entries:
            payload = b"".join(entry.payload)
            size += len(entry.event) + len(payload)
            for row in entry.index:
                if not 0 <= row.start <= row.start + row.size <= len(payload):
                    raise ValueError(f"{row} points outside its payload of {len(payload)} bytes")
                before = last_offsets.get(row.stream)
                if before is None:
                    stored = self._batches.get(row.stream)
                    before = stored[-1][0].last_offset if stored else -1
                if not before < row.first_offset <= row.last_offset:
                    raise ValueError(f"{row} goes back in its stream")
                last_offsets[row.stream] = row.last_offset
                batches.append((row, payload[row.start : row.start + row.size]))
        events = tuple(bytes(entry.event) for entry in entries)
        return StoredGroup(position=self._position, end=self._position + size, events=events, batches=tuple(batches))

    def _finish_append(self, group: StoredGroup, done: Callable[[AppendResult], None]) -> None:
        storage = self._storage
        if storage.in_flight is group:
            self._settle(group)
        if self._failure is not None:
            done(self._failure)
        elif storage.last_appended is group:
            done(GroupAppended(group.end))
        elif self._is_superseded:
            self._failure = Failed("another broker has taken the lead: nobody knows whether the group is there")
            done(self._failure)
        # Else the storage was opened again meanwhile: this journal is the past, and nobody waits for its answers.

    def _settle(self, group: StoredGroup) -> None:
        storage = self._storage
        if storage.append_fault is not None:
            self._failure = Failed(storage.append_fault)
            return
        storage.keep_in_flight()
        storage.last_appended = group
        storage.may_have_lost = False
        storage.may_be_unsynced = self._unsynced_writes
        self._has_appended = True
        self._position = group.end
        self._publish(group)

    def replay(self) -> tuple[bytes | None, Iterator[bytes]]:
        """See `Journal.replay`."""
        snapshots = self._storage.snapshots
        position = max(snapshots, default=0)
        groups = [group for group in self._storage.groups if group.position >= position]
        return snapshots.get(position), (event for group in groups for event in group.events)

    def save_snapshot(self, blob: bytes, position: int, done: Callable[[Failed | None], None] | None = None) -> None:
        """See `JournalSnapshots.save_snapshot`."""
        storage = self._storage
        if position != self._position or storage.unsynced or storage.in_flight is not None or self._failure is not None:
            raise ValueError(f"position {position} is not a position of a durable journal")
        self._store_snapshot(blob, position, done)
        self.wants_snapshot = False

    def fold_snapshot(self, fold: Fold, done: Callable[[Failed | None], None]) -> None:
        """See `JournalSnapshots.fold_snapshot`."""
        storage = self._storage
        durable = storage.groups[: len(storage.groups) - storage.unsynced]
        position = durable[-1].end if durable else 0
        for target in sorted({min(self._segment_base, position), position}):
            begin = max((at for at in storage.snapshots if at <= target), default=0)
            if begin == target:
                continue
            events = (event for group in durable if begin <= group.position < target for event in group.events)
            storage.snapshots[target] = fold(storage.snapshots.get(begin), events)
        self._call_soon(done, None)
        self.wants_snapshot = False

    def _store_snapshot(self, blob: bytes, position: int, done: Callable[[Failed | None], None] | None) -> None:
        self._storage.snapshots[position] = bytes(blob)
        if done is not None:
            self._call_soon(done, None)

    def clean(self, floors: Mapping[int, int], done: Callable[[Cleaned | Failed], None]) -> None:
        """See `JournalSpace.clean`."""
        storage = self._storage
        if storage.clean_fault is not None:
            self._call_soon(done, Failed(storage.clean_fault))
            return
        last_two = sorted(storage.snapshots)[-2:]
        unneeded_to = last_two[0] if len(last_two) == 2 else 0
        freed_bytes = 0
        for number, group in enumerate(storage.groups):
            if group.end <= unneeded_to:
                kept = tuple(
                    each
                    for each in group.batches
                    if each[0].last_offset
                    >= max(floors.get(each[0].stream, EVERYTHING), self.compacted_to(each[0].stream))
                )
                freed_bytes += sum(row.size for row, _ in group.batches) - sum(row.size for row, _ in kept)
                freed_bytes += sum(map(len, group.events))
                storage.groups[number] = replace(group, events=(), batches=kept)
        for stream in [each for each in storage.compacted if each not in floors]:
            del storage.compacted[stream]
        self._publish_all()
        may_free_more = any(
            row.last_offset < floors.get(row.stream, EVERYTHING)
            for group in storage.groups
            if group.end <= self._segment_base
            for row, _ in group.batches
        )
        if may_free_more and unneeded_to < self._segment_base:
            self.wants_snapshot = True
        self._call_soon(done, Cleaned(freed_bytes, may_free_more))

    def compactable(self, stream: int, end_offset: int) -> tuple[int, int]:
        """See `JournalSpace.compactable`."""
        begin = self.compacted_to(stream)
        sealed = [
            row.last_offset + 1
            for group in self._storage.groups
            if group.end <= self._segment_base
            for row, _ in group.batches
            if row.stream == stream and row.last_offset < end_offset
        ]
        return begin, max([begin, *sealed])

    def compact(
        self,
        orders: Sequence[CompactionOrder],
        floors: Mapping[int, int],
        rewriter: Compact,
        done: Callable[[Failed | None], None],
    ) -> None:
        """See `JournalSpace.compact`."""
        storage = self._storage
        if storage.clean_fault is not None:
            self._call_soon(done, Failed(storage.clean_fault))
            return
        for order in orders:
            begin, end = self.compactable(order.stream, order.end_offset)
            compaction = rewriter(order.rules)
            own = [each for each in self._batches.get(order.stream, []) if each[0].last_offset < end]
            joining = [each for place in order.joining for each in self._joining(order.stream, place, compaction)]
            batches = [
                each
                for each in sorted(own + joining, key=lambda each: each[0].first_offset)
                if floors[order.stream] <= each[0].last_offset
            ]
            if not batches:
                continue
            end = batches[-1][0].last_offset + 1
            for row, batch in batches:
                if row.first_offset >= begin:
                    compaction.note(batch)
            storage.compacted[order.stream] = [
                (_rewritten(row, left), bytes(left.batch))
                for row, batch in batches
                if (left := compaction.rewrite(batch, row.last_offset == end - 1)) is not None
            ]
        self._publish_all()
        self._call_soon(done, None)

    def _joining(self, stream: int, place: Joining, compaction: Compaction) -> Iterator[tuple[IndexEntry, bytes]]:
        for row, batch in self._batches.get(place.stream, []):
            first_offset, last_offset = row.first_offset + place.first_offset, row.last_offset + place.first_offset
            moved = bytes(compaction.moved(batch, first_offset, place.append_time_ms))
            yield row._replace(stream=stream, first_offset=first_offset, last_offset=last_offset), moved

    def sealed_to(self, stream: int) -> int:
        """See `JournalSpace.sealed_to`."""
        sealed = [
            row.last_offset + 1
            for group in self._storage.groups
            if group.end <= self._segment_base
            for row, _ in group.batches
            if row.stream == stream
        ]
        return max([self.compacted_to(stream), *sealed])

    @property
    def room(self) -> Room | None:
        """See `JournalSpace.room`; a test may set `storage.room`."""
        return self._storage.room

    @property
    def watches_room(self) -> bool:
        """See `JournalSpace.watches_room`."""
        return self._storage.room is not None

    def measure_room(self, done: Callable[[], None]) -> None:
        """See `JournalSpace.measure_room`."""
        self._call_soon(done)

    def seal(self) -> None:
        """See `JournalSpace.seal`."""
        self._wants_seal = self._position > self._segment_base

    def close(self) -> None:
        """See `Journal.close`; a group in flight becomes durable, as closing the local journal waits for its disk."""
        if self._storage.in_flight is not None and self._failure is None:
            self._settle(self._storage.in_flight)
        if self._failure is None:
            self._storage.unsynced = 0
            self._storage.may_be_unsynced = self._storage.may_be_unsynced and not self._has_appended


def _rewritten(row: IndexEntry, left: Rewritten) -> IndexEntry:
    return row._replace(max_timestamp_ms=left.max_timestamp_ms, size=len(left.batch), record_count=left.record_count)
