"""An operator's abort marker (WriteTxnMarkers, as `kafka-transactions.sh abort` sends it; KIP-664, decision 0014).

In Apache Kafka a marker from outside ends a transaction in one partition, and leaves its coordinator believing that it
goes on: what is then committed elsewhere is torn. Here it aborts the whole transaction of which that partition is a
part, in all partitions and groups at once, and fences its producer. Where the producer has nothing open in the
partition, there is nothing to abort, and no lone marker is written.
"""

from exacta.core.commands import AbortByMarker
from exacta.core.ids import Cause
from exacta.core.outcome import Outcome
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE
from exacta.core.state.state import State
from exacta.core.transactions.binding import aborted_and_fenced


def abort_by_marker(state: State, command: AbortByMarker, now_ms: int) -> Outcome:
    """Abort what this producer has open in the partition, and with it the rest of its transaction."""
    partition = state.partition(command.topic, command.partition)
    if partition is None:
        return Outcome(reply=Rejection.UNKNOWN_TOPIC_OR_PARTITION)
    known = partition.producers.get(command.producer_id)
    if known is not None and command.producer_epoch < known.producer_epoch:
        return Outcome(reply=Rejection.INVALID_PRODUCER_EPOCH)
    transaction = state.volatile.transaction_by_producer.get(command.producer_id)
    if transaction is None or not partition.has_open(command.producer_id):
        return Outcome(reply=DONE)
    client = (command.client_id, command.client_host)
    events = aborted_and_fenced(state, transaction, cause=Cause.MARKER, now_ms=now_ms, client=client)
    return Outcome(events=events, reply=DONE)
