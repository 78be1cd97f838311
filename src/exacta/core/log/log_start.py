"""The start of a partition's log: records before it are deleted, and never come back (KIP-107).

Records of open transactions are deleted too, as in Apache Kafka. For readers such a transaction then begins with the
first of its records that is left. A partition keeps what it knows of its producers, so that a repeat of a deleted batch
is still a repeat.

`forget_compacted` is for compaction, which tells here what it has been over: the records of aborted transactions are
gone, and what is left of staged streams that had entered lies in the partition's own stream.
"""

from exacta.core.commands import HIGH_WATERMARK, DeleteRecords, ForgetCompacted
from exacta.core.events import CompactedForgotten, LogStartMoved
from exacta.core.ids import Offset
from exacta.core.outcome import Outcome
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, RecordsDeleted
from exacta.core.state.state import State
from exacta.core.values.internal_topics import INTERNAL_TOPICS


def delete_records(state: State, command: DeleteRecords, now_ms: int) -> Outcome:
    """Delete the records before an offset; do nothing if there are none."""
    partition = state.partition(command.topic, command.partition)
    if partition is None:
        return Outcome(reply=Rejection.UNKNOWN_TOPIC_OR_PARTITION)
    if not command.allowed:
        is_internal = command.topic in INTERNAL_TOPICS
        return Outcome(reply=Rejection.INTERNAL_TOPIC if is_internal else Rejection.DELETION_NOT_ALLOWED)
    before_offset = partition.next_offset if command.before_offset == HIGH_WATERMARK else command.before_offset
    if not 0 <= before_offset <= partition.next_offset:
        return Outcome(reply=Rejection.OFFSET_OUT_OF_RANGE)
    if before_offset <= partition.log_start_offset:
        return Outcome(reply=RecordsDeleted(log_start_offset=partition.log_start_offset))
    moved = LogStartMoved(partition_id=partition.partition_id, log_start_offset=Offset(before_offset))
    return Outcome(events=(moved,), reply=RecordsDeleted(log_start_offset=moved.log_start_offset))


def forget_compacted(state: State, command: ForgetCompacted, now_ms: int) -> Outcome:
    """Forget the aborted transactions and the entered streams that end before an offset, if there are any."""
    partition = state.partition(command.topic, command.partition)
    if partition is None:
        return Outcome(reply=Rejection.UNKNOWN_TOPIC_OR_PARTITION)
    has_aborted = partition.aborted and partition.aborted[0].last_offset < command.before_offset
    has_entered = partition.entered and partition.entered[0].end_offset <= command.before_offset
    if not has_aborted and not has_entered:
        return Outcome(reply=DONE)
    forgotten = CompactedForgotten(partition_id=partition.partition_id, before_offset=Offset(command.before_offset))
    return Outcome(events=(forgotten,), reply=DONE)
