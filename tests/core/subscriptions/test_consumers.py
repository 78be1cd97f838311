"""Consumers share a subscription or not, by its type; who is active, and what they are told."""

import pytest

from exacta.core.commands import Acknowledge, CreateTopic, DeleteTopic
from exacta.core.ids import ConsumerId, Offset
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, Subscribed
from exacta.core.subscriptions.notices import ActiveConsumerChanged, ConsumerClosed
from exacta.core.values.subscriptions import SubscriptionType
from tests.core.subscriptions.consumer import Consumer
from tests.core.subscriptions.delivering import Dispatcher
from tests.core.world import World
from tests.docstring_tables import docstring_table

ACTIVE, PASSIVE = ActiveConsumerChanged(is_active=True), ActiveConsumerChanged(is_active=False)
CLOSED = ConsumerClosed()


TABLE = docstring_table("exacta.core.subscriptions.consumers", "type")


@pytest.mark.parametrize("kind", SubscriptionType)
def test_the_table_of_types(world: World, kind: SubscriptionType) -> None:
    row = {SubscriptionType.KEY_SHARED: "Key_Shared"}.get(kind, kind.name.capitalize())
    dispatcher = Dispatcher(world, kind)
    later, earlier = ConsumerId(1), ConsumerId(2)
    assert dispatcher.ask_to_connect(later, "b") == DONE
    answer = dispatcher.ask_to_connect(earlier, "a")
    assert answer == {"is taken": DONE, "is refused": Rejection.SUBSCRIPTION_BUSY}[TABLE[row, "a further consumer"]]
    assert dispatcher.delivery is not None
    active = {"the only one": later, "the first one": earlier, "-": None}[TABLE[row, "the active one"]]
    assert dispatcher.delivery.active == active
    world.check()


@pytest.mark.parametrize("wanted", SubscriptionType)
@pytest.mark.parametrize("present", SubscriptionType)
def test_a_consumer_joins_those_of_its_type_unless_they_want_to_be_alone(
    world: World, present: SubscriptionType, wanted: SubscriptionType
) -> None:
    dispatcher = Dispatcher(world, present)
    first = dispatcher.connect()
    dispatcher.type = wanted
    is_free = present is wanted and wanted is not SubscriptionType.EXCLUSIVE
    expected = DONE if is_free else Rejection.SUBSCRIPTION_BUSY
    assert dispatcher.ask_to_connect(ConsumerId(7)) == expected
    answer = Consumer(world).subscribe(subscription_type=wanted)
    assert isinstance(answer, Subscribed) if is_free else answer == Rejection.SUBSCRIPTION_BUSY
    for each in (first, ConsumerId(7)):
        dispatcher.disconnect(each)
    assert dispatcher.ask_to_connect(ConsumerId(8)) == DONE, "nobody is there any more, so that the type is free"
    world.check()


def test_the_first_by_priority_and_name_is_active(world: World) -> None:
    dispatcher = Dispatcher(world, SubscriptionType.FAILOVER)
    late = dispatcher.connect("b")
    assert world.notices == [(late, ACTIVE)]
    early = dispatcher.connect("a")
    assert world.notices[1:] == [(late, PASSIVE), (early, ACTIVE)]
    other = dispatcher.connect("0", priority=1)
    assert world.notices[3:] == [(other, PASSIVE)]
    dispatcher.disconnect(late)
    assert len(world.notices) == 4, "who stays active, or passive, is told nothing"
    dispatcher.disconnect(early)
    assert world.notices[4:] == [(other, ACTIVE)]
    world.check()


def test_consumers_of_several_partitions_have_their_shares(world: World) -> None:
    """Apache Pulsar does so, too: the partition's index chooses among consumers of the same rank."""
    active = []
    for partition in (0, 1):
        consumer = Consumer(world, "s", partition)
        consumer.subscribe(subscription_type=SubscriptionType.FAILOVER)
        for number, name in enumerate("ab"):
            consumer.connect(ConsumerId(number), SubscriptionType.FAILOVER, name)
        active.append(world.state.volatile.deliveries[consumer.key].active)
    assert active == [0, 1]


def test_the_next_active_one_begins_at_the_position(world: World) -> None:
    dispatcher = Dispatcher(world, SubscriptionType.FAILOVER)
    write(world, 4)
    first, second = dispatcher.connect("a", permits=10), dispatcher.connect("b", permits=10)
    sent = dispatcher.pump()
    assert [(who, each.base) for who, each in sent] == [(first, base) for base in range(4)]
    dispatcher.acknowledge(sent[0][1])
    dispatcher.acknowledge(sent[2][1])
    dispatcher.disconnect(first)
    assert [(who, each.base) for who, each in dispatcher.pump()] == [(second, 1), (second, 3)]
    world.check()


def test_consumers_are_told_when_their_subscription_moves_or_goes(world: World) -> None:
    dispatcher = Dispatcher(world, SubscriptionType.SHARED)
    write(world, 2)
    for leave in ("seek", "unsubscribe", "delete"):
        consumers = [dispatcher.connect(), dispatcher.connect()]
        world.notices.clear()
        if leave == "seek":
            assert Consumer(world).seek(0) == DONE
        elif leave == "unsubscribe":
            assert Consumer(world).unsubscribe() == DONE
            Consumer(world).begin()
        else:
            world.send(DeleteTopic(topic="t"))
        assert world.notices == [(each, CLOSED) for each in consumers]
        assert dispatcher.delivery is None
        world.check()
    world.send(CreateTopic(topic="t", topic_id=b"2" * 16, partition_count=1))


def test_one_of_several_consumers_does_not_unsubscribe(world: World) -> None:
    dispatcher = Dispatcher(world, SubscriptionType.SHARED)
    one, other = dispatcher.connect(), dispatcher.connect()
    assert Consumer(world).unsubscribe(one) == Rejection.SUBSCRIPTION_BUSY
    dispatcher.disconnect(other)
    assert Consumer(world).unsubscribe(one) == DONE
    world.check()


def test_a_consumer_that_is_gone_gets_nothing(world: World) -> None:
    dispatcher = Dispatcher(world, SubscriptionType.SHARED)
    consumer = dispatcher.connect()
    dispatcher.disconnect(consumer)
    assert dispatcher.permit(consumer, 1) == dispatcher.redeliver(consumer) == Rejection.CONSUMER_NOT_FOUND
    dispatcher.disconnect(consumer)


@pytest.mark.parametrize("is_alone", [False, True])
def test_a_consumer_that_is_gone_acknowledges_nothing(world: World, is_alone: bool) -> None:
    """It may be gone because of a seek, which brings back what it has got."""
    write(world, 1)
    dispatcher = Dispatcher(world, SubscriptionType.SHARED)
    gone = dispatcher.connect()
    if not is_alone:
        dispatcher.connect()
    first = Acknowledge(**dispatcher.where, consumer_id=gone, runs=((Offset(0), Offset(0)),))
    dispatcher.disconnect(gone)
    before = len(world.log)
    assert world.send(first) == Rejection.CONSUMER_NOT_FOUND
    assert len(world.log) == before


def write(world: World, count: int) -> None:
    """Write messages one by one, and not in a transaction."""
    for _ in range(count):
        Consumer(world).write()
