"""The one event that ends a transaction: where its markers lie, and where what it has staged enters (decision D2).

Owns what is in the event. Owns neither who may end a transaction (`transaction.py` and its siblings) nor what the event
changes (`fold.py`).
"""

from exacta.core.events import Marker, StreamEntry, TransactionEnded
from exacta.core.ids import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    Cause,
    Offset,
    PartitionId,
    ProducerEpoch,
)
from exacta.core.log import staging
from exacta.core.state.state import State
from exacta.core.state.transaction import Transaction, TransactionalId
from exacta.core.transactions.numbering import Pair, next_pair

NO_PAIR: Pair = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


def ending(
    state: State,
    transaction: Transaction,
    *,
    commit: bool,
    now_ms: int,
    next_offsets: dict[PartitionId, Offset] | None = None,
    bump: bool = False,
    cause: Cause = Cause.OWNER,
    client: tuple[str, str] = ("", ""),
) -> TransactionEnded:
    """Make the one event that ends an open transaction; with `bump` it also gives its holder the next pair.

    Only partitions that were written to get a marker: a lone abort marker confuses readers. What was staged enters
    instead, if the transaction commits. `next_offsets` is where several endings in one outcome leave off in each
    partition, and is kept up to date here. `client` is the one that asked for the end by the transaction's id.
    """
    if next_offsets is None:
        next_offsets = {}
    markers: list[Marker] = []
    entries: list[StreamEntry] = []
    for partition_id in sorted(transaction.partitions):
        partition = state.partitions[partition_id]
        for producer_id in transaction.producer_ids:
            if producer_id in partition.open_transactions:
                offset = next_offsets.get(partition_id, partition.next_offset)
                next_offsets[partition_id] = Offset(offset + 1)
                markers.append((partition_id, offset, producer_id))
            elif commit and producer_id in partition.staged:
                offset = next_offsets.get(partition_id, partition.next_offset)
                entry = staging.entry(partition, producer_id, offset)
                _, _, _, record_count = entry
                next_offsets[partition_id] = Offset(offset + record_count)
                entries.append(entry)
    held = state.holder_of(transaction)
    following = next_pair(state, *held.pair) if bump and held is not None else NO_PAIR
    return TransactionEnded(
        transaction_id=transaction.transaction_id,
        producer_ids=transaction.producer_ids,
        producer_epoch=transaction.producer_epoch,
        committed=commit,
        markers=tuple(markers),
        marker_epoch=ProducerEpoch(transaction.producer_epoch + bump),
        at_ms=now_ms,
        owner=transaction.owner,
        next_producer_id=following[0],
        next_producer_epoch=following[1],
        cause=cause,
        client_id=client[0],
        client_host=client[1],
        entries=tuple(entries),
    )


def ending_of_nothing(state: State, held: TransactionalId, *, commit: bool, now_ms: int) -> TransactionEnded:
    """Make the event of a transaction that begins and ends now, so that its holder gets the next pair."""
    following = next_pair(state, *held.pair)
    return TransactionEnded(
        transaction_id=state.volatile.next_transaction_id,
        producer_ids=(held.producer_id,),
        producer_epoch=held.producer_epoch,
        committed=commit,
        markers=(),
        marker_epoch=ProducerEpoch(held.producer_epoch + 1),
        at_ms=now_ms,
        owner=held.transactional_id,
        next_producer_id=following[0],
        next_producer_epoch=following[1],
    )
