"""Views of transactions and producers: lists, descriptions and reasons (KIP-664, and requests of our own).

A transaction is named by its transactional id, a handle as `handle_name` says. A transactional id may have the name of
a handle, and then hides it from those who ask by name. By its producer id the handle is found all the same.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from exacta.core.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, Offset, ProducerEpoch, ProducerId
from exacta.core.state.incidents import Incident, IncidentKind
from exacta.core.state.partition import Partition
from exacta.core.state.state import State
from exacta.core.state.transaction import (
    EndedHandle,
    Phase,
    Transaction,
    TransactionalId,
    handle_name,
    handle_named,
    name_of,
)

NOTHING_WRITTEN = Offset(-1)


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
    """The offset of the transaction's first record in it; `NOTHING_WRITTEN`."""


class DescribedTransaction(Struct, frozen=True, kw_only=True):
    """A description of a transactional id or a handle."""

    name: str
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
    """The first offset of its open transaction in the partition; `NOTHING_WRITTEN`."""


def list_transactions(state: State) -> Iterator[ListedTransaction]:
    """Yield every transactional id, and every handle that is open."""
    for held in state.transactional_ids.values():
        transaction = state.open_transaction(held)
        if transaction is not None:
            yield _listed(transaction)
        else:
            yield ListedTransaction(held.transactional_id, held.phase, held.producer_id, _last_start_ms(held))
    for transaction in state.transactions.values():
        if transaction.owner is None:
            yield _listed(transaction)


def _listed(transaction: Transaction) -> ListedTransaction:
    return ListedTransaction(name_of(transaction), Phase.ONGOING, transaction.pair[0], transaction.start_ms)


def _last_start_ms(held: TransactionalId) -> int:
    return -1 if held.phase is Phase.EMPTY else held.last_start_ms


def open_transactions(state: State) -> list[str]:
    """Return the names of all transactions that are open, the oldest first."""
    return list(map(name_of, state.transactions.values()))


def describe_transaction(state: State, name: str) -> DescribedTransaction | None:
    """Describe a transactional id, or a handle that is open or whose end is remembered; None: there is none."""
    held = state.transactional_ids.get(name)
    if held is not None:
        return _describe_id(state, held)
    transaction_id = handle_named(name)
    if transaction_id is None:
        return None
    transaction = state.transactions.get(transaction_id)
    if transaction is not None and transaction.owner is None:
        return _describe_open(state, transaction, transaction.pair, transaction.start_ms, transaction)
    ended = state.ended_handles.get(transaction_id)
    return None if ended is None else _describe_ended(ended)


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
    )


def _partitions(state: State, transaction: Transaction) -> tuple[DescribedPartition, ...]:
    found = sorted((state.partitions[each] for each in transaction.partitions), key=_by_name)
    return tuple(DescribedPartition(each.topic, each.index, _first_offset(each, transaction)) for each in found)


def _by_name(partition: Partition) -> tuple[str, int]:
    return partition.topic, partition.index


def _first_offset(partition: Partition, transaction: Transaction) -> Offset:
    opened = partition.open_transactions
    return min((opened[each] for each in transaction.producer_ids if each in opened), default=NOTHING_WRITTEN)


def _describe_ended(ended: EndedHandle) -> DescribedTransaction:
    return DescribedTransaction(
        name=handle_name(ended.transaction_id),
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
    ended = None if transaction_id is None else state.ended_handles.get(transaction_id)
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
                    producer_epoch=volatile.transaction_by_producer[producer_id].producer_epoch,
                    last_sequence=-1,
                    last_timestamp_ms=-1,
                    has_coordinator=True,
                    open_first_offset=first_offset,
                )
            )
    return found
