"""The order of a writer's batches where one is refused because its partition takes none now.

A writer that was opened, as Apache Pulsar's producers are, sends on without an answer to what it has sent before. If
one of its batches was refused and a later one found room, then a named writer's repeat of the first one would lie below
its highest sequence, and be lost. So a partition that refuses a batch closes its writers, as Apache Pulsar does: what
they have sent behind it is refused as well, until they are opened again. It counts its closings, and each writer says
how many there had been when it was opened.

    the writer was opened       the partition takes batches     it takes none, or has no room for this one
    since the last closing      appended                        the reason, and the partition closes its writers
    before the last closing     WRITER_CLOSED                   WRITER_CLOSED
    never (a Kafka producer)    appended                        the reason

A repeat is answered as a repeat in all of these cells, since nothing is appended for it. Batches that are refused for
what they are close nobody: their clients give them up, and do not send them again. The count is volatile, as the
connections are over which writers were opened.
"""

from exacta.core.commands import AppendBatch
from exacta.core.events import WritersClosed
from exacta.core.outcome import Outcome
from exacta.core.rejections import Rejection
from exacta.core.state.partition import Partition
from exacta.core.state.state import State


def refusal(state: State, partition: Partition, command: AppendBatch) -> Outcome | None:
    """Return the refusal of a batch that would be appended; None: the partition takes batches, also of this writer."""
    volatile = state.volatile
    if is_closed(command.closings, volatile.closings.get(partition.partition_id, 0)):
        return Outcome(reply=Rejection.WRITER_CLOSED)
    reason = volatile.refusing.get(partition.partition_id)
    return None if reason is None else refused(state, command, reason)


def is_closed(closings: int | None, closings_now: int) -> bool:
    """Return whether a partition has closed its writers since one was opened."""
    return closings is not None and closings < closings_now


def refused(state: State, command: AppendBatch, reason: Rejection) -> Outcome:
    """Refuse a batch because its partition takes none now. It closes the partition's writers, if its own is open."""
    partition = state.partition(command.topic, command.partition)
    if partition is None or command.closings != state.volatile.closings.get(partition.partition_id, 0):
        return Outcome(reply=reason)
    return Outcome(events=(WritersClosed(partition_id=partition.partition_id),), reply=reason)
