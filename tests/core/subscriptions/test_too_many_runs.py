"""Delivery where a subscription has too many acknowledged runs, or too many offsets that are for nobody, to know."""

import pytest
from msgspec.structs import replace

from exacta.core.ids import ConsumerId, Offset
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, Delivering
from exacta.core.values.subscriptions import SubscriptionType
from tests.core.subscriptions.consumer import Consumer
from tests.core.subscriptions.delivering import Dispatcher
from tests.core.world import SMALL, World

SHARED = SubscriptionType.SHARED


def write(world: World, count: int = 1, size: int = 1) -> None:
    for _ in range(count):
        Consumer(world).write(size)


def bases(sent: list[tuple[ConsumerId, Delivering]]) -> list[int]:
    return [each.base for _, each in sent]


def test_delivery_waits_where_too_many_runs_are_acknowledged(world: World) -> None:
    world.state.limits = replace(SMALL, max_acknowledged_runs=2)
    dispatcher = Dispatcher(world, SHARED)
    write(world, 9)
    dispatcher.connect(permits=5)
    sent = dispatcher.pump()
    for number in (1, 3):
        dispatcher.acknowledge(sent[number][1])
    dispatcher.permit(sent[0][0], 100)
    assert dispatcher.pump() == []
    dispatcher.acknowledge(sent[0][1])
    assert bases(dispatcher.pump()) == [5, 6, 7, 8]
    world.check()


@pytest.mark.parametrize("subscription_type", SubscriptionType)
def test_the_oldest_messages_are_delivered_where_too_many_runs_are_acknowledged(
    world: World, subscription_type: SubscriptionType
) -> None:
    """A consumer that connects then, or asks for all again, must get them: delivery waits for their acknowledgement."""
    world.state.limits = replace(SMALL, max_acknowledged_runs=2)
    dispatcher = Dispatcher(world, subscription_type)
    write(world, 9)
    gone = dispatcher.connect(permits=6)
    sent = dispatcher.pump()
    for number in (1, 4):
        assert dispatcher.acknowledge(sent[number][1]) == DONE
    dispatcher.disconnect(gone)
    consumer = dispatcher.connect(permits=100)
    found = dispatcher.pump()
    assert bases(found) == [0, 2, 3]
    dispatcher.redeliver(consumer)
    assert bases(dispatcher.pump()) == [0, 2, 3]
    [between] = [each for _, each in found if each.base == 3]
    assert dispatcher.acknowledge(between) == DONE, "it joins a run, and makes none"
    assert dispatcher.acknowledge(found[0][1]) == DONE
    assert bases(dispatcher.pump()) == [5, 6, 7, 8]
    world.check()


@pytest.mark.parametrize("subscription_type", SubscriptionType)
def test_markers_that_delivery_has_forgotten_are_passed_once_the_position_has_come_to_them(
    world: World, subscription_type: SubscriptionType
) -> None:
    """Nobody acknowledges them, so that delivery would wait for their acknowledgement for ever."""
    world.state.limits = replace(SMALL, max_acknowledged_runs=2)
    dispatcher = Dispatcher(world, subscription_type)
    dispatcher.connect(permits=100)
    for _ in range(4):
        handle = world.handle()
        handle.append()
        handle.end(commit=True)
    sent = dispatcher.pump()
    assert bases(sent) == [0, 2, 4, 6]
    delivery = dispatcher.delivery
    assert delivery is not None
    assert (delivery.passed, delivery.forgotten_to) == ([(5, 5), (7, 7)], 4)
    assert dispatcher.acknowledge(sent[3][1]) == DONE
    assert dispatcher.acknowledge(sent[1][1]) == DONE, "the marker beside it is forgotten"
    assert dispatcher.acknowledge(sent[0][1]) == DONE
    assert dispatcher.subscription.acknowledged == [(2, 2), (5, 7)], "delivery waits for the oldest message"
    write(world)
    assert bases(dispatcher.pump()) == [8]
    assert (dispatcher.subscription.position, dispatcher.subscription.acknowledged) == (4, [(5, 7)])
    world.check()


@pytest.mark.parametrize("subscription_type", SubscriptionType)
def test_what_compaction_has_removed_and_delivery_forgotten_is_passed_too(
    world: World, subscription_type: SubscriptionType
) -> None:
    world.state.limits = replace(SMALL, max_acknowledged_runs=1)
    dispatcher = Dispatcher(world, subscription_type)
    write(world, 2, size=3)
    dispatcher.gaps = {base: ((Offset(base + 1), Offset(base + 1)),) for base in (0, 3)}
    dispatcher.connect(permits=100)
    sent = dispatcher.pump()
    assert dispatcher.acknowledge(sent[0][1]) == DONE
    assert dispatcher.subscription.acknowledged == [(2, 2)]
    write(world)
    assert bases(dispatcher.pump()) == [6]
    assert (dispatcher.subscription.position, dispatcher.subscription.acknowledged) == (3, [])
    world.check()


def test_a_commit_of_too_many_runs_leaves_a_way_out(world: World) -> None:
    world.state.limits = replace(SMALL, max_acknowledged_runs=1)
    dispatcher = Dispatcher(world, SHARED)
    write(world, 9)
    dispatcher.connect(permits=100)
    sent = dispatcher.pump()
    handle = world.handle()
    for number in (1, 3, 5):
        assert dispatcher.acknowledge(sent[number][1], inside=handle) == DONE
    handle.end(commit=True)
    assert dispatcher.acknowledge(sent[7][1]) == Rejection.LIMIT_REACHED
    for number in (4, 0, 2, 6, 7, 8):
        assert dispatcher.acknowledge(sent[number][1]) == DONE
    assert (dispatcher.subscription.position, dispatcher.subscription.acknowledged) == (9, [])
    world.check()
