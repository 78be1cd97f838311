"""Counts what a subscription and its delivery weigh (`core.state.weights`): before and after a change of them."""

from collections.abc import Iterator
from contextlib import contextmanager

from exacta.core.ids import SubscriptionKey
from exacta.core.state import weights
from exacta.core.state.state import State
from exacta.core.values.usage import Table


@contextmanager
def counted(state: State, key: SubscriptionKey) -> Iterator[None]:
    """Count by how much a subscription grows, or shrinks, by what is done meanwhile."""
    subscription, delivery = _weights(state, key)
    yield
    subscription_after, delivery_after = _weights(state, key)
    usage = state.volatile.usage
    if subscription != subscription_after:
        usage[Table.SUBSCRIPTIONS].change(key, subscription_after - subscription)
    if delivery != delivery_after:
        usage[Table.DELIVERIES].change(key, delivery_after - delivery)


def _weights(state: State, key: SubscriptionKey) -> tuple[int, int]:
    return weights.subscription(state.subscription(key)), weights.delivery(state.volatile.deliveries.get(key))
