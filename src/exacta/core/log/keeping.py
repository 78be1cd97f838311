"""The rule of what may be removed from a log: old records, or too many, unless a subscription still wants them.

    what asks for it                 without a durable   all durable subscriptions   one of them has not
                                     subscription        are past the message        come past it
    retention.ms, retention.bytes    removed             removed                     kept
    DeleteRecords                    removed             removed                     removed, acknowledged
    DeleteTopic                      removed             removed                     removed, with the subscription
    pulsar.message.ttl.ms            -                   -                           acknowledged
    consumer_backlog_eviction *      removed             removed                     removed, acknowledged
    producer_request_hold *          removed             removed                     kept, nothing is appended
    producer_exception *             removed             removed                     kept, nothing is appended

* This is the retention beyond the quota, by the quota's policy.

Compaction removes what it removes wherever subscriptions are. A compacted topic promises the last record of each key,
and that is what a subscription of it gets. Delivery passes what is gone (`exacta.core.subscriptions.delivering`).

A subscription is past a message if its position is. A message that is acknowledged behind one that is not stays where
it is, since a log loses records only from its front. A message that is pending in an open transaction is not past, and
is acknowledged by the rows that say so: the transaction's end then finds nothing left to do, and never fails for it.
Records of an open transaction are removed only by DeleteRecords and DeleteTopic. What is acknowledged here is removed
later, if it is old or many. Non-durable subscriptions keep nothing.

The times, sizes and policies are the engine's to measure (`exacta.engine.backlog`).
"""

from exacta.core.commands import RefuseAppends, Trim
from exacta.core.events import AppendsRefused, LogStartMoved
from exacta.core.ids import Offset
from exacta.core.outcome import Outcome
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, RecordsDeleted
from exacta.core.state.partition import Partition
from exacta.core.state.state import State


def slowest_position(partition: Partition) -> Offset | None:
    """Return the position of the durable subscription that is furthest behind; None: there is no subscription."""
    return min((each.position for each in partition.subscriptions.values()), default=None)


def trim(state: State, command: Trim, now_ms: int) -> Outcome:
    """Delete records from the front, up to what an open transaction or a subscription still needs."""
    partition = state.partition(command.topic, command.partition)
    if partition is None:
        return Outcome(reply=Rejection.UNKNOWN_TOPIC_OR_PARTITION)
    slowest = slowest_position(partition)
    before = Offset(min(command.before_offset, partition.last_stable_offset))
    if slowest is not None:
        before = min(before, slowest)
    if before <= partition.log_start_offset:
        return Outcome(reply=RecordsDeleted(log_start_offset=partition.log_start_offset))
    moved = LogStartMoved(partition_id=partition.partition_id, log_start_offset=before, trimmed=True)
    return Outcome(events=(moved,), reply=RecordsDeleted(log_start_offset=before))


def refuse_appends(state: State, command: RefuseAppends, now_ms: int) -> Outcome:
    """Let a partition take no batches, or let it take them again; do nothing where it is so already."""
    partition = state.partition(command.topic, command.partition)
    if partition is None:
        return Outcome(reply=Rejection.UNKNOWN_TOPIC_OR_PARTITION)
    if state.volatile.refusing.get(partition.partition_id) == command.reason:
        return Outcome(reply=DONE)
    refused = AppendsRefused(partition_id=partition.partition_id, reason=command.reason)
    return Outcome(events=(refused,), reply=DONE)
