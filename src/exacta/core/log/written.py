"""The memory that a partition has of the writer of a batch, so that a repeat of the batch is recognised."""

from exacta.core.events import BatchAppended
from exacta.core.events.staging import BatchStaged
from exacta.core.ids import NO_WRITER_ID, Offset
from exacta.core.log.sequence import last_sequence
from exacta.core.state import weights
from exacta.core.state.partition import Partition, ProducerState, RetainedBatch
from exacta.core.state.state import State
from exacta.core.values.usage import Table

Written = BatchAppended | BatchStaged


def remember_writer(
    state: State, partition: Partition, event: Written, base_offset: Offset, *, transactional: bool
) -> None:
    """Remember the batch's sequence; `base_offset` is what its writer was told."""
    if event.writer_id >= 0:
        _remember_sequence(state, partition, event)
    elif event.writer_id < NO_WRITER_ID:
        _remember_nameless(state, partition, event)
    elif event.base_sequence >= 0:  # a batch of a handle has none: its writers are not told apart by a producer id
        _remember_batch(state, partition, event, base_offset, transactional)


def _remember_batch(
    state: State, partition: Partition, event: Written, base_offset: Offset, transactional: bool
) -> None:
    producer = partition.producers.pop(event.producer_id, None)
    if producer is None:
        state.volatile.usage[Table.PRODUCERS].change(event.producer_id, weights.PRODUCER)
    if producer is None or producer.producer_epoch != event.producer_epoch:
        producer = ProducerState(event.producer_epoch, [])
    partition.producers[event.producer_id] = producer
    producer.last_append_ms = event.at_ms
    producer.last_timestamp_ms = event.max_timestamp_ms
    last = last_sequence(event.base_sequence, event.record_count, state.limits)
    producer.batches.append(
        RetainedBatch(event.base_sequence, last, base_offset, event.max_timestamp_ms, transactional)
    )
    if len(producer.batches) > state.limits.retained_batches:
        del producer.batches[0]


def _remember_sequence(state: State, partition: Partition, event: Written) -> None:
    writer = state.writers.pop(event.writer_id)
    state.writers[event.writer_id] = writer  # in the order of the last appends
    writer.last_append_ms = event.at_ms
    writer.partitions.add(event.partition_id)
    if partition.named_sequences.pop(event.writer_id, None) is None:
        state.volatile.usage[Table.WRITERS].change(writer.name, weights.SEQUENCE)
    partition.named_sequences[event.writer_id] = event.base_sequence  # in the same order


def _remember_nameless(state: State, partition: Partition, event: Written) -> None:
    known = partition.nameless_sequences.setdefault(event.producer_id, {})
    if event.writer_id not in known:
        state.volatile.nameless_writers += 1
        state.volatile.usage[Table.WRITERS].change(event.producer_id, weights.SEQUENCE)
    known[event.writer_id] = max(event.base_sequence, known.get(event.writer_id, -1))
