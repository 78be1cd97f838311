"""The start of a partition's log: records before it are deleted, and never come back (KIP-107).

The module also forgets the aborted transactions whose records compaction has removed.

Records of open transactions go, too, as in Apache Kafka. For readers such a transaction then begins with its first
record that is left. A partition goes on to know its producers: a repeat of a deleted batch is still a repeat.
"""

from exacta.core.commands import HIGH_WATERMARK, DeleteRecords, ForgetAborted
from exacta.core.events import AbortedForgotten, LogStartMoved
from exacta.core.ids import Offset
from exacta.core.outcome import Outcome
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, RecordsDeleted
from exacta.core.state.internal_topics import INTERNAL_TOPICS
from exacta.core.state.state import State


def delete_records(state: State, command: DeleteRecords, now_ms: int) -> Outcome:
    """Delete records before an offset; where there are none, nothing has happened."""
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


def forget_aborted(state: State, command: ForgetAborted, now_ms: int) -> Outcome:
    """Forget the aborted transactions that ended before an offset; where there are none, nothing has happened."""
    partition = state.partition(command.topic, command.partition)
    if partition is None:
        return Outcome(reply=Rejection.UNKNOWN_TOPIC_OR_PARTITION)
    if not partition.aborted or partition.aborted[0].last_offset >= command.before_offset:
        return Outcome(reply=DONE)
    forgotten = AbortedForgotten(partition_id=partition.partition_id, before_offset=Offset(command.before_offset))
    return Outcome(events=(forgotten,), reply=DONE)
