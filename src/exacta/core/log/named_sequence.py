"""Repeats of a named writer's batches: a batch is new if its sequences are above all before it in the partition.

Owns the names. What becomes of a batch is `repeats.py`'s. Gaps are allowed, since the sequences are the writer's own,
such as the positions of a file that it copies. Apache Pulsar's deduplication works like this. There is no window of
retained batches, so that a repeat is not told its offset. A batch of an aborted transaction counts as well: a client
that writes its records once more gives them higher sequences.
A name has a number in events and partitions, which the first batch of the name gives it.

A name is forgotten when it has been idle for a day. Where there is no room for a new one, those are forgotten that have
been idle for ten minutes: nobody sends a batch again for so long, and jobs that name their writers by their pods must
not shut a partition for a day.
"""

from collections.abc import Iterable
from itertools import islice, takewhile

from exacta.core.events import WriterNamed, WritersExpired
from exacta.core.log import repeats
from exacta.core.log.repeats import Kind, Known
from exacta.core.rejections import Rejection
from exacta.core.replies import AlreadyStored
from exacta.core.state.partition import Partition
from exacta.core.state.state import State
from exacta.core.state.writer import KnownWriter
from exacta.core.values.usage import Table
from exacta.core.writers import NamedWriter

MOST_LOOKED_AT = 1_000
"""This many writers of a full partition are looked at: those that wrote there longest ago may be at work elsewhere."""
MOST_FORGOTTEN = 10
"""This many names that are not needed make room at once, so that the next new ones find it."""


def check(state: State, partition: Partition, writer: NamedWriter, now_ms: int) -> Known | AlreadyStored | Rejection:
    """Return the number of a writer whose batch is new, with the events that give it; otherwise return the answer."""
    writer_id = state.volatile.writer_ids.get(writer.name)
    highest = None if writer_id is None else partition.named_sequences.get(writer_id)
    answer = repeats.answer(Kind.NAMED, highest, writer.first_sequence, writer.last_sequence, is_part=writer.is_part)
    if answer is not None:
        return answer
    limits = state.limits
    forgotten: tuple[WritersExpired, ...] = ()
    if highest is None and len(partition.named_sequences) >= limits.max_named_writers_per_partition:
        known = (state.writers[each] for each in islice(partition.named_sequences, MOST_LOOKED_AT))
        idle = (each for each in known if _is_idle(state, each, now_ms))
        forgotten = _forgotten(each for each in idle if each.writer_id != writer_id)
        if not forgotten:
            return Rejection.LIMIT_REACHED
    if writer_id is not None:
        return Known(writer_id, writer.last_sequence, forgotten)
    if not forgotten and _is_full(state):
        forgotten = _forgotten(takewhile(lambda each: _is_idle(state, each, now_ms), state.writers.values()))
        if not forgotten and len(state.writers) >= limits.max_named_writers:
            return Rejection.LIMIT_REACHED
    number = state.next_writer_id
    named = WriterNamed(writer_id=number, name=writer.name, at_ms=now_ms, principal=writer.principal)
    return Known(named.writer_id, writer.last_sequence, (*forgotten, named))


def _is_idle(state: State, writer: KnownWriter, now_ms: int) -> bool:
    return writer.last_append_ms <= now_ms - state.limits.producer_protected_ms


def _forgotten(idle: Iterable[KnownWriter]) -> tuple[WritersExpired, ...]:
    gone = tuple(each.writer_id for each in islice(idle, MOST_FORGOTTEN))
    return (WritersExpired(writer_ids=gone),) if gone else ()


def _is_full(state: State) -> bool:
    """Return whether a new name may find no room among all names, or in its owner's share of them."""
    limits = state.limits
    is_half_full = state.volatile.usage[Table.WRITERS].total > limits.max_writer_bytes // 2
    return len(state.writers) >= limits.max_named_writers or is_half_full
