"""Skipping: what is left of a backlog afterwards, for whom, and who is disturbed by it."""

import pytest
from msgspec.structs import replace

from exacta.core.commands import Skip
from exacta.core.commands.subscriptions import LATEST
from exacta.core.ids import Offset
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE
from exacta.core.values.subscriptions import SubscriptionType
from tests.core.subscriptions.consumer import Consumer
from tests.core.subscriptions.delivering import Dispatcher
from tests.core.world import SMALL, World, world_of_ten


@pytest.fixture
def world() -> World:
    return world_of_ten()


def skip(world: World, before: int, name: str | None = None, topic: str = "t") -> object:
    return world.send(Skip(topic=topic, partition=0, before=Offset(before), subscription=name))


@pytest.mark.parametrize("name", [None, "s"])
def test_it_is_for_one_subscription_or_for_all_that_are_behind(world: World, name: str | None) -> None:
    slow, fast = Consumer(world).begin(), Consumer(world, "fast").begin()
    slow.acknowledge((2, 2), (7, 7))
    fast.acknowledge_before(1)
    assert skip(world, 6, name) == DONE
    assert (slow.subscription.position, fast.subscription.position) == (6, 1 if name else 6)
    assert slow.state_of(7) == "acknowledged"
    assert skip(world, 3, name) == DONE, "it never goes back"
    assert (slow.subscription.position, fast.subscription.position) == (6, 1 if name else 6)
    world.check()


def test_a_backlog_is_cleared_up_to_what_consumers_may_see(world: World) -> None:
    consumer = Consumer(world).begin()
    assert skip(world, LATEST, "s") == DONE
    assert consumer.subscription.position == 11
    writer = world.handle()
    consumer.write()
    writer.append()
    consumer.write()
    assert skip(world, LATEST, "s") == DONE
    assert consumer.subscription.position == 12
    assert writer.end(commit=True) == DONE
    assert [consumer.state_of(message) for message in (12, 13)] == ["free", "free"]
    world.check()


@pytest.mark.parametrize("name", [None, "s"])
def test_an_offset_that_nobody_may_see_is_refused(world: World, name: str | None) -> None:
    Consumer(world).begin()
    world.handle().append()
    for offset in (-2, 12):
        assert skip(world, offset, name) is Rejection.OFFSET_OUT_OF_RANGE
    assert skip(world, 11, name) == DONE


def test_what_does_not_exist_is_named(world: World) -> None:
    assert skip(world, 0, topic="nowhere") is Rejection.UNKNOWN_TOPIC_OR_PARTITION
    assert skip(world, 0, "nobody") is Rejection.SUBSCRIPTION_NOT_FOUND
    assert skip(world, 5) == DONE


@pytest.mark.parametrize("subscription_type", SubscriptionType)
def test_consumers_stay_connected_and_get_what_lies_behind(subscription_type: SubscriptionType) -> None:
    world = World(SMALL)
    world.topic()
    dispatcher = Dispatcher(world, subscription_type)
    for _ in range(4):
        Consumer(world).write()
    consumer = dispatcher.connect(permits=2)
    dispatcher.pump()
    assert skip(world, 3) == DONE
    delivery = dispatcher.delivery
    assert delivery is not None
    assert (list(delivery.consumers), list(delivery.entries)) == ([consumer], [])
    assert delivery.consumers[consumer].held == 0
    dispatcher.permit(consumer, 5)
    dispatcher.pump()
    assert [each.base for each in dispatcher.sent[consumer]] == [0, 1, 3]
    world.check()


def test_one_step_takes_so_many_subscriptions_and_the_next_one_takes_the_rest() -> None:
    world = World(replace(SMALL, max_expired_at_once=2))
    world.topic()
    consumers = [Consumer(world, name).begin() for name in "abc"]
    consumers[0].write()
    assert skip(world, 1) == DONE
    assert [each.subscription.position for each in consumers] == [1, 1, 0]
    assert skip(world, 1) == DONE
    assert [each.subscription.position for each in consumers] == [1, 1, 1]
    world.check()
