"""The invariants of the log and of what its readers see; `invariants.py` says how such functions are made."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence, Set

from msgspec import Struct

from exacta.core.events import (
    BatchAppended,
    BatchStaged,
    BrokerConfigsSet,
    CompactedForgotten,
    Event,
    LogStartMoved,
    PartitionsAdded,
    ProducersExpired,
    TopicCreated,
    TransactionEnded,
)
from exacta.core.groups.lag import aborted_records
from exacta.core.ids import NO_WRITER_ID, Offset, PartitionId, ProducerEpoch, ProducerId
from exacta.core.state.aborted import aborted_between
from exacta.core.state.partition import Partition
from exacta.core.state.state import State
from exacta.core.values.internal_topics import INTERNAL_TOPICS

Log = Sequence[Event]


class Acknowledged(Struct, frozen=True):
    """A client was told that this batch is in the log at this offset."""

    partition_id: PartitionId
    base_offset: Offset
    record_count: int
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    base_sequence: int


def sequences_are_contiguous(state: State, log: Log) -> Iterator[str]:
    """Invariant 1: per producer, epoch and partition, sequences follow each other; a new epoch begins at 0."""
    last: dict[tuple[PartitionId, ProducerId], tuple[ProducerEpoch, int]] = {}
    for event in log:
        if isinstance(event, ProducersExpired):
            for forgotten in event.producers:
                last.pop(forgotten, None)
        if not isinstance(event, BatchAppended | BatchStaged):
            continue
        if event.base_sequence < 0 or event.writer_id != NO_WRITER_ID:
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
    written: dict[tuple[PartitionId, int], BatchAppended | BatchStaged] = {}
    for each in log:
        if isinstance(each, BatchAppended):
            written[each.partition_id, each.base_offset] = each
        elif isinstance(each, BatchStaged):
            written[each.partition_id, each.provisional_offset] = each
    for answer in acknowledged:
        event = written.get((answer.partition_id, answer.base_offset))
        if event is None:
            yield f"2: {answer} is not in the log"
        elif (event.producer_id, event.producer_epoch, event.base_sequence, event.record_count) != (
            answer.producer_id,
            answer.producer_epoch,
            answer.base_sequence,
            answer.record_count,
        ):
            yield f"2: at the place of {answer} lies {event}"


def in_place(log: Log) -> list[Event]:
    """Return the log as if everything that was staged had been appended, for all to see, when its transaction ended."""
    placed: list[Event] = []
    waiting: dict[tuple[PartitionId, ProducerId], list[BatchStaged]] = {}
    for event in log:
        if isinstance(event, BatchStaged):
            waiting.setdefault((event.partition_id, event.producer_id), []).append(event)
            continue
        placed.append(event)
        if isinstance(event, TransactionEnded):
            for partition_id, first_offset, producer_id, _ in event.entries:
                offset = first_offset
                for batch in waiting.get((partition_id, producer_id), ()):
                    placed.append(
                        BatchAppended(
                            partition_id=partition_id,
                            base_offset=offset,
                            record_count=batch.record_count,
                            size=batch.size,
                            max_timestamp_ms=batch.max_timestamp_ms,
                            producer_id=producer_id,
                            writer_id=batch.writer_id,
                            body=batch.body,
                        )
                    )
                    offset = Offset(offset + batch.record_count)
            waiting = {key: batches for key, batches in waiting.items() if key[1] not in event.producer_ids}
    return placed


def open_at_end(log: Log) -> dict[PartitionId, dict[ProducerId, Offset]]:
    """Return the first offset of each transaction that is open where the log ends, by partition and producer id."""
    open_transactions: dict[PartitionId, dict[ProducerId, Offset]] = {}
    for event in log:
        if isinstance(event, BatchAppended) and event.transactional:
            open_transactions.setdefault(event.partition_id, {}).setdefault(event.producer_id, event.base_offset)
        elif isinstance(event, TransactionEnded):
            for producers in open_transactions.values():
                for producer_id in event.producer_ids:
                    producers.pop(producer_id, None)
    return open_transactions


def _next_offsets(log: Log) -> dict[PartitionId, int]:
    next_offsets: dict[PartitionId, int] = {}
    for event in log:
        if isinstance(event, BatchAppended):
            next_offsets[event.partition_id] = event.base_offset + event.record_count
        elif isinstance(event, TransactionEnded):
            for partition_id, offset, _ in event.markers:
                next_offsets[partition_id] = offset + 1
            for partition_id, first_offset, _, record_count in event.entries:
                next_offsets[partition_id] = first_offset + record_count
    return next_offsets


def last_stable_offsets(state: State, log: Log) -> Iterator[str]:
    """Invariant 4: LSO = min(next offset, first offset of the oldest open transaction). Offsets have no holes.

    The log's start never moves back, nor past its end; and the LSO is never before it.
    """
    open_transactions, next_offsets = open_at_end(log), _next_offsets(log)
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
    log = in_place(log)
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
        expected = sorted(offset for offset in _aborted_offsets(log, partition) if offset >= start)
        for from_offset in {int(start), *expected, *(offset + 1 for offset in expected)}:
            for end_offset in (from_offset + 1, partition.last_stable_offset, partition.next_offset):
                counted = aborted_records(partition, from_offset, end_offset)
                wanted = max(0, bisect_left(expected, end_offset) - bisect_left(expected, from_offset))
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
            for producer_id in event.producer_ids:
                offsets_of = waiting.pop(producer_id, [])
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
            for producer_id in event.producer_ids:
                ended = waiting.pop(producer_id, [])
                marker = event.marker_in(partition.partition_id, producer_id)
                if ended and marker is not None and not event.committed:
                    aborted.append((marker, ended))
        elif isinstance(event, CompactedForgotten) and event.partition_id == partition.partition_id:
            for end, offsets in aborted:
                if end < event.before_offset:
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
            for producer_id in event.producer_ids:
                batches = waiting.pop(producer_id, [])
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
        elif isinstance(event, TransactionEnded) and not event.committed:
            for place, marker, producer_id in event.markers:
                if place == partition.partition_id and from_offset <= marker < end_offset:
                    while to_come and to_come[0].first_offset <= marker:
                        aborting.add(to_come.pop(0).producer_id)
                    aborting.discard(producer_id)
    return seen


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


def broker_configs_are_the_last(state: State, log: Log) -> Iterator[str]:
    """Each broker, and all together, have those options that were set for them last, and nothing of earlier ones."""
    brokers = {event.broker_id for event in log if isinstance(event, BrokerConfigsSet)}
    for broker_id in brokers | state.broker_configs.keys():
        last = next(
            (e.configs for e in reversed(log) if isinstance(e, BrokerConfigsSet) and e.broker_id == broker_id), {}
        )
        found = state.broker_configs.get(broker_id, {})
        if found != last or (broker_id in state.broker_configs) != bool(last):
            yield f"broker configs: broker {broker_id!r} has {found}, not {last}"


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
