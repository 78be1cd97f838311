"""What the client of a consumer is told of it, and of its subscription."""

from exacta.core.ids import ConsumerId, Offset
from exacta.core.queries.subscriptions import (
    ConsumerStats,
    SubscriptionPosition,
    describe_consumer,
    subscription_count,
    subscription_position,
)
from exacta.core.values.subscriptions import IsolationLevel, SubscriptionType
from tests.core.subscriptions.consumer import Consumer
from tests.core.world import World

ONE, TWO = ConsumerId(1), ConsumerId(2)


def position(world: World, name: str) -> SubscriptionPosition | None:
    return subscription_position(world.state, world.now_ms, "t", 0, name)


def described(world: World, consumer_id: ConsumerId) -> ConsumerStats | None:
    return describe_consumer(world.state, world.now_ms, "t", 0, "s", consumer_id)


def test_the_position_is_told_with_the_level() -> None:
    world = World()
    assert position(world, "s") is None, "there is no topic"
    world.topic()
    assert position(world, "s") is None
    durable = Consumer(world).begin()
    Consumer(world, "reader", durable=False, level=IsolationLevel.READ_UNCOMMITTED).begin()
    durable.write(2)
    durable.acknowledge((0, 0))
    assert position(world, "s") == SubscriptionPosition(Offset(1), reads_committed=True)
    assert position(world, "reader") == SubscriptionPosition(Offset(0), reads_committed=False)
    assert subscription_count(world.state) == 1, "only the durable one"


def test_a_consumer_is_described_as_long_as_it_is_connected() -> None:
    world = World()
    world.topic()
    assert described(world, ONE) is None
    consumer = Consumer(world).begin()
    assert described(world, ONE) is None
    consumer.connect(ONE, SubscriptionType.SHARED, "one")
    found = described(world, ONE)
    assert found is not None
    assert (found.held, found.is_blocked, found.subscription.told.subscription_type) == (0, False, "Shared")
    assert described(world, TWO) is None
