"""One subscription, and one of its consumers, as its client asks for them; and how many subscriptions there are."""

from msgspec import Struct

from exacta.core.ids import ConsumerId, Offset, PrincipalName
from exacta.core.rejections import Rejection
from exacta.core.state.state import State
from exacta.core.subscriptions.description import DescribedSubscription, SubscriptionsWanted, page_of
from exacta.core.subscriptions.isolation import reads_committed
from exacta.core.subscriptions.subscribing import find


class SubscriptionPosition(Struct, frozen=True):
    """The offset before which every message is acknowledged, and which messages the subscription gets."""

    position: Offset
    reads_committed: bool


class ConsumerStats(Struct, frozen=True):
    """A consumer that is connected, and its subscription, as they are in one state."""

    subscription: DescribedSubscription
    held: int
    """The messages that the consumer has and has not acknowledged; 0 where it gets everything in order."""
    is_blocked: bool
    """True if it has as many of them as one consumer may have."""


def subscription_position(
    state: State, now_ms: int, topic: str, partition: int, subscription: str
) -> SubscriptionPosition | None:
    """Return how far a subscription is; None if there is none."""
    found = find(state, topic, partition, subscription)
    if isinstance(found, Rejection):
        return None
    return SubscriptionPosition(found[1].position, reads_committed(found[1]))


def maker_of(state: State, now_ms: int, place: tuple[str, int], name: str) -> PrincipalName | None:
    """Return who has made a subscription, durable or not; None if there is none."""
    found = find(state, *place, name)
    return None if isinstance(found, Rejection) else found[1].principal


def describe_consumer(
    state: State, now_ms: int, topic: str, partition: int, subscription: str, consumer_id: ConsumerId
) -> ConsumerStats | None:
    """Describe a consumer; None if it is not connected any more."""
    found = find(state, topic, partition, subscription)
    delivery = None if isinstance(found, Rejection) else found[2]
    consumer = None if delivery is None else delivery.consumers.get(consumer_id)
    if delivery is None or consumer is None:
        return None
    names = frozenset({subscription})
    page = page_of(
        state, SubscriptionsWanted(topics={topic: {partition}}, names=names, most=1, most_size=1, most_partitions=1)
    )
    held = 0 if delivery.is_in_order else consumer.held
    return ConsumerStats(page.subscriptions[0], held, held >= state.limits.max_unacknowledged_per_consumer)


def subscription_count(state: State) -> int:
    """Return how many subscriptions there are."""
    return state.volatile.subscriptions
