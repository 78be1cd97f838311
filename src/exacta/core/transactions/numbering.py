"""Producer ids and transaction ids: none is given out twice, over power cuts too (decision 0027).

A durable event reserves a thousand of each at a time, before anybody is told of one of them. After a restart both go on
above all that were reserved. So an id that a crash has forgotten, with whatever was written under it, never comes to
name somebody else's.
"""

from exacta.core.events import (
    Event,
    IdsReserved,
    ProducerBound,
    ProducerIdAllocated,
    TransactionBegun,
    TransactionEnded,
    TransactionJoined,
)
from exacta.core.ids import ProducerEpoch, ProducerId, TransactionId
from exacta.core.state.state import State

IDS_AT_ONCE = 1000
"""One durable event reserves this many ids; a restart skips what is left of them. There are 2^63 of each."""

Pair = tuple[ProducerId, ProducerEpoch]


def next_pair(state: State, producer_id: ProducerId, producer_epoch: ProducerEpoch) -> Pair:
    """Return the pair that fences this one: the next epoch, or a new producer id where the epochs are used up."""
    if producer_epoch >= state.limits.highest_epoch:
        return state.volatile.next_producer_id, ProducerEpoch(0)
    return producer_id, ProducerEpoch(producer_epoch + 1)


def after_reservation(state: State, *events: Event) -> tuple[Event, ...]:
    """Return these events, after the one that reserves the ids that they give out, where those are not reserved yet."""
    producer_id, transaction_id = highest_ids(events)
    if producer_id < state.reserved_producer_id and transaction_id < state.reserved_transaction_id:
        return events
    reserved = IdsReserved(
        end_producer_id=ProducerId(_end(producer_id, state.reserved_producer_id)),
        end_transaction_id=TransactionId(_end(transaction_id, state.reserved_transaction_id)),
    )
    return reserved, *events


def highest_ids(events: tuple[Event, ...]) -> tuple[int, int]:
    """Return the highest producer id and transaction id that the events give out; -1 where they give out none."""
    producer_id = transaction_id = -1
    for event in events:
        if isinstance(event, ProducerBound | ProducerIdAllocated):
            producer_id = max(producer_id, event.producer_id)
        elif isinstance(event, TransactionBegun):
            producer_id = max(producer_id, *event.producer_ids)
            transaction_id = max(transaction_id, event.transaction_id)
        elif isinstance(event, TransactionJoined):
            producer_id = max(producer_id, *event.producer_ids)
        elif isinstance(event, TransactionEnded):
            producer_id = max(producer_id, event.next_producer_id)
            transaction_id = max(transaction_id, event.transaction_id)
    return producer_id, transaction_id


def _end(highest: int, reserved: int) -> int:
    return highest + IDS_AT_ONCE if highest >= reserved else reserved
