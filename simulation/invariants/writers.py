"""The invariants of named writers and of the bodies of batches, derived from the journal's events alone."""

from collections.abc import Iterator

from exacta.core.events import (
    BatchAppended,
    BatchStaged,
    TopicEpochMoved,
    TransactionEnded,
    WriterNamed,
    WritersExpired,
)
from exacta.core.ids import NO_WRITER_ID, Body, PartitionId, ProducerId, WriterId
from exacta.core.state.state import State
from simulation.invariants.log import Log


def named_sequences_grow(state: State, log: Log) -> Iterator[str]:
    """Invariant 1, for named writers: in a partition the sequences of a writer only grow, while its name is known.

    Each message has a sequence of its own, and clients here say the last one of each batch. So a batch of some messages
    goes beyond the one before it by as many. Otherwise one of them is stored twice, or behind one that was sent later.
    """
    highest: dict[tuple[PartitionId, WriterId], int] = {}
    for event in log:
        if isinstance(event, WritersExpired):
            highest = {key: sequence for key, sequence in highest.items() if key[1] not in event.writer_ids}
        if not isinstance(event, BatchAppended | BatchStaged) or event.writer_id < 0:
            continue
        key = (event.partition_id, event.writer_id)
        if event.base_sequence < highest.get(key, -1) + event.record_count:
            yield f"1: {event} has messages that are not beyond sequence {highest.get(key, -1)}"
        highest[key] = event.base_sequence
    found = {
        (partition.partition_id, writer_id): sequence
        for partition in state.partitions.values()
        for writer_id, sequence in partition.named_sequences.items()
    }
    expected = {key: sequence for key, sequence in highest.items() if key[0] in state.partitions}
    if found != expected:
        yield f"1: partitions know the sequences {found} of named writers, their logs say {expected}"


def nameless_sequences_are_of_open_transactions(state: State, log: Log) -> Iterator[str]:
    """A partition knows the highest sequence of each nameless writer in each open transaction, and no other one."""
    expected: dict[tuple[PartitionId, ProducerId], dict[WriterId, int]] = {}
    for event in log:
        if isinstance(event, BatchAppended | BatchStaged) and event.writer_id < NO_WRITER_ID:
            known = expected.setdefault((event.partition_id, event.producer_id), {})
            known[event.writer_id] = max(known.get(event.writer_id, -1), event.base_sequence)
        elif isinstance(event, TransactionEnded):
            expected = {key: known for key, known in expected.items() if key[1] not in event.producer_ids}
    expected = {key: known for key, known in expected.items() if key[0] in state.partitions}
    found = {
        (partition.partition_id, producer_id): known
        for partition in state.partitions.values()
        for producer_id, known in partition.nameless_sequences.items()
    }
    if found != expected:
        yield f"writers: partitions know the sequences {found} of nameless writers, their logs say {expected}"
    if state.volatile.nameless_writers != sum(map(len, found.values())):
        yield f"writers: {state.volatile.nameless_writers} nameless ones are counted"


def writers_have_one_name(state: State, log: Log) -> Iterator[str]:
    """The number of a writer is given once, to one name, and a known name has one number."""
    known: dict[str, WriterId] = {}
    given: set[WriterId] = set()
    for event in log:
        if isinstance(event, WriterNamed):
            if event.writer_id in given or event.name in known:
                yield f"writers: {event} names a writer that has a name, or a name that has a writer"
            given.add(event.writer_id)
            known[event.name] = event.writer_id
        elif isinstance(event, WritersExpired):
            known = {name: writer_id for name, writer_id in known.items() if writer_id not in event.writer_ids}
        elif (
            isinstance(event, BatchAppended | BatchStaged)
            and event.writer_id >= 0
            and event.writer_id not in known.values()
        ):
            yield f"writers: {event} is of a writer that nobody knows"
    found = {writer.name: writer.writer_id for writer in state.writers.values()}
    if not found == known == state.volatile.writer_ids:
        yield f"writers: known are {found}, found by name {state.volatile.writer_ids}, named {known}"


def topic_epochs_grow(state: State, log: Log) -> Iterator[str]:
    """No epoch of a partition is given to two writers, and a partition knows its last one."""
    last: dict[PartitionId, int] = {}
    for event in log:
        if isinstance(event, TopicEpochMoved):
            if event.topic_epoch <= last.get(event.partition_id, -1):
                yield f"writers: {event} does not go beyond epoch {last[event.partition_id]}"
            last[event.partition_id] = event.topic_epoch
    for partition in state.partitions.values():
        if partition.topic_epoch != last.get(partition.partition_id, -1):
            yield f"writers: {partition.partition_id} has epoch {partition.topic_epoch}, its log says {last}"


def named_writers_are_no_producers(state: State, log: Log) -> Iterator[str]:
    """A partition keeps producers for idempotent writers only: a named writer's batch leaves none behind."""
    idempotent = {
        (event.partition_id, event.producer_id)
        for event in log
        if isinstance(event, BatchAppended | BatchStaged) and event.writer_id == NO_WRITER_ID
    }
    for partition in state.partitions.values():
        for producer_id in partition.producers:
            if (partition.partition_id, producer_id) not in idempotent:
                where = f"{partition.topic}-{partition.index}"
                yield f"writers: {where} knows producer {producer_id}, who sent no idempotent batch"


def bodies_are_known(state: State, log: Log) -> Iterator[str]:
    """A partition knows the bodies of all batches that it was ever given."""
    bodies: dict[PartitionId, set[Body]] = {}
    for event in log:
        if isinstance(event, BatchAppended | BatchStaged):
            bodies.setdefault(event.partition_id, set()).add(event.body)
    for partition_id, partition in state.partitions.items():
        if partition.bodies != bodies.get(partition_id, set()):
            yield f"bodies: {partition.topic}-{partition.index} knows {partition.bodies}, its log has {bodies}"
