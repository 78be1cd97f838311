"""The moves of subscriptions that would be made, before they are."""

from collections.abc import Iterable

from msgspec import Struct

from exacta.core.commands import Seek
from exacta.core.ids import Offset
from exacta.core.rejections import Rejection
from exacta.core.state.state import State
from exacta.core.subscriptions.subscribing import find, offset_of


class PlannedMove(Struct, frozen=True):
    """Says from where to where a subscription moves, and how many consumers that disconnects."""

    position: Offset
    target: Offset
    consumers: int


def planned_moves(state: State, now_ms: int, wanted: Iterable[Seek | Rejection]) -> list[PlannedMove | Rejection]:
    """Return what each of these would do, or why it would be refused; what is refused already stays so."""
    return [each if isinstance(each, Rejection) else _planned(state, each) for each in wanted]


def _planned(state: State, command: Seek) -> PlannedMove | Rejection:
    found = find(state, command.topic, command.partition, command.subscription)
    if isinstance(found, Rejection):
        return found
    partition, subscription, delivery = found
    target = offset_of(partition, command.to)
    if target is None:
        return Rejection.OFFSET_OUT_OF_RANGE
    return PlannedMove(subscription.position, target, 0 if delivery is None else len(delivery.consumers))
