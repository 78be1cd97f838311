"""The invariants of docs/explanation/architecture.md, as functions over the state and the events that led to it.

Each yields one sentence per violation, and derives its expectation from the events alone, the long way round, so that
it does not repeat what `decide` and `apply` believe. `violations` is all of them, those of groups (`groups.py`) among
them. For tests and simulation, not for the hot path: each call reads the whole log.
"""

from collections.abc import Iterator, Sequence, Set

from msgspec import Struct

from exacta.core.apply import apply
from exacta.core.events import (
    AbortedForgotten,
    BatchAppended,
    LogStartMoved,
    PartitionsAdded,
    ProducerBound,
    ProducersExpired,
    TopicCreated,
    TransactionalOffsetsCommitted,
    TransactionEnded,
    TransactionExtended,
)
from exacta.core.groups.lag import aborted_records
from exacta.core.ids import NO_PRODUCER_ID, NO_TIMEOUT_MS, Offset, PartitionId, ProducerEpoch, ProducerId
from exacta.core.invariants.groups import Log, group_offsets_have_taken_effect, groups_are_durable
from exacta.core.invariants.writers import (
    bodies_are_known,
    named_sequences_grow,
    named_writers_are_no_producers,
    writers_have_one_name,
)
from exacta.core.log.aborted import aborted_between
from exacta.core.snapshot import is_same
from exacta.core.state.internal_topics import INTERNAL_TOPICS
from exacta.core.state.partition import Partition
from exacta.core.state.state import State
from exacta.core.state.transaction import Phase


class Acknowledged(Struct, frozen=True):
    """A client was told that this batch is in the log at this offset."""

    partition_id: PartitionId
    base_offset: Offset
    record_count: int
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    base_sequence: int


def violations(state: State, log: Log, acknowledged: Sequence[Acknowledged] = ()) -> list[str]:
    """Return every violated invariant in a sentence."""
    return [
        *sequences_are_contiguous(state, log),
        *named_sequences_grow(state, log),
        *writers_have_one_name(state, log),
        *named_writers_are_no_producers(state, log),
        *bodies_are_known(state, log),
        *acknowledged_once(log, acknowledged),
        *ends_are_whole(state),
        *writes_belong_to_a_transaction(log),
        *only_older_ones_hold_back(state, log),
        *group_offsets_have_taken_effect(state, log),
        *last_stable_offsets(state, log),
        *read_committed_is_exact(state, log),
        *aborted_records_are_counted(state, log),
        *epochs_only_grow(state, log),
        *open_transactions_can_end(state, log),
        *partitions_have_one_topic(state, log),
        *internal_topics_are_empty(log),
        *groups_are_durable(state, log),
        *state_is_the_fold(state, log),
    ]


def sequences_are_contiguous(state: State, log: Log) -> Iterator[str]:
    """Invariant 1: per producer, epoch and partition, sequences follow each other; a new epoch begins at 0."""
    last: dict[tuple[PartitionId, ProducerId], tuple[ProducerEpoch, int]] = {}
    for event in log:
        if isinstance(event, ProducersExpired):
            for forgotten in event.producers:
                last.pop(forgotten, None)
        if not isinstance(event, BatchAppended) or event.producer_id < 0 or event.writer_id >= 0:
            continue
        key = (event.partition_id, event.producer_id)
        before = last.get(key)
        if before is not None:
            epoch, sequence = before
            expected = 0 if event.producer_epoch > epoch else (sequence + 1) % state.limits.sequence_modulus
            if event.producer_epoch < epoch:
                yield f"1: {event} is of an epoch below {epoch}"
            elif event.base_sequence != expected:
                yield f"1: {event} begins at sequence {event.base_sequence}, not {expected}"
        sequence = (event.base_sequence + event.record_count - 1) % state.limits.sequence_modulus
        last[key] = (event.producer_epoch, sequence)


def acknowledged_once(log: Log, acknowledged: Sequence[Acknowledged]) -> Iterator[str]:
    """Invariant 2: an acknowledged batch is in the log once, at the acknowledged offset."""
    appended = {(event.partition_id, event.base_offset): event for event in log if isinstance(event, BatchAppended)}
    for answer in acknowledged:
        event = appended.get((answer.partition_id, answer.base_offset))
        if event is None:
            yield f"2: {answer} is not in the log"
        elif (event.producer_id, event.producer_epoch, event.base_sequence, event.record_count) != (
            answer.producer_id,
            answer.producer_epoch,
            answer.base_sequence,
            answer.record_count,
        ):
            yield f"2: at the place of {answer} lies {event}"


def ends_are_whole(state: State) -> Iterator[str]:
    """Invariant 3: whatever is open or pending belongs to a transaction that is open; nothing survives its end."""
    ongoing = {held.open_pair[0]: held for held in state.transactionals.values() if held.phase is Phase.ONGOING}
    for partition in state.partitions.values():
        for producer_id in partition.open_transactions:
            held = ongoing.get(producer_id)
            if held is None or partition.partition_id not in held.partitions:
                yield f"3: producer {producer_id} holds {partition.topic}-{partition.index} open outside a transaction"
    for group in state.groups.values():
        for producer_id in group.pending:
            held = ongoing.get(producer_id)
            if held is None or group.group_id not in held.groups:
                yield f"3: producer {producer_id} has offsets pending in {group.group_id} outside a transaction"


def writes_belong_to_a_transaction(log: Log) -> Iterator[str]:
    """Invariant 3, by the log: what is written in a transaction was registered with it, and so ends with it."""
    registered: dict[str, set[object]] = {}
    holder: dict[ProducerId, str] = {}
    for event in log:
        match event:
            case ProducerBound():
                holder[event.producer_id] = event.transactional_id
            case TransactionExtended():
                registered.setdefault(event.transactional_id, set()).update(event.partitions, event.groups)
            case BatchAppended(transactional=True):
                if event.partition_id not in registered.get(holder[event.producer_id], set()):
                    yield f"3: {event} is not part of a transaction"
            case TransactionalOffsetsCommitted():
                if event.group_id not in registered.get(holder[event.producer_id], set()):
                    yield f"3: {event} is not part of a transaction"
            case TransactionEnded():
                registered.pop(event.transactional_id, None)
                if event.bumps:
                    holder[event.next_producer_id] = event.transactional_id
            case _:
                pass


def only_older_ones_hold_back(state: State, log: Log) -> Iterator[str]:
    """Invariant 3, for readers: an end takes effect in all of the transaction's partitions at one place in the log.

    A record of it lies below its partition's last stable offset from then on, unless a transaction is open that began
    before the record in the same partition: that one's first record there has a lower offset. Nothing else holds a
    record back, not even what began earlier elsewhere, so where it is held back in some partitions a reader sees the
    rest of the transaction first.
    """
    open_transactions = _open_at_end(log)
    waiting: dict[ProducerId, list[BatchAppended]] = {}
    for event in log:
        if isinstance(event, BatchAppended) and event.transactional:
            waiting.setdefault(event.producer_id, []).append(event)
        elif isinstance(event, TransactionEnded):
            for batch in waiting.pop(event.producer_id, []):
                partition = state.partitions.get(batch.partition_id)
                if partition is None:
                    continue
                held_back = max(batch.base_offset, partition.last_stable_offset)
                if held_back >= batch.base_offset + batch.record_count:
                    continue
                if not any(first < held_back for first in open_transactions.get(batch.partition_id, {}).values()):
                    where = f"{partition.topic}-{partition.index}"
                    yield f"3: {event} has ended, and nothing older holds back its record at {held_back} of {where}"


def _open_at_end(log: Log) -> dict[PartitionId, dict[ProducerId, Offset]]:
    open_transactions: dict[PartitionId, dict[ProducerId, Offset]] = {}
    for event in log:
        if isinstance(event, BatchAppended) and event.transactional:
            open_transactions.setdefault(event.partition_id, {}).setdefault(event.producer_id, event.base_offset)
        elif isinstance(event, TransactionEnded):
            for producers in open_transactions.values():
                producers.pop(event.producer_id, None)
    return open_transactions


def _next_offsets(log: Log) -> dict[PartitionId, int]:
    next_offsets: dict[PartitionId, int] = {}
    for event in log:
        if isinstance(event, BatchAppended):
            next_offsets[event.partition_id] = event.base_offset + event.record_count
        elif isinstance(event, TransactionEnded):
            for partition_id, offset in event.markers:
                next_offsets[partition_id] = offset + 1
    return next_offsets


def last_stable_offsets(state: State, log: Log) -> Iterator[str]:
    """Invariant 4: LSO = min(next offset, first offset of the oldest open transaction). Offsets have no holes.

    The log's start never moves back, nor past its end; and the LSO is never before it.
    """
    open_transactions, next_offsets = _open_at_end(log), _next_offsets(log)
    yield from _log_starts(state, log)
    for partition_id, partition in state.partitions.items():
        next_offset = next_offsets.get(partition_id, 0)
        if partition.next_offset != next_offset:
            yield f"4: {partition.topic}-{partition.index} ends at {partition.next_offset}, its log at {next_offset}"
        first_open = min([next_offset, *open_transactions.get(partition_id, {}).values()])
        expected = max(first_open, partition.log_start_offset)
        if partition.last_stable_offset != expected:
            yield f"4: LSO of {partition.topic}-{partition.index} is {partition.last_stable_offset}, not {expected}"


def _log_starts(state: State, log: Log) -> Iterator[str]:
    starts: dict[PartitionId, Offset] = {}
    for number, event in enumerate(log):
        if isinstance(event, LogStartMoved):
            end_offset = _next_offsets(log[:number]).get(event.partition_id, 0)
            if not starts.get(event.partition_id, 0) < event.log_start_offset <= end_offset:
                yield f"4: {event} moves the start from {starts.get(event.partition_id, 0)}, the end is {end_offset}"
            starts[event.partition_id] = event.log_start_offset
    for partition_id, partition in state.partitions.items():
        if partition.log_start_offset != starts.get(partition_id, 0):
            yield f"4: {partition.topic}-{partition.index} starts at {partition.log_start_offset}, not as its log says"


def read_committed_is_exact(state: State, log: Log) -> Iterator[str]:
    """Invariant 5: a reader with the aborted index sees what was committed, from wherever it begins to read."""
    for partition in state.partitions.values():
        expected = _committed_batches(log, partition)
        start, gone = partition.log_start_offset, _gone(log, partition)
        for from_offset in {start, *(offset for offset, _ in expected), partition.last_stable_offset}:
            seen = _read_committed(log, partition, Offset(from_offset), gone)
            wanted = [batch for batch in expected if batch[0] >= from_offset]
            if seen != wanted:
                yield f"5: from {from_offset} a reader of {partition.topic}-{partition.index} sees {seen}, not {wanted}"


def aborted_records_are_counted(state: State, log: Log) -> Iterator[str]:
    """Invariant 5, for those who count: what was aborted is known record by record."""
    for partition in state.partitions.values():
        start = partition.log_start_offset
        expected = {offset for offset in _aborted_offsets(log, partition) if offset >= start}
        for from_offset in {int(start), *expected, *(offset + 1 for offset in expected)}:
            for end_offset in (from_offset + 1, partition.last_stable_offset, partition.next_offset):
                counted = aborted_records(partition, from_offset, end_offset)
                wanted = sum(from_offset <= offset < end_offset for offset in expected)
                if counted != wanted:
                    where = f"{partition.topic}-{partition.index} from {from_offset} to {end_offset}"
                    yield f"5: {counted} aborted records in {where}, not {wanted}"


def _aborted_offsets(log: Log, partition: Partition) -> set[int]:
    aborted: set[int] = set()
    waiting: dict[ProducerId, list[int]] = {}
    gone = _gone(log, partition)
    for event in log:
        if isinstance(event, BatchAppended) and event.partition_id == partition.partition_id and event.transactional:
            if event.base_offset in gone:
                continue
            offsets = range(event.base_offset, event.base_offset + event.record_count)
            waiting.setdefault(event.producer_id, []).extend(offsets)
        elif isinstance(event, TransactionEnded):
            offsets_of = waiting.pop(event.producer_id, [])
            if not event.committed:
                aborted.update(offsets_of)
    return aborted


def _gone(log: Log, partition: Partition) -> set[Offset]:
    """Return the batches of aborted transactions that compaction has removed: readers are told of these no more."""
    gone: set[Offset] = set()
    waiting: dict[ProducerId, list[Offset]] = {}
    aborted: list[tuple[Offset, list[Offset]]] = []
    for event in log:
        if isinstance(event, BatchAppended) and event.partition_id == partition.partition_id and event.transactional:
            waiting.setdefault(event.producer_id, []).append(event.base_offset)
        elif isinstance(event, TransactionEnded):
            ended = waiting.pop(event.producer_id, [])
            if ended and not event.committed:
                aborted.append((dict(event.markers)[partition.partition_id], ended))
        elif isinstance(event, AbortedForgotten) and event.partition_id == partition.partition_id:
            for marker, offsets in aborted:
                if marker < event.before_offset:
                    gone.update(offsets)
    return gone


def _committed_batches(log: Log, partition: Partition) -> list[tuple[Offset, ProducerId]]:
    committed: list[tuple[Offset, ProducerId]] = []
    waiting: dict[ProducerId, list[tuple[Offset, ProducerId]]] = {}
    for event in log:
        if isinstance(event, BatchAppended) and event.partition_id == partition.partition_id:
            batch = (event.base_offset, event.producer_id)
            if event.transactional:
                waiting.setdefault(event.producer_id, []).append(batch)
            else:
                committed.append(batch)
        elif isinstance(event, TransactionEnded):
            batches = waiting.pop(event.producer_id, [])
            if event.committed:
                committed.extend(batches)
    return sorted(batch for batch in committed if partition.log_start_offset <= batch[0] < partition.last_stable_offset)


def _read_committed(
    log: Log, partition: Partition, from_offset: Offset, gone: Set[Offset]
) -> list[tuple[Offset, ProducerId]]:
    """Do what Kafka's consumer does with an aborted list (KIP-98); of the log these batches are `gone`."""
    end_offset = partition.last_stable_offset
    to_come = sorted(aborted_between(partition, from_offset, end_offset), key=lambda entry: entry.first_offset)
    aborting: set[ProducerId] = set()
    seen: list[tuple[Offset, ProducerId]] = []
    for event in log:
        if isinstance(event, BatchAppended) and event.partition_id == partition.partition_id:
            if not from_offset <= event.base_offset < end_offset or event.base_offset in gone:
                continue
            while to_come and to_come[0].first_offset <= event.base_offset:
                aborting.add(to_come.pop(0).producer_id)
            if not (event.transactional and event.producer_id in aborting):
                seen.append((event.base_offset, event.producer_id))
        elif isinstance(event, TransactionEnded) and partition.partition_id in dict(event.markers):
            marker = dict(event.markers)[partition.partition_id]
            if from_offset <= marker < end_offset and not event.committed:
                while to_come and to_come[0].first_offset <= marker:
                    aborting.add(to_come.pop(0).producer_id)
                aborting.discard(event.producer_id)
    return seen


def epochs_only_grow(state: State, log: Log) -> Iterator[str]:
    """Invariant 6: epochs only grow, up to the limit; ids have one owner; and old epochs write nothing."""
    bound: dict[str, tuple[ProducerId, ProducerEpoch]] = {}
    kept: dict[str, tuple[ProducerId, ProducerEpoch]] = {}
    owner: dict[ProducerId, str] = {}
    for event in log:
        if isinstance(event, BatchAppended | TransactionEnded) and event.producer_id in owner:
            whose = owner[event.producer_id]
            current = bound[whose]
            if isinstance(event, TransactionEnded):
                current = kept.pop(whose, current)
            if (event.producer_id, event.producer_epoch) != current:
                yield f"6: {event} was accepted although {current} is current"
        if isinstance(event, ProducerBound):
            if event.keeps:
                kept.setdefault(event.transactional_id, bound[event.transactional_id])
            pair = (event.producer_id, event.producer_epoch)
        elif isinstance(event, TransactionEnded) and event.bumps:
            pair = (event.next_producer_id, event.next_producer_epoch)
        else:
            continue
        if pair[1] > state.limits.highest_epoch:
            yield f"6: {event} passes the highest epoch"
        if owner.setdefault(pair[0], event.transactional_id) != event.transactional_id:
            yield f"6: producer id {pair[0]} has two owners"
        before = bound.get(event.transactional_id)
        again = isinstance(event, ProducerBound) and event.previous_producer_id != NO_PRODUCER_ID and pair == before
        if before is not None and pair <= before and not again:
            yield f"6: {event} does not fence {before}"
        bound[event.transactional_id] = pair


def open_transactions_can_end(state: State, log: Log) -> Iterator[str]:
    """Invariant 7: every open transaction has a deadline, and an end names exactly the transaction it ends."""
    for held in state.transactionals.values():
        if held.phase is Phase.ONGOING:
            limited = 0 < held.open_timeout_ms <= state.limits.transaction_max_timeout_ms
            if not (limited or held.open_timeout_ms == NO_TIMEOUT_MS) or held.start_ms < 0:
                yield f"7: {held.transactional_id} is open without a deadline"
        elif held.partitions or held.groups:
            yield f"7: {held.transactional_id} is not open but holds {held.partitions} and {held.groups}"
        if state.volatile.transactional_by_producer.get(held.producer_id) is not held:
            yield f"7: nobody finds {held.transactional_id} by its producer id"
    written: dict[ProducerId, set[PartitionId]] = {}
    for event in log:
        if isinstance(event, BatchAppended) and event.transactional:
            written.setdefault(event.producer_id, set()).add(event.partition_id)
        elif isinstance(event, TransactionEnded):
            markers = {partition_id for partition_id, _ in event.markers}
            alive = {key for key in written.pop(event.producer_id, set()) if key in state.partitions}
            if not alive <= markers:
                yield f"7: {event} left {alive - markers} open"


def partitions_have_one_topic(state: State, log: Log) -> Iterator[str]:
    """Topics' partitions have dense indexes and ids of their own, which are never given a second time."""
    given: set[PartitionId] = set()
    for event in log:
        if isinstance(event, TopicCreated | PartitionsAdded):
            first = event.first_partition_id
            ids = set(map(PartitionId, range(first, first + event.partition_count)))
            if given & ids:
                yield f"partitions: {event} gives {given & ids} a second time"
            given |= ids
    found = {
        partition_id: (topic.topic, index)
        for topic in state.topics.values()
        for index, partition_id in enumerate(topic.partition_ids)
    }
    expected = {partition.partition_id: (partition.topic, partition.index) for partition in state.partitions.values()}
    if found != expected or list(expected) != list(state.partitions):
        yield f"partitions: topics have the partitions {found}, partitions the topics {expected}"
    for topic in state.topics.values():
        if [topic.partition_id(index) for index in range(-1, topic.partition_count + 1)] != [
            None,
            *topic.partition_ids,
            None,
        ]:
            yield f"partitions: {topic.topic} does not find its partitions"


def internal_topics_are_empty(log: Log) -> Iterator[str]:
    """Nobody has written into a topic that is the cluster's own."""
    internal: set[PartitionId] = set()
    named: set[str] = set()
    for event in log:
        if isinstance(event, TopicCreated | PartitionsAdded) and event.topic in INTERNAL_TOPICS:
            named.add(event.topic)
            internal |= {PartitionId(event.first_partition_id + index) for index in range(event.partition_count)}
        elif isinstance(event, BatchAppended) and event.partition_id in internal:
            yield f"internal topics: {event} is written into one of {sorted(named)}"


def state_is_the_fold(state: State, log: Log) -> Iterator[str]:
    """Invariant 8: the durable state is the fold of the durable events, and nothing else."""
    again = State(limits=state.limits)
    for event in log:
        apply(again, event)
    if not is_same(again, state):
        yield "8: the state is not the fold of its events"
