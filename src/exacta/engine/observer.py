"""The observer of an engine: it hears each event before that is applied, counts, and lets lines of the log be made.

Owns which events are counted and how. Owns neither the numbers (`counts`), nor the lines (`event_lines`), nor any rule:
nothing of the log depends on it. An event that it does not hear costs one look into a table.
"""

import logging
from collections.abc import Callable
from typing import Any

from exacta.core.command import Command
from exacta.core.events import (
    AclsCreated,
    AclsDeleted,
    BatchAppended,
    BatchStaged,
    ConsumerGroupUpdated,
    Event,
    GroupSettled,
    LogStartMoved,
    ProducerBound,
    ScramKeysSet,
    TopicDeleted,
    TransactionalIdsExpired,
    TransactionEnded,
)
from exacta.core.ids import Cause
from exacta.core.rejections import Rejection
from exacta.core.state.state import State
from exacta.engine.event_lines import EventLines
from exacta.ports.log import FENCING, Counts

logger = logging.getLogger("exacta.rejections")


class Observer:
    """Counts what happens; `hears` has a function for each event that it wants to hear.

    `number` gives the number of the commit group that gathers. `tell` tells the lines about what is durable.
    `access_changed` hears the events of access rules and users.
    """

    def __init__(
        self, state: State, number: Callable[[], int], access_changed: Callable[[Event], None] = lambda event: None
    ) -> None:
        self.counts = Counts()
        self._state = state
        lines = EventLines(state, number)
        self.tell = lines.tell
        counting: dict[type[Event], Callable[[Any], None]] = {
            BatchAppended: self._appended,
            BatchStaged: self._appended,
            TopicDeleted: self._topic_deleted,
            LogStartMoved: self._log_start_moved,
            ProducerBound: self._producer_bound,
            TransactionEnded: self._transaction_ended,
            TransactionalIdsExpired: self._transactional_ids_expired,
            GroupSettled: self._group_settled,
            ConsumerGroupUpdated: self._consumer_group_updated,
            AclsCreated: access_changed,
            AclsDeleted: access_changed,
            ScramKeysSet: access_changed,
        }
        self.hears = lines.hears | counting
        for both in counting.keys() & lines.hears.keys():
            self.hears[both] = _both(counting[both], lines.hears[both])

    def rejected(self, command: Command, rejection: Rejection) -> None:
        """Count a command that was refused; say so to who wants to know everything."""
        self.counts.rejections[rejection] += 1
        if logger.isEnabledFor(logging.DEBUG):
            values = {"command": type(command).__name__, "reason": rejection.name.lower(), "asked": f"{command!r:.500}"}
            logger.debug("%(command)s was refused, %(reason)s: %(asked)s", values)

    def _appended(self, event: BatchAppended | BatchStaged) -> None:
        appended = self.counts.appended[event.partition_id]
        appended.batches += 1
        appended.bytes += event.size
        appended.records += event.record_count

    def _topic_deleted(self, event: TopicDeleted) -> None:
        for partition_id in self._state.topics[event.topic].partition_ids:
            self.counts.appended.pop(partition_id, None)
        self.counts.read_bytes.pop(event.topic, None)

    def _log_start_moved(self, event: LogStartMoved) -> None:
        if event.trimmed:
            before = self._state.partitions[event.partition_id].log_start_offset
            self.counts.trims += 1
            self.counts.trimmed_records += event.log_start_offset - before

    def _producer_bound(self, event: ProducerBound) -> None:
        if event.cause in FENCING and event.transactional_id in self._state.transactional_ids:
            self.counts.fenced[event.cause] += 1

    def _transaction_ended(self, event: TransactionEnded) -> None:
        self.counts.ended[event.committed, event.cause] += 1
        if event.bumps and event.cause in FENCING:
            self.counts.fenced[event.cause] += 1

    def _transactional_ids_expired(self, event: TransactionalIdsExpired) -> None:
        self.counts.fenced[Cause.IDLE] += len(event.transactional_ids)

    def _group_settled(self, event: GroupSettled) -> None:
        if event.membership is not None:
            self.counts.rebalances += 1

    def _consumer_group_updated(self, event: ConsumerGroupUpdated) -> None:
        group = self._state.volatile.consumer_groups.get(event.group_id)
        if group is None or event.target_epoch != group.target_epoch:
            self.counts.rebalances += 1


def _both(first: Callable[[Any], None], second: Callable[[Any], None]) -> Callable[[Any], None]:
    def hear(event: Event) -> None:
        first(event)
        second(event)

    return hear
