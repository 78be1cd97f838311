"""The invariants of DESIGN section 6, kept up to date event by event: cheap enough to be looked at after every step.

`exacta.core.invariants` derives the same from the whole log, and is asked after every recovery, once in a while, and at
the end. Here only what has become durable counts, since that is what readers are shown.
"""

from collections.abc import Callable, Mapping

from exacta.core.events import (
    BatchAppended,
    Event,
    LogStartMoved,
    PartitionsAdded,
    ProducerBound,
    ProducersExpired,
    TopicCreated,
    TopicDeleted,
    TransactionalIdsExpired,
    TransactionEnded,
)
from exacta.core.ids import PartitionId, ProducerId
from exacta.core.state import Limits
from exacta.engine.visible import Visible

Complain = Callable[[str], None]


class _Log:
    """One partition, as its events have it."""

    def __init__(self) -> None:
        self.start = 0
        self.end = 0
        self.open: dict[ProducerId, tuple[int, int]] = {}
        """By producer id: the first offset of its open transaction, and the epoch of its writes."""
        self.sequences: dict[ProducerId, tuple[int, int]] = {}
        """By producer id: epoch and next sequence."""

    @property
    def stable(self) -> int:
        first = min((offset for offset, _ in self.open.values()), default=self.end)
        return max(first, self.start)


class Steps:
    """A second opinion on the durable state."""

    def __init__(self, limits: Limits, complain: Complain) -> None:
        self.count = 0
        self._limits = limits
        self._complain = complain
        self._logs: dict[PartitionId, _Log] = {}
        self._topics: dict[str, list[PartitionId]] = {}
        self._bound: dict[str, tuple[int, int]] = {}

    def take(self, event: Event) -> None:
        """Go one event further."""
        self.count += 1
        match event:
            case BatchAppended():
                self._batch(event)
            case TransactionEnded():
                self._end(event)
            case ProducerBound():
                self._bind(event.transactional_id, (event.producer_id, event.producer_epoch), event)
            case LogStartMoved():
                self._log(event.partition_id).start = event.log_start_offset
            case ProducersExpired():
                for partition_id, producer_id in event.producers:
                    self._log(partition_id).sequences.pop(producer_id, None)
            case TransactionalIdsExpired():
                for transactional_id in event.transactional_ids:
                    self._bound.pop(transactional_id, None)
            case TopicCreated() | PartitionsAdded():
                ids = range(event.first_partition_id, event.first_partition_id + event.partition_count)
                self._topics.setdefault(event.topic, []).extend(map(PartitionId, ids))
            case TopicDeleted():
                for partition_id in self._topics.pop(event.topic):
                    self._logs.pop(partition_id, None)
            case _:
                pass

    def _log(self, partition_id: PartitionId) -> _Log:
        return self._logs.setdefault(partition_id, _Log())

    def _batch(self, event: BatchAppended) -> None:
        log = self._log(event.partition_id)
        if event.base_offset != log.end:
            self._complain(f"4: {event} leaves a hole: the log ends at {log.end}")
        log.end = event.base_offset + event.record_count
        if event.producer_id < 0:
            return
        epoch, wanted = log.sequences.get(event.producer_id, (event.producer_epoch, event.base_sequence))
        if event.producer_epoch > epoch:
            wanted = 0
        if event.producer_epoch < epoch or event.base_sequence != wanted:
            self._complain(f"1: {event} where epoch {epoch}, sequence {wanted} was next")
        following = (event.base_sequence + event.record_count) % self._limits.sequence_modulus
        log.sequences[event.producer_id] = event.producer_epoch, following
        if event.transactional:
            _, open_epoch = log.open.setdefault(event.producer_id, (event.base_offset, event.producer_epoch))
            if open_epoch != event.producer_epoch:
                self._complain(f"6: {event} joins a transaction of epoch {open_epoch}")

    def _end(self, event: TransactionEnded) -> None:
        markers = dict(event.markers)
        for partition_id, log in self._logs.items():
            written = log.open.pop(event.producer_id, None)
            if written is None:
                if partition_id in markers:
                    self._complain(f"3: {event} has a marker where nothing was written")
                continue
            if partition_id not in markers:
                self._complain(f"3: {event} leaves partition {partition_id} open")
            if written[1] != event.producer_epoch:
                self._complain(f"7: {event} ends a transaction of epoch {written[1]}")
        for partition_id, offset in event.markers:
            log = self._log(partition_id)
            if offset != log.end:
                self._complain(f"4: {event} leaves a hole: the log ends at {log.end}")
            log.end = offset + 1
        if event.bumps:
            self._bind(event.transactional_id, (event.next_producer_id, event.next_producer_epoch), event)

    def _bind(self, transactional_id: str, pair: tuple[int, int], event: Event) -> None:
        before = self._bound.get(transactional_id, (-1, -1))
        again = isinstance(event, ProducerBound) and event.previous_producer_id >= 0 and pair == before
        if pair <= before and not again:
            self._complain(f"6: {event} does not fence {before}")
        if pair[1] > self._limits.highest_epoch:
            self._complain(f"6: {event} passes the highest epoch")
        self._bound[transactional_id] = pair

    def compare(self, shown: Mapping[PartitionId, Visible]) -> None:
        """Complain where readers are shown anything but the durable state (invariant 4)."""
        for partition_id, visible in shown.items():
            log = self._log(partition_id)
            expected = (log.start, log.end, log.stable)
            found = (visible.log_start_offset, visible.high_watermark, visible.last_stable_offset)
            if found != expected:
                self._complain(f"4: readers of partition {partition_id} are shown {found}, durable is {expected}")
