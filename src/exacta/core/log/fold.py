"""The fold of the events of topics, partitions and their logs; `core/apply.py` has the table of all events."""

from collections.abc import Callable
from itertools import takewhile
from typing import Any

from exacta.core.events import (
    AppendsRefused,
    BatchAppended,
    BrokerConfigsSet,
    CompactedForgotten,
    DiskRoomSet,
    Event,
    LeadTaken,
    LogStartMoved,
    PartitionsAdded,
    TopicConfigsSet,
    TopicCreated,
    TopicDeleted,
    TopicEpochMoved,
    WriterNamed,
    WritersClosed,
    WritersExpired,
)
from exacta.core.ids import NO_TRANSACTION_ID, Offset, PartitionId, WriterId
from exacta.core.log import staging_fold
from exacta.core.log.written import remember_writer
from exacta.core.state import weights
from exacta.core.state.partition import Partition
from exacta.core.state.state import State
from exacta.core.state.topic import Topic
from exacta.core.state.writer import KnownWriter
from exacta.core.subscriptions import progress
from exacta.core.subscriptions.counting import counted
from exacta.core.values.leader_epochs import FIRST_EPOCH, led, trimmed
from exacta.core.values.usage import Table


def _topic_created(state: State, event: TopicCreated) -> None:
    topic = state.topics[event.topic] = Topic(
        event.topic, event.topic_id, event.first_partition_id, event.partition_count, event.configs
    )
    _count_topic(state, event.topic, weights.topic(topic))
    state.volatile.topic_names[event.topic_id] = event.topic
    for index in range(event.partition_count):
        _begin_partition(state, event.topic, index, PartitionId(event.first_partition_id + index))


def _count_topic(state: State, topic: str, size: int) -> None:
    state.volatile.usage[Table.TOPICS].change(topic, size)


def _begin_partition(state: State, topic: str, index: int, partition_id: PartitionId) -> None:
    partition = state.partitions[partition_id] = Partition(partition_id, topic, index)
    if state.leader_epoch != FIRST_EPOCH:
        partition.leader_epochs = ((state.leader_epoch, Offset(0)),)
    state.next_partition_id = PartitionId(partition_id + 1)


def _partitions_added(state: State, event: PartitionsAdded) -> None:
    topic = state.topics[event.topic]
    _count_topic(state, event.topic, event.partition_count * weights.PARTITION)
    for number in range(event.partition_count):
        partition_id = PartitionId(event.first_partition_id + number)
        _begin_partition(state, event.topic, topic.partition_count, partition_id)
        topic.added.append(partition_id)


def _topic_deleted(state: State, event: TopicDeleted) -> None:
    topic = state.topics.pop(event.topic)
    gone = set(topic.partition_ids)
    state.volatile.topic_names.pop(topic.topic_id, None)
    _count_topic(state, event.topic, -weights.topic(topic))
    for partition_id in gone:
        partition = state.partitions[partition_id]
        _forget_writers(state, partition)
        for name in list(partition.subscriptions):
            with counted(state, (partition_id, name)):
                progress.drop(state, (partition_id, name))
        for name in list(state.volatile.non_durable.get(partition_id, ())):
            with counted(state, (partition_id, name)):
                progress.drop_non_durable(state, (partition_id, name))
        state.volatile.refusing.pop(partition_id, None)
        state.volatile.closings.pop(partition_id, None)
        staging_fold.drop_all(state, partition)
        del state.partitions[partition_id]
    for transaction in state.transactions.values():
        before, weight = transaction.participants, weights.transaction(transaction)
        transaction.partitions -= gone
        if transaction.subscriptions:
            transaction.subscriptions = {each for each in transaction.subscriptions if each[0] not in gone}
        if transaction.is_known_by_id:
            state.volatile.handle_participants -= before - transaction.participants
        state.volatile.usage[Table.TRANSACTIONS].change(
            transaction.transaction_id, weights.transaction(transaction) - weight
        )
    for group in state.groups.values():
        found = (offsets.pop(event.topic, None) for offsets in (group.offsets, *group.pending.values()))
        size = sum(weights.offsets_of_topic(event.topic, each) for each in found if each is not None)
        state.volatile.usage[Table.OFFSETS].change(group.group_id, -size)


def _forget_writers(state: State, partition: Partition) -> None:
    """Forget the producers, the writers and the transactions of a partition that is deleted."""
    usage = state.volatile.usage
    for producer_id in partition.producers:
        usage[Table.PRODUCERS].change(producer_id, -weights.PRODUCER)
    for producer_id, runs in partition.open_runs.items():
        usage[Table.ABORTED].change(producer_id, -weights.written(runs))
    for aborted in partition.aborted:
        usage[Table.ABORTED].change(aborted.producer_id, -weights.written(aborted.runs))
    for writer_id in partition.named_sequences:
        state.writers[writer_id].partitions.discard(partition.partition_id)
        usage[Table.WRITERS].change(state.writers[writer_id].name, -weights.SEQUENCE)
    for producer_id, known in partition.nameless_sequences.items():
        usage[Table.WRITERS].change(producer_id, -len(known) * weights.SEQUENCE)
    state.volatile.nameless_writers -= partition.nameless_writers


def _topic_epoch_moved(state: State, event: TopicEpochMoved) -> None:
    state.partitions[event.partition_id].topic_epoch = event.topic_epoch


def _lead_taken(state: State, event: LeadTaken) -> None:
    state.leader_epoch = event.leader_epoch
    for each in state.partitions.values():
        each.leader_epochs = led(each.leader_epochs, event.leader_epoch, each.next_offset, each.log_start_offset)


def _topic_configs_set(state: State, event: TopicConfigsSet) -> None:
    last_open = max(state.transactions, default=NO_TRANSACTION_ID)
    topic = state.topics[event.topic]
    before = weights.topic(topic)
    topic.set_configs(event.configs, last_open)
    _count_topic(state, event.topic, weights.topic(topic) - before)


def _broker_configs_set(state: State, event: BrokerConfigsSet) -> None:
    before = state.broker_configs.get(event.broker_id, {})
    _count_topic(state, "", weights.configs(event.configs) - weights.configs(before))
    # Another object each time: who has read them knows by it that they have changed.
    others = {each: configs for each, configs in state.broker_configs.items() if each != event.broker_id}
    state.broker_configs = others | ({event.broker_id: event.configs} if event.configs else {})


def _log_start_moved(state: State, event: LogStartMoved) -> None:
    partition = state.partitions[event.partition_id]
    partition.log_start_offset = event.log_start_offset
    partition.leader_epochs = trimmed(partition.leader_epochs, event.log_start_offset)
    _forget_aborted(state, partition, event.log_start_offset)  # nobody can read what these are about
    staging_fold.trim(state, partition)
    for name in state.subscription_names(event.partition_id):
        with counted(state, (event.partition_id, name)):
            progress.move(state, (event.partition_id, name), event.log_start_offset)


def _appends_refused(state: State, event: AppendsRefused) -> None:
    if event.reason is None:
        state.volatile.refusing.pop(event.partition_id, None)
    else:
        state.volatile.refusing[event.partition_id] = event.reason


def _writers_closed(state: State, event: WritersClosed) -> None:
    closings = state.volatile.closings
    closings[event.partition_id] = closings.get(event.partition_id, 0) + 1


def _room_set(state: State, event: DiskRoomSet) -> None:
    state.volatile.disk_room = event.room


def _compacted_forgotten(state: State, event: CompactedForgotten) -> None:
    partition = state.partitions[event.partition_id]
    _forget_aborted(state, partition, event.before_offset)
    staging_fold.forget_entered(state, partition, event.before_offset)


def _forget_aborted(state: State, partition: Partition, before_offset: Offset) -> None:
    # Markers lie in the order of their offsets.
    gone = list(takewhile(lambda entry: entry.last_offset < before_offset, partition.aborted))
    del partition.aborted[: len(gone)]
    for entry in gone:
        state.volatile.usage[Table.ABORTED].change(entry.producer_id, -weights.written(entry.runs))


def _batch_appended(state: State, event: BatchAppended) -> None:
    partition = state.partitions[event.partition_id]
    partition.next_offset = Offset(event.base_offset + event.record_count)
    partition.bodies.add(event.body)
    if state.volatile.disk_room is not None:
        state.volatile.disk_room = state.volatile.disk_room.less(event.size)
    remember_writer(state, partition, event, event.base_offset, transactional=event.transactional)
    if not event.transactional:
        state.commit_number += 1
    else:
        partition.open_transactions.setdefault(event.producer_id, event.base_offset)
        runs = partition.open_runs.setdefault(event.producer_id, [])
        last_offset = Offset(partition.next_offset - 1)
        if runs and runs[-1] == event.base_offset - 1:
            runs[-1] = last_offset
        else:
            size = weights.RUN_OF_RECORDS if runs else weights.RUN_OF_RECORDS + weights.WRITTEN_TRANSACTION
            state.volatile.usage[Table.ABORTED].change(event.producer_id, size)
            runs += (event.base_offset, last_offset)


def _writer_named(state: State, event: WriterNamed) -> None:
    state.writers[event.writer_id] = KnownWriter(event.writer_id, event.name, event.at_ms, principal=event.principal)
    state.volatile.writer_ids[event.name] = event.writer_id
    state.volatile.usage[Table.WRITERS].change(event.name, weights.WRITER + weights.text(event.name))
    state.next_writer_id = WriterId(event.writer_id + 1)


def _writers_expired(state: State, event: WritersExpired) -> None:
    for writer_id in event.writer_ids:
        writer = state.writers.pop(writer_id)
        del state.volatile.writer_ids[writer.name]
        for partition_id in writer.partitions:
            del state.partitions[partition_id].named_sequences[writer_id]
        state.volatile.usage[Table.WRITERS].change(writer.name, -weights.writer(writer))


FOLDS: dict[type[Event], Callable[[State, Any], None]] = {
    TopicCreated: _topic_created,
    TopicDeleted: _topic_deleted,
    TopicConfigsSet: _topic_configs_set,
    BrokerConfigsSet: _broker_configs_set,
    PartitionsAdded: _partitions_added,
    LogStartMoved: _log_start_moved,
    AppendsRefused: _appends_refused,
    WritersClosed: _writers_closed,
    DiskRoomSet: _room_set,
    CompactedForgotten: _compacted_forgotten,
    BatchAppended: _batch_appended,
    LeadTaken: _lead_taken,
    TopicEpochMoved: _topic_epoch_moved,
    WriterNamed: _writer_named,
    WritersExpired: _writers_expired,
    **staging_fold.FOLDS,
}
