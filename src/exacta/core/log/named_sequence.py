"""Repeats of a named writer's batches: a batch is new if its sequence is above all before it in the partition.

Gaps are allowed, since the sequences are the writer's own, such as the positions of a file that it copies. Apache
Pulsar's deduplication works like this. There is no window of retained batches, so that a repeat is not told its offset.
A batch of an aborted transaction counts as well: whoever writes its records once more gives them higher sequences.
A name has a number in events and partitions, which the first batch of the name gives it.
"""

from msgspec import Struct

from exacta.core.events import WriterNamed
from exacta.core.ids import Offset, WriterId
from exacta.core.rejections import Rejection
from exacta.core.replies import Appended
from exacta.core.state.partition import Partition
from exacta.core.state.state import State
from exacta.core.writers import NamedWriter

UNKNOWN_OFFSET = Offset(-1)
"""The base offset in the answer to a repeat."""


class Known(Struct, frozen=True):
    """The number of a writer, and the event that gives it where the name is new."""

    writer_id: WriterId
    events: tuple[WriterNamed, ...] = ()


def is_repeat(highest: int | None, sequence: int) -> bool:
    """Return whether a batch of this sequence lies in a partition already; `highest` is None before the first batch."""
    return highest is not None and sequence <= highest


def check(state: State, partition: Partition, writer: NamedWriter, now_ms: int) -> Known | Appended | Rejection:
    """Return the number of a writer whose batch is new; otherwise return the answer."""
    writer_id = state.volatile.writer_ids.get(writer.name)
    highest = None if writer_id is None else partition.named_sequences.get(writer_id)
    if is_repeat(highest, writer.sequence):
        return Appended(base_offset=UNKNOWN_OFFSET, repeated=True)
    limits = state.limits
    if highest is None and len(partition.named_sequences) >= limits.max_named_writers_per_partition:
        return Rejection.LIMIT_REACHED
    if writer_id is not None:
        return Known(writer_id)
    if len(state.writers) >= limits.max_named_writers:
        return Rejection.LIMIT_REACHED
    named = WriterNamed(writer_id=state.next_writer_id, name=writer.name, at_ms=now_ms)
    return Known(named.writer_id, (named,))
