"""The backlogs of subscriptions: messages that expire, and the quota of what is kept for subscriptions alone.

Owns when a backlog is looked at, how large and how old it is, and what the operator is told. Owns neither what becomes
of a message that expires or is evicted (`exacta.core.subscriptions.skipping`) nor what may be removed from a log
(`exacta.core.log.keeping`), nor what a topic's configurations mean (`config/retention.py`).

Theory of operation. At intervals all partitions with subscriptions are looked at, some in each turn of the loop. The
quota counts what a partition keeps only because a subscription has not come past it: what the retention keeps anyway
costs nothing more. What is written between two looks may exceed it. Where a quota is exceeded, its policy acts: the
oldest messages are acknowledged for the subscriptions that are behind them, or the partition takes no batches until a
look finds that less is kept.

Markers and aborted records are in no backlog, but the position of a subscription without consumers may stand before
some. Before a policy acts, such a position is brought to the first message that a consumer can get.

An open transaction hides what follows it, so that nothing from there on expires or is evicted.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from enum import Enum, auto
from itertools import islice

from msgspec import Struct

from exacta.core.commands import Command, RefuseAppends, Skip, Trim
from exacta.core.groups.lag import visible_begin
from exacta.core.ids import Offset, PartitionId
from exacta.core.log.keeping import slowest_position
from exacta.core.rejections import Rejection
from exacta.core.state.partition import Partition
from exacta.core.state.state import State
from exacta.engine.ages import first_young
from exacta.ports.journal import JournalReader
from exacta.ports.log import Visible
from exacta.ports.scheduler import Scheduler

logger = logging.getLogger(__name__)

PARTITIONS_AT_ONCE = 1
"""The number of partitions that are looked at in one turn of the loop.

In a log of 100 GB each of the five or so questions to its index may take 15 ms.
"""

LINES_AT_ONCE = 20
"""The number of partitions that one round tells the operator of; of the others it tells the number."""


class QuotaAction(Enum):
    """The policy that acts when a quota is exceeded, by Apache Pulsar's names."""

    PRODUCER_REQUEST_HOLD = auto()
    PRODUCER_EXCEPTION = auto()
    CONSUMER_BACKLOG_EVICTION = auto()


REASONS = {
    QuotaAction.PRODUCER_REQUEST_HOLD: Rejection.BACKLOG_HOLDS_PRODUCERS,
    QuotaAction.PRODUCER_EXCEPTION: Rejection.BACKLOG_QUOTA_EXCEEDED,
}


class BacklogPolicy(Struct, frozen=True, kw_only=True):
    """The time after which messages expire, and the quota; None: there is no such bound."""

    ttl_ms: int | None = None
    quota_bytes: int | None = None
    quota_ms: int | None = None
    action: QuotaAction = QuotaAction.PRODUCER_REQUEST_HOLD


class Backlogs:
    """Looks at the backlogs of all subscriptions when it is asked to."""

    def __init__(
        self,
        state: State,
        visible: Mapping[PartitionId, Visible],
        *,
        reader: JournalReader,
        scheduler: Scheduler,
        rules: Callable[[Mapping[str, str]], BacklogPolicy],
        kept_from: Callable[[Partition, Visible, int], int],
        count: Callable[[PartitionId, int, int], int],
        record_clock: Callable[[], int],
        submit: Callable[[list[Command]], object],
    ) -> None:
        """Look at nothing yet.

        `kept_from` returns the offset from which on retention alone keeps a partition's records. `count` counts the
        records between two offsets that readers of committed records get.
        """
        self._state = state
        self._visible = visible
        self._reader = reader
        self._scheduler = scheduler
        self._rules = rules
        self._kept_from = kept_from
        self._count = count
        self._record_clock = record_clock
        self._submit = submit
        self._has_stopped = False
        self._told = 0

    def stop(self) -> None:
        """Ask for nothing any more."""
        self._has_stopped = True

    def check(self, done: Callable[[], None]) -> None:
        """Look at all partitions that have subscriptions, or that take no batches; then call back."""
        volatile = self._state.volatile
        concerned: list[PartitionId] = []
        if volatile.subscriptions or volatile.refusing:
            concerned = [
                key for key, each in self._state.partitions.items() if each.subscriptions or key in volatile.refusing
            ]
        self._told = 0
        self._step(iter(concerned), done)

    def _step(self, partition_ids: Iterator[PartitionId], done: Callable[[], None]) -> None:
        if self._has_stopped:
            return
        some = list(islice(partition_ids, PARTITIONS_AT_ONCE))
        if not some:
            if self._told > LINES_AT_ONCE:
                logger.warning("it is so with %d partitions more", self._told - LINES_AT_ONCE)
            done()
            return
        now_ms = self._record_clock()
        for partition_id in some:
            partition, seen = self._state.partitions.get(partition_id), self._visible.get(partition_id)
            if partition is not None and seen is not None:
                self._look(partition, seen, now_ms)
        self._scheduler.call_soon(self._step, partition_ids, done)

    def _look(self, partition: Partition, seen: Visible, now_ms: int) -> None:
        policy = self._rules(self._state.topics[partition.topic].configs)
        self._expire(partition, seen, policy, now_ms)
        is_over, within = self._measure(partition, seen, policy, now_ms)
        reason = REASONS.get(policy.action) if is_over else None
        if is_over and reason is None:
            self._evict(partition, within)
        if reason != self._state.volatile.refusing.get(partition.partition_id):
            self._refuse(partition, reason)

    def _expire(self, partition: Partition, seen: Visible, policy: BacklogPolicy, now_ms: int) -> None:
        slowest, end_offset = slowest_position(partition), seen.last_stable_offset
        if policy.ttl_ms is None or slowest is None or slowest >= end_offset:
            return
        before = first_young(self._reader, partition.partition_id, now_ms - policy.ttl_ms, slowest, end_offset)
        if before > slowest:
            self._skip(partition, before)
            logger.info(
                "%s-%d: messages before offset %d have expired, and are acknowledged for all subscriptions",
                partition.topic,
                partition.index,
                before,
            )

    def _skip(self, partition: Partition, before: int) -> None:
        self._submit([Skip(topic=partition.topic, partition=partition.index, before=Offset(before))])

    def _measure(self, partition: Partition, seen: Visible, policy: BacklogPolicy, now_ms: int) -> tuple[bool, Offset]:
        """Return whether too much is kept for subscriptions, and from where on it would not be too much."""
        slowest, nowhere = slowest_position(partition), Offset(0)
        if slowest is None or (policy.quota_bytes is None and policy.quota_ms is None):
            return False, nowhere
        kept_from = Offset(self._kept_from(partition, seen, now_ms))
        if slowest >= kept_from or not self._compare(partition, policy, slowest, kept_from, now_ms)[0]:
            return False, nowhere
        end_offset = seen.last_stable_offset
        begin = visible_begin(
            lambda offset: self._count(partition.partition_id, offset, end_offset), slowest, end_offset
        )
        if begin > slowest:
            self._skip(partition, begin)
            slowest = max(slowest, slowest_position(partition) or slowest)
        return self._compare(partition, policy, slowest, kept_from, now_ms)

    def _compare(
        self, partition: Partition, policy: BacklogPolicy, slowest: Offset, kept_from: Offset, now_ms: int
    ) -> tuple[bool, Offset]:
        stream, reader = partition.partition_id, self._reader
        is_over, within = False, slowest
        if policy.quota_bytes is not None:
            excess = reader.size_bytes(stream, slowest, kept_from) - policy.quota_bytes
            if excess > 0:
                is_over, within = True, Offset(reader.offset_after(stream, slowest, kept_from, excess))
        if policy.quota_ms is not None:
            young = Offset(first_young(reader, stream, now_ms - policy.quota_ms, slowest, kept_from))
            if young > slowest:
                is_over, within = True, max(within, young)
        return is_over, within

    def _evict(self, partition: Partition, within: Offset) -> None:
        name, slowest = _slowest(partition), slowest_position(partition)
        if slowest is None or within <= slowest:  # the oldest batch alone is more than what is too much
            return
        self._skip(partition, within)
        self._submit([Trim(topic=partition.topic, partition=partition.index, before_offset=within)])
        self._tell(
            "%s-%d: the backlog quota is exceeded, and its policy is consumer_backlog_eviction: subscription %r, which "
            "stood at offset %d, and all others that were behind, go on at %d",
            partition.topic,
            partition.index,
            name,
            slowest,
            within,
        )

    def _refuse(self, partition: Partition, reason: Rejection | None) -> None:
        self._submit([RefuseAppends(topic=partition.topic, partition=partition.index, reason=reason)])
        if reason is None:
            self._tell("%s-%d: batches are taken again", partition.topic, partition.index)
            return
        self._tell(
            "%s-%d: the backlog quota is exceeded, and no batches are taken any more: acknowledge, skip or unsubscribe "
            "what subscription %r has left from offset %s on, or raise pulsar.backlog.quota.bytes or .ms",
            partition.topic,
            partition.index,
            _slowest(partition),
            slowest_position(partition),
        )

    def _tell(self, text: str, *values: object) -> None:
        self._told += 1
        if self._told <= LINES_AT_ONCE:
            logger.warning(text, *values)


def _slowest(partition: Partition) -> str:
    """Return the name of the subscription that is furthest behind."""
    return min(partition.subscriptions.values(), key=lambda each: each.position).name
