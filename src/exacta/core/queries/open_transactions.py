"""Open transactions: whether one may be used, what it has written and acknowledged, and what all of them hold back."""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from exacta.core.ids import Offset, PartitionId, PrincipalName, TransactionId
from exacta.core.rejections import Rejection
from exacta.core.state.partition import Partition
from exacta.core.state.state import State
from exacta.core.state.transaction import Transaction
from exacta.core.transactions.handle import open_handle


class InPartition(Struct, frozen=True, kw_only=True):
    """A partition in which a transaction takes part."""

    topic: str
    index: int
    partition_id: PartitionId
    is_one_of_several: bool
    """True if its topic has several partitions."""


class WrittenPartition(Struct, frozen=True):
    """A partition that a transaction writes to."""

    partition: InPartition
    first_offset: Offset | None
    """The offset of its first record there; None: its records are staged, and have none yet."""


class AcknowledgedSubscription(Struct, frozen=True):
    """A subscription whose messages a transaction has acknowledged."""

    partition: InPartition
    name: str
    before: Offset | None
    """It has acknowledged all messages before this offset; None: it has acknowledged messages one by one."""


class OpenTransactionFacts(Struct, frozen=True):
    """A transaction that is open."""

    start_ms: int
    timeout_ms: int
    written: tuple[WrittenPartition, ...]
    acknowledged: tuple[AcknowledgedSubscription, ...]


def why_not_open(state: State, now_ms: int, transaction_id: TransactionId) -> Rejection | None:
    """Return why a client that knows its id may not use a transaction; None: it may."""
    found = open_handle(state, transaction_id, now_ms)
    return found if isinstance(found, Rejection) else None


def describe_open_transaction(state: State, now_ms: int, transaction_id: TransactionId) -> OpenTransactionFacts | None:
    """Describe a transaction that is known by its id; None if it is not open."""
    found = state.transactions.get(transaction_id)
    if found is None or not found.is_known_by_id:
        return None
    return OpenTransactionFacts(
        found.start_ms, found.timeout_ms, tuple(_written(state, found)), tuple(_acknowledged(state, found))
    )


def _written(state: State, transaction: Transaction) -> Iterator[WrittenPartition]:
    for partition_id in sorted(transaction.partitions):
        partition = state.partitions.get(partition_id)
        if partition is None:
            continue
        opened = partition.open_transactions
        first = min((opened[each] for each in transaction.producer_ids if each in opened), default=None)
        if first is not None or any(each in partition.staged for each in transaction.producer_ids):
            yield WrittenPartition(_in_partition(state, partition), first)


def _acknowledged(state: State, transaction: Transaction) -> Iterator[AcknowledgedSubscription]:
    for partition_id, name in sorted(transaction.subscriptions):
        partition = state.partitions.get(partition_id)
        if partition is None:
            continue
        subscription = partition.subscriptions.get(name)
        cumulative = None if subscription is None else subscription.cumulative
        is_its_own = cumulative is not None and cumulative.transaction_id == transaction.transaction_id
        before = cumulative.before if cumulative is not None and is_its_own else None
        yield AcknowledgedSubscription(_in_partition(state, partition), name, before)


def _in_partition(state: State, partition: Partition) -> InPartition:
    return InPartition(
        topic=partition.topic,
        index=partition.index,
        partition_id=partition.partition_id,
        is_one_of_several=state.topics[partition.topic].partition_count > 1,
    )


class HeldBack(Struct, frozen=True):
    """A partition whose readers an open transaction holds back, and by how many offsets."""

    partition_id: PartitionId
    topic: str
    offsets: int


class Content(Struct, frozen=True):
    """The content of an open transaction, for the rights that it needs."""

    transactional_id: str | None
    """The transactional id that owns it; None: it is a handle of its own."""
    written: frozenset[str]
    """Topics."""
    acknowledged: frozenset[str]
    groups: frozenset[str]
    """Consumer groups whose offsets it commits, and subscriptions whose messages it acknowledges."""


def opener_of(state: State, now_ms: int, transaction_id: TransactionId) -> PrincipalName | None:
    """Return who has begun an open transaction that is known by its id; None if it is not open."""
    found = state.transactions.get(transaction_id)
    return None if found is None or not found.is_known_by_id else found.principal


def content_of(state: State, now_ms: int, transaction_id: TransactionId) -> Content | None:
    """Return what an open transaction that is known by its id holds; None if it is not open."""
    found = state.transactions.get(transaction_id)
    if found is None or not found.is_known_by_id:
        return None

    def topics(ids: Iterable[PartitionId]) -> frozenset[str]:
        return frozenset(state.partitions[each].topic for each in ids if each in state.partitions)

    acknowledged = topics(partition_id for partition_id, _ in found.subscriptions)
    groups = frozenset(found.groups) | {name for _, name in found.subscriptions}
    return Content(found.owner, topics(found.partitions), acknowledged, groups)


class OpenSince(Struct, frozen=True):
    """The start of an open transaction, the topics that it writes to, and the partitions that it holds back."""

    start_ms: int
    topics: frozenset[str]
    held_back: tuple[HeldBack, ...]


def open_transaction_ids(state: State) -> list[TransactionId]:
    """Return the ids of all open transactions."""
    return list(state.transactions)


def open_since(state: State, ids: Iterable[TransactionId]) -> list[OpenSince]:
    """Return what those of these transactions hold back that are still open."""
    return [_since(state, found) for each in ids if (found := state.transactions.get(each)) is not None]


def _since(state: State, transaction: Transaction) -> OpenSince:
    partitions = [state.partitions[each] for each in transaction.partitions]
    held_back = (each for each in partitions if any(map(each.has_open, transaction.producer_ids)))
    return OpenSince(
        transaction.start_ms,
        frozenset(each.topic for each in partitions),
        tuple(
            HeldBack(each.partition_id, each.topic, each.next_offset - each.last_stable_offset) for each in held_back
        ),
    )


def ended_by_time(state: State, transactional_id: str) -> TransactionId | None:
    """Return the transaction that a transactional id has open; None if it has none, or one that no time ends."""
    held = state.transactional_ids.get(transactional_id)
    found = None if held is None else state.open_transaction(held)
    return None if found is None or found.deadline_ms is None else found.transaction_id
