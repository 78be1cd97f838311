"""The invariants of transactions, handles and ids; `invariants.py` says how such functions are made."""

from collections.abc import Iterator, Set

from exacta.core.events import (
    BatchAppended,
    BatchStaged,
    ConclusionHeard,
    IdsReserved,
    ProducerBound,
    TransactionalOffsetsCommitted,
    TransactionBegun,
    TransactionEnded,
    TransactionExtended,
    TransactionJoined,
)
from exacta.core.ids import NO_PRODUCER_ID, NO_TIMEOUT_MS, Cause, PartitionId, ProducerId, TransactionId
from exacta.core.state.state import State
from exacta.core.state.transaction import HANDLE_EPOCH, Transaction, name_of
from exacta.core.transactions.numbering import Pair, highest_ids
from simulation.invariants.log import Log, open_at_end


def ends_are_whole(state: State) -> Iterator[str]:
    """Invariant 3: whatever is open or pending belongs to a transaction that is open; nothing survives its end."""
    ongoing = {each: known for each, known in state.transactions.items() if _is_known(state, known)}
    by_producer = {producer_id: each for each in ongoing.values() for producer_id in each.producer_ids}
    for partition in state.partitions.values():
        for producer_id in partition.open_transactions:
            found = by_producer.get(producer_id)
            if found is None or partition.partition_id not in found.partitions:
                yield f"3: producer {producer_id} holds {partition.topic}-{partition.index} open outside a transaction"
    for group in state.groups.values():
        for transaction_id in group.pending:
            found = ongoing.get(transaction_id)
            if found is None or group.group_id not in found.groups:
                yield f"3: transaction {transaction_id} has offsets pending in {group.group_id}, and is not open there"


def _is_known(state: State, transaction: Transaction) -> bool:
    """Return whether the owner, if there is one, has this transaction open."""
    if transaction.owner is None:
        return True
    held = state.transactional_ids.get(transaction.owner)
    return held is not None and held.open == transaction.transaction_id


def writes_belong_to_a_transaction(log: Log) -> Iterator[str]:
    """Invariant 3, by the log: what is written in a transaction was registered with it, and so ends with it."""
    registered: dict[TransactionId, set[object]] = {}
    written_by: dict[ProducerId, TransactionId] = {}
    for event in log:
        match event:
            case TransactionBegun():
                registered[event.transaction_id] = {*event.partitions, *event.groups}
                written_by |= dict.fromkeys(event.producer_ids, event.transaction_id)
            case TransactionJoined():
                written_by |= dict.fromkeys(event.producer_ids, event.transaction_id)
            case TransactionExtended():
                registered.setdefault(event.transaction_id, set()).update(event.partitions, event.groups)
            case BatchAppended(transactional=True) | BatchStaged():
                transaction_id = written_by.get(event.producer_id, TransactionId(-1))
                if event.partition_id not in registered.get(transaction_id, set()):
                    yield f"3: {event} is not part of a transaction"
            case TransactionalOffsetsCommitted():
                if event.group_id not in registered.get(event.transaction_id, set()):
                    yield f"3: {event} is not part of a transaction"
            case TransactionEnded():
                registered.pop(event.transaction_id, None)
            case _:
                pass


def only_older_ones_hold_back(state: State, log: Log) -> Iterator[str]:
    """Invariant 3, for readers: an end takes effect in all of the transaction's partitions at one place in the log.

    A record of it lies below its partition's last stable offset from then on, unless a transaction is open that began
    before the record in the same partition: that one's first record there has a lower offset. Nothing else holds a
    record back, not even what began earlier elsewhere, so where it is held back in some partitions a reader sees the
    rest of the transaction first.
    """
    open_transactions = open_at_end(log)
    waiting: dict[ProducerId, list[BatchAppended]] = {}
    for event in log:
        if isinstance(event, BatchAppended) and event.transactional:
            waiting.setdefault(event.producer_id, []).append(event)
        elif isinstance(event, TransactionEnded):
            for batch in [each for producer_id in event.producer_ids for each in waiting.pop(producer_id, [])]:
                partition = state.partitions.get(batch.partition_id)
                if partition is None:
                    continue
                held_back = max(batch.base_offset, partition.last_stable_offset)
                if held_back >= batch.base_offset + batch.record_count:
                    continue
                if not any(first < held_back for first in open_transactions.get(batch.partition_id, {}).values()):
                    where = f"{partition.topic}-{partition.index}"
                    yield f"3: {event} has ended, and nothing older holds back its record at {held_back} of {where}"


def epochs_only_grow(state: State, log: Log) -> Iterator[str]:
    """Invariant 6: epochs only grow, up to the limit; producer ids have one owner; and old epochs write nothing."""
    bound: dict[str | TransactionId, Pair] = {}
    begun: dict[TransactionId, Pair] = {}
    prepared: set[TransactionId] = set()
    owner: dict[ProducerId, str | TransactionId] = {}
    whose: str | TransactionId
    for event in log:
        match event:
            case BatchAppended() | BatchStaged() if event.producer_id in owner:
                current = bound.get(owner[event.producer_id])
                if (event.producer_id, event.producer_epoch) != current:
                    yield f"6: {event} was accepted although {current} is current"
                continue
            case TransactionBegun(owner=None):
                pair = begun[event.transaction_id] = (event.producer_ids[0], event.producer_epoch)
                whose = event.transaction_id
                if pair[0] in owner:
                    yield f"6: {event} is given a producer id of {owner[pair[0]]}"
            case TransactionBegun():
                begun[event.transaction_id] = (event.producer_ids[0], event.producer_epoch)
                if begun[event.transaction_id] != bound[str(event.owner)]:
                    yield f"6: {event} begins although {bound[str(event.owner)]} is current"
                continue
            case TransactionJoined():
                pair = begun[event.transaction_id] = (event.producer_ids[0], event.producer_epoch)
                if pair != bound[event.owner]:
                    yield f"6: {event} joins although {bound[event.owner]} is current"
                whose, pair = event.transaction_id, (event.producer_ids[-1], HANDLE_EPOCH)
                if whose in bound and bound[whose] == pair:
                    continue
                if pair[0] in owner:
                    yield f"6: {event} is given a producer id of {owner[pair[0]]}"
            case TransactionEnded():
                whose = event.transaction_id if event.owner is None else event.owner
                current = bound.get(whose)
                expected = begun.pop(event.transaction_id, current)
                moved = expected != current and event.transaction_id not in prepared
                if (event.producer_ids[0], event.producer_epoch) != expected or moved:
                    yield f"6: {event} was accepted although {current} is current"
                bound.pop(event.transaction_id, None)
                if not event.bumps:
                    continue
                pair = (event.next_producer_id, event.next_producer_epoch)
            case ProducerBound():
                whose = event.transactional_id
                if event.prepared is not None:
                    prepared.add(event.prepared)
                pair = (event.producer_id, event.producer_epoch)
            case _:
                continue
        if pair[1] > state.limits.highest_epoch:
            yield f"6: {event} passes the highest epoch"
        if owner.setdefault(pair[0], whose) != whose:
            yield f"6: producer id {pair[0]} has two owners"
        before = bound.get(whose)
        again = isinstance(event, ProducerBound) and event.previous_producer_id != NO_PRODUCER_ID and pair == before
        if before is not None and pair <= before and not again:
            yield f"6: {event} does not fence {before}"
        bound[whose] = pair


def ids_are_given_out_once(state: State, log: Log) -> Iterator[str]:
    """Invariant 9: no transaction id is given out twice, and no id of either kind that is not reserved (0027)."""
    reserved = (0, 0)
    given: set[TransactionId] = set()
    begun: set[TransactionId] = set()
    for event in log:
        if isinstance(event, IdsReserved):
            ends = (int(event.end_producer_id), int(event.end_transaction_id))
            if ends[0] < reserved[0] or ends[1] < reserved[1]:
                yield f"9: {event} takes back what was reserved: {reserved}"
            reserved = ends
        producer_id, transaction_id = highest_ids((event,))
        if producer_id >= reserved[0] or transaction_id >= reserved[1]:
            yield f"9: {event} gives out what is not reserved: {reserved} is"
        if isinstance(event, TransactionBegun) or (
            isinstance(event, TransactionEnded) and event.transaction_id not in begun
        ):
            if given and event.transaction_id <= max(given):
                yield f"9: {event} is given a transaction id that is not above {max(given)}"
            given.add(event.transaction_id)
        if isinstance(event, TransactionBegun):
            begun.add(event.transaction_id)
        elif isinstance(event, TransactionEnded):
            begun.discard(event.transaction_id)
    volatile = state.volatile
    if given and max(given) >= volatile.next_transaction_id:
        yield f"9: transaction {max(given)} was given out, and {volatile.next_transaction_id} comes next"
    holders = [each.producer_id for each in state.transactional_ids.values()]
    if holders and max(holders) >= volatile.next_producer_id:
        yield f"9: producer id {max(holders)} was given out, and {volatile.next_producer_id} comes next"


def lost_handles_do_not_commit(log: Log, found_after_loss: Set[TransactionId]) -> Iterator[str]:
    """Invariant 2: no handle is committed that was found open after a loss, and so may have lost writes (0027)."""
    for event in log:
        if isinstance(event, TransactionEnded) and event.committed and event.transaction_id in found_after_loss:
            yield f"2: {event} is committed, and writes of it may be lost"


def open_transactions_can_end(state: State, log: Log) -> Iterator[str]:
    """Invariant 7: every open transaction has a deadline or is prepared; an end names exactly what it ends."""
    yield from _open_ones_are_known(state)
    written: dict[ProducerId, set[PartitionId]] = {}
    for event in log:
        if isinstance(event, BatchAppended) and event.transactional:
            written.setdefault(event.producer_id, set()).add(event.partition_id)
        elif isinstance(event, TransactionEnded):
            markers = {(partition_id, producer_id) for partition_id, _, producer_id in event.markers}
            alive = {
                (key, producer_id)
                for producer_id in event.producer_ids
                for key in written.pop(producer_id, set())
                if key in state.partitions
            }
            if not alive <= markers:
                yield f"7: {event} left {alive - markers} open"


def _open_ones_are_known(state: State) -> Iterator[str]:
    volatile = state.volatile
    for transaction in state.transactions.values():
        name = name_of(transaction)
        limited = 0 < transaction.timeout_ms <= state.limits.transaction_max_timeout_ms
        prepared = transaction.timeout_ms == NO_TIMEOUT_MS and transaction.owner is not None
        if not (limited or prepared) or transaction.start_ms < 0:
            yield f"7: {name} is open without a deadline"
        if not _is_known(state, transaction):
            yield f"7: transaction {transaction.transaction_id} is open, and its owner {name} has another one, or none"
        if any(volatile.transaction_by_producer.get(each) is not transaction for each in transaction.producer_ids):
            yield f"7: nobody finds the transaction of {name} by its producer ids"
    for held in state.transactional_ids.values():
        if held.open is not None and held.open not in state.transactions:
            yield f"7: {held.transactional_id} has transaction {held.open} open, which is not there"
        if volatile.holder_by_producer.get(held.producer_id) is not held:
            yield f"7: nobody finds {held.transactional_id} by its producer id"
    known_by_id = [each for each in state.transactions.values() if each.is_known_by_id]
    if len(known_by_id) != volatile.open_handles:
        yield f"7: {len(known_by_id)} handles are open, and {volatile.open_handles} are counted"
    participants = [each.participants for each in known_by_id]
    if sum(participants) != volatile.handle_participants:
        yield f"limits: {volatile.handle_participants} participants of handles are counted, and are {sum(participants)}"
    most = max((each.participants for each in known_by_id if not each.is_joint), default=0)
    if most > state.limits.max_participants_per_handle:
        yield f"limits: a handle has {most} participants"


def joint_ones_end_once(log: Log) -> Iterator[str]:
    """Invariant 3, for joint transactions: nothing begins under a pair whose holder has to hear of an end first."""
    joint: dict[TransactionId, bool] = {}
    concluded: dict[str, TransactionId] = {}
    for event in log:
        match event:
            case TransactionJoined():
                if event.owner in concluded and joint.get(concluded.pop(event.owner), False):
                    yield f"3: {event} joins although its holder has not heard of the last end"
                joint[event.transaction_id] = event.transaction_id in joint
            case TransactionBegun():
                if event.owner is not None:
                    if event.owner in concluded:
                        yield f"3: {event} begins although its holder has not heard of {concluded[event.owner]}"
                    joint[event.transaction_id] = True
            case TransactionExtended(by_owner=True):
                joint[event.transaction_id] = True
            case TransactionEnded():
                if event.owner is not None:
                    concluded.pop(event.owner, None)
                    if event.cause is Cause.OTHER_SIDE:
                        concluded[event.owner] = event.transaction_id
            case ProducerBound():
                concluded.pop(event.transactional_id, None)
            case ConclusionHeard():
                concluded.pop(event.transactional_id, None)
            case _:
                pass
