"""Repeats of a nameless writer's batches, which are told within a transaction, and nowhere else.

A client whose connection is lost sends everything again that was not answered. Where its user has named the writer, a
repeat is dropped for ever (`named_sequence.py`). Where nobody has, no name would tell the writer from the next one, and
what is kept for it would have to be kept for ever. But what a transaction holds is kept until it ends. So each message
of a transaction is in it once, whether its writer has a name or not.

A writer is known by the number that is made of the name which the broker has given it. `repeats.py` has the rule.
"""

from exacta.core.ids import ProducerId
from exacta.core.log import repeats
from exacta.core.log.repeats import Kind, Known
from exacta.core.rejections import Rejection
from exacta.core.replies import AlreadyStored
from exacta.core.state.partition import Partition
from exacta.core.state.state import State
from exacta.core.writers import NamelessWriter


def check(
    state: State, partition: Partition, producer_id: ProducerId, writer: NamelessWriter
) -> Known | AlreadyStored | Rejection:
    """Return a writer whose batch is new in the transaction of this producer id; otherwise return the answer."""
    known = partition.nameless_sequences.get(producer_id, {})
    highest = known.get(writer.number)
    kind = Kind.BACK if writer.is_back else Kind.NEVER_AWAY
    answer = repeats.answer(kind, highest, writer.sequence, writer.sequence, is_part=writer.is_part)
    if answer is not None:
        return answer
    limits, total = state.limits, state.volatile.nameless_writers
    if highest is None and (len(known) >= limits.max_named_writers_per_partition or total >= limits.max_named_writers):
        return Rejection.LIMIT_REACHED
    return Known(writer.number, writer.sequence)
