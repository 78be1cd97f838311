"""Views of transactions and producers: lists, descriptions and reasons (KIP-664, and requests of our own).

A transaction is named by its transactional id, a handle as `handle_name` says. A joint one has both names, and is shown
by its transactional id. A transactional id may have the name of a handle, and then hides it from those who ask by name.
By its transaction id, or by its producer id, the handle is found all the same.
"""

from collections.abc import Iterator, Sequence
from heapq import nsmallest

from msgspec import Struct

from exacta.core.ids import Cause, Offset, ProducerEpoch, ProducerId, TransactionId
from exacta.core.state.incidents import Incident, IncidentKind
from exacta.core.state.partition import Partition
from exacta.core.state.state import State
from exacta.core.state.transaction import (
    HANDLE_EPOCH,
    EndedHandle,
    Transaction,
    TransactionalId,
    handle_name,
    handle_named,
    name_of,
)
from exacta.core.values.transactions import Phase
from exacta.readmodel import transactions as told
from exacta.readmodel.transactions import Explanation

NOTHING_WRITTEN = Offset(-1)

CAUSES = {
    Cause.OWNER: "its own producer asked",
    Cause.NEW_INSTANCE: "a new instance initialised the transactional id",
    Cause.TIME_OUT: "time-out",
    Cause.MARKER: "an operator wrote an abort marker, or named it by its id",
    Cause.SET: "ended as one of a set",
    Cause.IDLE: "idle for too long",
    Cause.LOSS: "the broker's machine stopped, and may have lost writes of it",
    Cause.OTHER_SIDE: "a client that knew its TxnID ended it",
}
"""The reasons in words."""

MOST_DESCRIBED = 100
"""This many subscriptions of a transaction, and this many runs of each, are described. All are counted."""


class ListedTransaction(Struct, frozen=True):
    """A transactional id or an open handle, in a list of all."""

    name: str
    phase: Phase
    producer_id: ProducerId
    """The producer id under which the open transaction's records lie; else the holder's."""
    start_ms: int
    """The time at which the open transaction began, or the last one; -1: none has since the id was initialised."""


class DescribedProducer(Struct, frozen=True, kw_only=True):
    """A producer that a partition knows, or that has a transaction open in it."""

    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    last_sequence: int
    """The last sequence of its last batch; -1: its batches have none."""
    last_timestamp_ms: int
    has_coordinator: bool
    """True if it belongs to a transactional id or to an open transaction."""
    open_first_offset: Offset
    """The first offset of its open transaction in the partition; `NOTHING_WRITTEN`, also if that is staged there.

    What is staged holds nobody back, and `kafka-transactions.sh find-hanging` has no reason to ask for it.
    """


def transaction_names(state: State) -> list[str | TransactionId]:
    """Return every transactional id, and the number of every handle that is open."""
    handles = [number for number, transaction in state.transactions.items() if transaction.owner is None]
    return [*state.transactional_ids, *handles]


def list_transaction(state: State, name: str | TransactionId) -> ListedTransaction | None:
    """Return what one of `transaction_names` is; None if it is gone."""
    if not isinstance(name, str):
        handle = state.transactions.get(name)
        return None if handle is None else _listed(handle)
    held = state.transactional_ids.get(name)
    if held is None:
        return None
    transaction = state.open_transaction(held)
    if transaction is not None:
        return _listed(transaction)
    start_ms = -1 if held.phase is Phase.EMPTY else held.last_start_ms
    return ListedTransaction(held.transactional_id, held.phase, held.producer_id, start_ms)


def _listed(transaction: Transaction) -> ListedTransaction:
    return ListedTransaction(name_of(transaction), Phase.ONGOING, transaction.pair[0], transaction.start_ms)


def explain_open_transaction(state: State, transaction_id: TransactionId) -> Explanation | None:
    """Explain a transaction that is open; None if it is not."""
    transaction = state.transactions.get(transaction_id)
    if transaction is None:
        return None
    held = state.holder_of(transaction)
    return _open_handle(state, transaction) if held is None else _id(state, held)


def explain_transaction(state: State, name: str) -> Explanation:
    """Explain a transactional id, or a handle that is open or whose end is remembered.

    The state is empty where there is none; its incidents may still be known.
    """
    held = state.transactional_ids.get(name)
    if held is not None:
        return _id(state, held)
    transaction_id = handle_named(name)
    if transaction_id is not None:
        return _of_handle(state, transaction_id) or _unknown(name, incidents_of(state, name))
    return _unknown(name, incidents_of(state, name))


def explain_handle(state: State, transaction_id: TransactionId) -> Explanation:
    """Explain a handle or joint transaction that is open or whose end is remembered; the state is empty else."""
    found = _of_handle(state, transaction_id)
    if found is not None:
        return found
    return Explanation(
        transactional_id=handle_name(transaction_id),
        state="",
        producer_id=-1,
        producer_epoch=-1,
        is_handle=True,
        transaction_id=transaction_id,
    )


def _of_handle(state: State, transaction_id: TransactionId) -> Explanation | None:
    transaction = state.transactions.get(transaction_id)
    if transaction is not None and transaction.is_known_by_id:
        held = state.holder_of(transaction)
        return _open_handle(state, transaction) if held is None else _id(state, held)
    ended = state.ended_handles.get(transaction_id)
    return None if ended is None else _ended(state, ended)


def _unknown(name: str, incidents: Sequence[Incident]) -> Explanation:
    return Explanation(
        transactional_id=name, state="", producer_id=-1, producer_epoch=-1, incidents=tuple(map(_incident, incidents))
    )


def _open_handle(state: State, transaction: Transaction) -> Explanation:
    incidents = incidents_of_handle(state, transaction.transaction_id)
    return _open(state, transaction, transaction.pair, transaction.start_ms, transaction, incidents)


def _id(state: State, held: TransactionalId) -> Explanation:
    incidents = incidents_of(state, held.transactional_id)
    transaction = state.open_transaction(held)
    if transaction is not None:
        return _open(state, transaction, held.pair, held.last_update_ms, held, incidents)
    return Explanation(
        transactional_id=held.transactional_id,
        state=held.phase.value,
        producer_id=held.producer_id,
        producer_epoch=held.producer_epoch,
        timeout_ms=held.transaction_timeout_ms,
        start_ms=None if held.phase is Phase.EMPTY else held.last_start_ms,
        last_update_ms=held.last_update_ms,
        client_id=held.client_id,
        client_host=held.client_host,
        incidents=tuple(map(_incident, incidents)),
    )


def _open(
    state: State,
    transaction: Transaction,
    pair: tuple[ProducerId, ProducerEpoch],
    last_update_ms: int,
    client: TransactionalId | Transaction,
    incidents: Sequence[Incident],
) -> Explanation:
    return Explanation(
        transactional_id=name_of(transaction),
        transaction_id=transaction.transaction_id,
        is_handle=transaction.owner is None,
        is_joint=transaction.is_joint,
        state=Phase.ONGOING.value,
        producer_id=pair[0],
        producer_epoch=pair[1],
        timeout_ms=transaction.timeout_ms,
        start_ms=transaction.start_ms,
        last_update_ms=last_update_ms,
        client_id=client.client_id,
        client_host=client.client_host,
        open_producer_id=transaction.pair[0],
        open_producer_epoch=transaction.pair[1],
        deadline_ms=transaction.deadline_ms,
        partitions=_partitions(state, transaction),
        groups=tuple(sorted(transaction.groups)),
        acknowledged=tuple(_acknowledged(state, transaction)),
        subscription_count=len(transaction.subscriptions),
        incidents=tuple(map(_incident, incidents)),
    )


def _acknowledged(state: State, transaction: Transaction) -> Iterator[told.PendingMessages]:
    """Yield what it has acknowledged of each subscription; nothing of one that is gone."""
    there = ((state.partitions[key[0]], key[1]) for key in transaction.subscriptions if key[0] in state.partitions)
    first = nsmallest(MOST_DESCRIBED, there, key=lambda each: (*_by_name(each[0]), each[1]))
    for partition, name in first:
        subscription = partition.subscriptions.get(name)
        if subscription is None:
            continue
        runs, before = subscription.pending_of(transaction.transaction_id)
        yield told.PendingMessages(
            topic=partition.topic,
            partition=partition.index,
            subscription=name,
            before=before or None,
            run_count=len(runs),
            runs=tuple(runs[:MOST_DESCRIBED]),
        )


def _partitions(state: State, transaction: Transaction) -> tuple[told.HeldPartition, ...]:
    found = sorted((state.partitions[each] for each in transaction.partitions), key=_by_name)
    return tuple(_partition(each, transaction) for each in found)


def _partition(partition: Partition, transaction: Transaction) -> told.HeldPartition:
    staged = [partition.staged[each] for each in transaction.producer_ids if each in partition.staged]
    opened = partition.open_transactions
    return told.HeldPartition(
        topic=partition.topic,
        partition=partition.index,
        first_offset=min((opened[each] for each in transaction.producer_ids if each in opened), default=None),
        staged_records=sum(each.record_count for each in staged),
        staged_bytes=sum(each.size for each in staged),
    )


def _by_name(partition: Partition) -> tuple[str, int]:
    return partition.topic, partition.index


def _ended(state: State, ended: EndedHandle) -> Explanation:
    phase = Phase.COMPLETE_COMMIT if ended.committed else Phase.COMPLETE_ABORT
    is_handle = ended.owner is None
    name = ended.owner or handle_name(ended.transaction_id)
    found = incidents_of_handle(state, ended.transaction_id) if is_handle else incidents_of(state, name)
    return Explanation(
        transactional_id=name,
        transaction_id=ended.transaction_id,
        is_handle=is_handle,
        is_joint=not is_handle,
        state=phase.value,
        producer_id=ended.producer_ids[0],
        producer_epoch=ended.producer_epoch,
        timeout_ms=ended.timeout_ms,
        start_ms=ended.start_ms,
        last_update_ms=ended.ended_ms,
        incidents=tuple(map(_incident, found)),
    )


def _incident(incident: Incident) -> told.IncidentDescription:
    return told.IncidentDescription(
        what=incident.kind.name.lower(),
        cause=CAUSES[incident.cause],
        at_ms=incident.at_ms,
        producer_id=incident.producer_id,
        producer_epoch=incident.producer_epoch,
        client_id=incident.client_id,
        client_host=incident.client_host,
    )


def incidents_of(state: State, name: str) -> Sequence[Incident]:
    """Return what is remembered of why the producers of this name were fenced and its transactions aborted."""
    found = state.incidents.get(name)
    if found is not None:
        return found
    transaction_id = handle_named(name)
    return () if transaction_id is None else incidents_of_handle(state, transaction_id)


def incidents_of_handle(state: State, transaction_id: TransactionId) -> Sequence[Incident]:
    """Return why a handle or joint transaction was aborted, if it was, as long as its end is remembered."""
    ended = state.ended_handles.get(transaction_id)
    if ended is None or ended.committed:
        return ()
    incident = Incident(
        kind=IncidentKind.ABORTED,
        cause=ended.cause,
        at_ms=ended.ended_ms,
        producer_id=ended.producer_ids[0],
        producer_epoch=ended.producer_epoch,
        client_id=ended.client_id,
        client_host=ended.client_host,
    )
    return (incident,)


def describe_producers(state: State, topic: str, index: int) -> list[DescribedProducer] | None:
    """Describe who writes to a partition, and whose open transactions hold back its readers; None: there is none."""
    partition = state.partition(topic, index)
    if partition is None:
        return None
    volatile = state.volatile
    found = [
        DescribedProducer(
            producer_id=producer_id,
            producer_epoch=known.producer_epoch,
            last_sequence=known.batches[-1].last_sequence,
            last_timestamp_ms=known.last_timestamp_ms,
            has_coordinator=producer_id in volatile.holder_by_producer
            or producer_id in volatile.transaction_by_producer,
            open_first_offset=partition.open_transactions.get(producer_id, NOTHING_WRITTEN),
        )
        for producer_id, known in partition.producers.items()
    ]
    for producer_id, first_offset in partition.open_transactions.items():
        if producer_id not in partition.producers:  # a handle's, whose writers have no sequences under it
            found.append(
                DescribedProducer(
                    producer_id=producer_id,
                    producer_epoch=HANDLE_EPOCH,
                    last_sequence=-1,
                    last_timestamp_ms=-1,
                    has_coordinator=True,
                    open_first_offset=first_offset,
                )
            )
    return found
