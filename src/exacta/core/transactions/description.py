"""Views of transactions and producers: lists, descriptions and reasons (KIP-664, and requests of our own).

A transaction is named by its transactional id, a handle as `handle_name` says. A joint one has both names, and is shown
by its transactional id. A transactional id may have the name of a handle, and then hides it from those who ask by name.
By its transaction id, or by its producer id, the handle is found all the same.
"""

from collections.abc import Iterator, Sequence
from heapq import nsmallest

from msgspec import Struct

from exacta.core.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, Offset, ProducerEpoch, ProducerId, TransactionId
from exacta.core.state.incidents import Incident, IncidentKind
from exacta.core.state.partition import Partition
from exacta.core.state.runs import Run
from exacta.core.state.state import State
from exacta.core.state.transaction import (
    HANDLE_EPOCH,
    EndedHandle,
    Phase,
    Transaction,
    TransactionalId,
    handle_name,
    handle_named,
    name_of,
)

NOTHING_WRITTEN = Offset(-1)
NO_TRANSACTION_ID = TransactionId(-1)

MOST_DESCRIBED = 100
"""So many subscriptions of a transaction, and so many runs of each, are described; their numbers are in any case."""


class ListedTransaction(Struct, frozen=True):
    """A transactional id or an open handle, in a list of all."""

    name: str
    phase: Phase
    producer_id: ProducerId
    """The producer id under which the open transaction's records lie; else the holder's."""
    start_ms: int
    """The time at which the open transaction began, or the last one; -1: none has since the id was initialised."""


class DescribedPartition(Struct, frozen=True):
    """A partition that takes part in an open transaction."""

    topic: str
    index: int
    first_offset: Offset
    """The offset of the transaction's first record in it; `NOTHING_WRITTEN`, also if what is written is staged."""
    staged_records: int = 0
    staged_bytes: int = 0


class DescribedAcknowledgements(Struct, frozen=True, kw_only=True):
    """The messages of one subscription that an open handle has acknowledged."""

    topic: str
    index: int
    subscription: str
    run_count: int
    runs: tuple[Run, ...]
    """The first ones."""
    before: Offset
    """It has acknowledged all messages before this offset, too; 0: only those of the runs."""


class DescribedTransaction(Struct, frozen=True, kw_only=True):
    """A description of a transactional id or a handle."""

    name: str
    transaction_id: TransactionId = NO_TRANSACTION_ID
    """The id of the open transaction; of a handle or a joint one also after its end."""
    is_handle: bool = False
    is_joint: bool = False
    """True: it is known by its transaction id, too."""
    phase: Phase
    producer_id: ProducerId
    """The holder's, by which EndTxn ends the transaction."""
    producer_epoch: ProducerEpoch
    timeout_ms: int
    """The time-out of the open transaction; else that of the next one."""
    start_ms: int
    """See `ListedTransaction`."""
    last_update_ms: int
    client_id: str = ""
    client_host: str = ""
    open_producer_id: ProducerId = NO_PRODUCER_ID
    """The pair of the open transaction's records, which is not its holder's where it is prepared (KIP-939)."""
    open_producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH
    deadline_ms: int | None = None
    """The time at which the open transaction is aborted; None: it never is, or none is open."""
    partitions: tuple[DescribedPartition, ...] = ()
    """The partitions that take part, in the order of topics and indexes."""
    groups: tuple[str, ...] = ()
    acknowledgements: tuple[DescribedAcknowledgements, ...] = ()
    """The first subscriptions of which it has acknowledged messages, in the order of topics, indexes and names."""
    subscription_count: int = 0

    @property
    def is_open(self) -> bool:
        """Return whether a transaction is open."""
        return self.phase is Phase.ONGOING


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
    return ListedTransaction(held.transactional_id, held.phase, held.producer_id, _last_start_ms(held))


def _listed(transaction: Transaction) -> ListedTransaction:
    return ListedTransaction(name_of(transaction), Phase.ONGOING, transaction.pair[0], transaction.start_ms)


def _last_start_ms(held: TransactionalId) -> int:
    return -1 if held.phase is Phase.EMPTY else held.last_start_ms


def describe_open_transaction(state: State, transaction_id: TransactionId) -> DescribedTransaction | None:
    """Describe a transaction that is open; None if it is not."""
    transaction = state.transactions.get(transaction_id)
    if transaction is None:
        return None
    held = state.holder_of(transaction)
    return _describe_open_handle(state, transaction) if held is None else _describe_id(state, held)


def describe_transaction(state: State, name: str) -> DescribedTransaction | None:
    """Describe a transactional id, or a handle that is open or whose end is remembered; None: there is none."""
    held = state.transactional_ids.get(name)
    if held is not None:
        return _describe_id(state, held)
    transaction_id = handle_named(name)
    return None if transaction_id is None else describe_handle(state, transaction_id)


def describe_handle(state: State, transaction_id: TransactionId) -> DescribedTransaction | None:
    """Describe a handle or joint transaction that is open or whose end is remembered; None: there is none."""
    transaction = state.transactions.get(transaction_id)
    if transaction is not None and transaction.is_known_by_id:
        held = state.holder_of(transaction)
        return _describe_open_handle(state, transaction) if held is None else _describe_id(state, held)
    ended = state.ended_handles.get(transaction_id)
    return None if ended is None else _describe_ended(ended)


def _describe_open_handle(state: State, transaction: Transaction) -> DescribedTransaction:
    return _describe_open(state, transaction, transaction.pair, transaction.start_ms, transaction)


def _describe_id(state: State, held: TransactionalId) -> DescribedTransaction:
    transaction = state.open_transaction(held)
    if transaction is not None:
        return _describe_open(state, transaction, held.pair, held.last_update_ms, held)
    return DescribedTransaction(
        name=held.transactional_id,
        phase=held.phase,
        producer_id=held.producer_id,
        producer_epoch=held.producer_epoch,
        timeout_ms=held.transaction_timeout_ms,
        start_ms=_last_start_ms(held),
        last_update_ms=held.last_update_ms,
        client_id=held.client_id,
        client_host=held.client_host,
    )


def _describe_open(
    state: State,
    transaction: Transaction,
    pair: tuple[ProducerId, ProducerEpoch],
    last_update_ms: int,
    client: TransactionalId | Transaction,
) -> DescribedTransaction:
    return DescribedTransaction(
        name=name_of(transaction),
        transaction_id=transaction.transaction_id,
        is_handle=transaction.owner is None,
        is_joint=transaction.is_joint,
        phase=Phase.ONGOING,
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
        acknowledgements=tuple(_acknowledgements(state, transaction)),
        subscription_count=len(transaction.subscriptions),
    )


def _acknowledgements(state: State, transaction: Transaction) -> Iterator[DescribedAcknowledgements]:
    """Yield what it has acknowledged of each subscription; nothing of one that is gone."""
    there = ((state.partitions[key[0]], key[1]) for key in transaction.subscriptions if key[0] in state.partitions)
    first = nsmallest(MOST_DESCRIBED, there, key=lambda each: (*_by_name(each[0]), each[1]))
    for partition, name in first:
        subscription = partition.subscriptions.get(name)
        if subscription is None:
            continue
        runs, before = subscription.pending_of(transaction.transaction_id)
        yield DescribedAcknowledgements(
            topic=partition.topic,
            index=partition.index,
            subscription=name,
            run_count=len(runs),
            runs=tuple(runs[:MOST_DESCRIBED]),
            before=before,
        )


def _partitions(state: State, transaction: Transaction) -> tuple[DescribedPartition, ...]:
    found = sorted((state.partitions[each] for each in transaction.partitions), key=_by_name)
    return tuple(_partition(each, transaction) for each in found)


def _partition(partition: Partition, transaction: Transaction) -> DescribedPartition:
    staged = [partition.staged[each] for each in transaction.producer_ids if each in partition.staged]
    return DescribedPartition(
        partition.topic,
        partition.index,
        _first_offset(partition, transaction),
        staged_records=sum(each.record_count for each in staged),
        staged_bytes=sum(each.size for each in staged),
    )


def _by_name(partition: Partition) -> tuple[str, int]:
    return partition.topic, partition.index


def _first_offset(partition: Partition, transaction: Transaction) -> Offset:
    opened = partition.open_transactions
    return min((opened[each] for each in transaction.producer_ids if each in opened), default=NOTHING_WRITTEN)


def _describe_ended(ended: EndedHandle) -> DescribedTransaction:
    return DescribedTransaction(
        name=ended.owner or handle_name(ended.transaction_id),
        transaction_id=ended.transaction_id,
        is_handle=ended.owner is None,
        is_joint=ended.owner is not None,
        phase=Phase.COMPLETE_COMMIT if ended.committed else Phase.COMPLETE_ABORT,
        producer_id=ended.producer_ids[0],
        producer_epoch=ended.producer_epoch,
        timeout_ms=ended.timeout_ms,
        start_ms=ended.start_ms,
        last_update_ms=ended.ended_ms,
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
