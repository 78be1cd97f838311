"""Upkeep: retention, compaction and the freeing of space, which keep a log usable for years.

Owns when partitions are looked at, and from which offset on their records are kept, by time and size (Kafka's
retention.ms and retention.bytes). Owns neither what a topic's configurations mean (`RetentionRules`) nor which
partitions are compacted (`compaction_schedule`), what the backlogs of subscriptions cost (`backlog`), nor how space is
freed (`JournalSpace`).

Theory of operation. At intervals all partitions are looked at, some in each turn of the loop. Records that are too old
or too many are deleted, but neither beyond the last stable offset, since an open transaction keeps its records, nor
beyond what a subscription has acknowledged (`exacta.core.log.keeping`). Batches go one by one, from the front, up to
the first that is young enough, although older ones may follow it.

At other intervals the journal is asked to free the space of deleted records until it has nothing
more to free. Compaction comes before that, because it makes space to free; its partitions are also looked at some in
each turn. `fold_snapshot` makes a snapshot, now or soon, where the journal wants one in order to free more.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice

from msgspec import Struct

from exacta.core.commands import Command, Trim
from exacta.core.ids import PartitionId
from exacta.core.log.staging import staged_bytes, streams_of
from exacta.core.state.partition import Partition
from exacta.core.state.state import State
from exacta.engine.ages import first_young
from exacta.engine.backlog import BacklogPolicy, Backlogs
from exacta.engine.compaction_schedule import Candidate, CompactionPolicy, CompactionSchedule
from exacta.engine.counts import Counts
from exacta.engine.deadlines import Deadlines
from exacta.engine.upkeep_lines import RetentionRun, tell_of_compaction, tell_of_space
from exacta.engine.visible import Visible
from exacta.ports.compaction import Compact
from exacta.ports.journal import Cleaned, Failed, JournalReader, JournalSpace
from exacta.ports.scheduler import Scheduler

PARTITIONS_AT_ONCE = 3
"""The number of partitions that are looked at in one turn of the loop.

In a log of 100 GB, whose segments must be added up, each may take 15 ms.
"""


class Retention(Struct, frozen=True):
    """The time and the size that a partition keeps, its compaction, and the bounds of its subscriptions' backlogs.

    None: there is no bound, or no compaction.
    """

    retention_ms: int | None = None
    retention_bytes: int | None = None
    compacting: CompactionPolicy | None = None
    backlog: BacklogPolicy = BacklogPolicy()


RetentionRules = Callable[[Mapping[str, str]], Retention]
"""Returns the retention that a topic's own configurations ask for."""


class Schedule(Struct, frozen=True, kw_only=True):
    """The intervals of the upkeep, and the rules that it goes by."""

    rules: RetentionRules
    rewriter: Compact
    record_clock: Callable[[], int] | None = None
    """The clock by which records are old, in milliseconds since 1970; None: the engine's clock."""
    check_interval_ms: int = 300_000
    clean_interval_ms: int = 15_000
    backlog_interval_ms: int = 10_000


class Upkeep:
    """Deletes, compacts and frees at intervals; `start` begins."""

    def __init__(
        self,
        schedule: Schedule,
        state: State,
        visible: Mapping[PartitionId, Visible],
        *,
        reader: JournalReader,
        space: JournalSpace,
        scheduler: Scheduler,
        deadlines: Deadlines,
        clock: Callable[[], int],
        record_clock: Callable[[], int],
        submit: Callable[[Sequence[Command], Callable[[], None] | None], object],
        count: Callable[[PartitionId, int, int], int],
        fold_snapshot: Callable[[], None],
        let_go: Callable[[], list[PartitionId]],
        counts: Counts,
    ) -> None:
        """Begin with nothing looked at. `let_go` returns the streams that a crash may bring back."""
        self._schedule = schedule
        self._state = state
        self._visible = visible
        self._reader = reader
        self._space = space
        self._scheduler = scheduler
        self._deadlines = deadlines
        self._clock = clock
        self._record_clock = record_clock
        self._submit = submit
        self._fold_snapshot = fold_snapshot
        self._let_go = let_go
        self._counts = counts
        self._compactions = CompactionSchedule(
            state, visible, reader, space, lambda configs: schedule.rules(configs).compacting
        )
        self._backlogs = Backlogs(
            state,
            visible,
            reader=reader,
            scheduler=scheduler,
            rules=lambda configs: schedule.rules(configs).backlog,
            kept_from=self._kept_from,
            count=count,
            record_clock=record_clock,
            submit=lambda commands: submit(commands, None),
        )
        self._floors: dict[int, int] = {}
        self._may_free = False
        self._has_compacted = False
        self._failures = 0
        """The number of compactions that failed, in a row."""
        self._has_stopped = False

    def stop(self) -> None:
        """Ask for nothing any more: the engine stops."""
        self._has_stopped = True
        self._backlogs.stop()

    def start(self) -> None:
        """Look for the first time when an interval is over."""
        self._in(self._schedule.check_interval_ms, self._check)
        self._in(self._schedule.clean_interval_ms, self._clean)
        self._look_at_backlogs_later()

    def shown(self, partition_id: PartitionId, seen: Visible | None) -> None:
        """Note the offset at which a partition begins now, durably; None: the partition is gone."""
        if seen is None:
            self._may_free = self._floors.pop(partition_id, None) is not None or self._may_free
        elif self._floors.get(partition_id) != seen.log_start_offset:
            self._floors[partition_id] = seen.log_start_offset
            self._may_free = True

    def may_free(self) -> None:
        """Note that less is needed: a later snapshot is saved, or a stream of the journal was let go, durably."""
        self._may_free = True

    def _in(self, interval_ms: int, callback: Callable[[], None]) -> None:
        self._deadlines.add(self._clock() + interval_ms, callback)

    def _look_at_backlogs_later(self) -> None:
        self._in(self._schedule.backlog_interval_ms, lambda: self._backlogs.check(self._look_at_backlogs_later))

    # --- retention ----------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        self._step(iter(list(self._state.partitions)), RetentionRun(self._counts))

    def _step(self, partition_ids: Iterator[PartitionId], run: RetentionRun) -> None:
        if self._has_stopped:
            return
        some = list(islice(partition_ids, PARTITIONS_AT_ONCE))
        if not some:
            run.ends()
            self._in(self._schedule.check_interval_ms, self._check)
            return
        now_ms = self._record_clock()
        commands: list[Command] = []
        for partition_id in some:
            partition = self._state.partitions.get(partition_id)
            seen = self._visible.get(partition_id)
            if partition is None or seen is None:
                continue
            before_offset = self._kept_from(partition, seen, now_ms)
            if before_offset > seen.log_start_offset:
                commands.append(Trim(topic=partition.topic, partition=partition.index, before_offset=before_offset))
        if commands:
            run.begins()
            self._submit(commands, run.durable)
        self._scheduler.call_soon(self._step, partition_ids, run)

    def _kept_from(self, partition: Partition, seen: Visible, now_ms: int) -> int:
        """Return from where on the partition's records are kept, but for subscriptions; all before it is durable."""
        retention = self._schedule.rules(self._state.topics[partition.topic].configs)
        stream, reader = partition.partition_id, self._reader
        offset, end_offset = seen.log_start_offset, seen.last_stable_offset
        if offset == end_offset:
            return offset
        kept_from = int(offset)
        if retention.retention_ms is not None:
            kept_from = first_young(reader, stream, now_ms - retention.retention_ms, offset, end_offset)
        if retention.retention_bytes is not None:
            # At least this many bytes are kept: a batch goes if the others come to that without it.
            size_bytes = reader.size_bytes(stream, offset, seen.high_watermark) + staged_bytes(partition)
            excess = size_bytes - retention.retention_bytes
            if excess > 0:
                kept_from = max(kept_from, reader.offset_after(stream, offset, end_offset, excess))
        return kept_from

    # --- space --------------------------------------------------------------------------------------------------------

    def _clean(self) -> None:
        if self._has_stopped:
            return
        if forgotten := self._compactions.to_forget():
            self._submit(forgotten, self._clean)
        else:
            self._choose(self._compactions.candidates(self._record_clock()), [])

    def _choose(self, candidates: Iterator[Candidate | None], found: list[Candidate]) -> None:
        if self._has_stopped:
            return
        some = list(islice(candidates, PARTITIONS_AT_ONCE))
        found += [candidate for candidate in some if candidate is not None]
        if some:
            self._scheduler.call_soon(self._choose, candidates, found)
        elif orders := self._compactions.orders(found, self._failures):
            streams, began_ms = [order.stream for order in orders], self._clock()
            done = partial(self._compacted, streams, began_ms)
            self._space.compact(orders, self._all_floors(), self._schedule.rewriter, done)
        else:
            self._free()

    def _compacted(self, streams: Sequence[int], began_ms: int, failed: Failed | None) -> None:
        if failed is None:
            there = [self._state.partitions[PartitionId(each)] for each in streams if each in self._state.partitions]
            tell_of_compaction(there, (self._clock() - began_ms) / 1000)
        # Space is freed between two compactions: where something is always due, the disk would fill.
        self._may_free = True
        self._counts.compactions[failed is None] += 1
        self._has_compacted = failed is None
        self._failures = 0 if failed is None else self._failures + 1
        self._free()

    def _free(self) -> None:
        if self._has_stopped:
            return
        if self._may_free:
            self._may_free = False
            self._space.clean(self._all_floors(), self._cleaned)
        else:
            self._rest()

    def _all_floors(self) -> dict[int, int]:
        """Return from where on each stream of the journal is kept: a partition's own, or one of staged batches."""
        floors = dict.fromkeys(map(int, self._let_go()), 0)
        floors |= self._floors
        for partition_id, partition in self._state.partitions.items():
            if partition.entered or partition.staged:
                floors |= streams_of(partition, self._floors.get(partition_id, 0))
        return floors

    def _rest(self) -> None:
        """Look again when the interval is over, or at once if something was compacted, since more may be due."""
        interval_ms = 0 if self._has_compacted else self._schedule.clean_interval_ms
        self._has_compacted = False
        self._in(interval_ms, self._clean)

    def _cleaned(self, result: Cleaned | Failed) -> None:
        if self._has_stopped:
            return
        if isinstance(result, Cleaned) and result.freed_bytes:
            self._counts.freed_bytes += result.freed_bytes
            tell_of_space(result.freed_bytes)
            self._may_free = True
            self._free()
            return
        if isinstance(result, Failed) or result.may_free_more:  # a full disk, which fails, needs it most
            self._may_free = True
        self._fold_snapshot()
        self._rest()
