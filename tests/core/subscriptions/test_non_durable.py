"""Non-durable subscriptions: they are used like durable ones, no journal knows them, and they are gone when unused."""

import pytest
from msgspec.structs import replace

from exacta.core.commands import DeleteRecords, DeleteTopic, Subscribe
from exacta.core.commands.subscriptions import EARLIEST, LATEST
from exacta.core.ids import ConsumerId, Offset
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, Subscribed
from exacta.core.subscriptions.notices import ConsumerClosed
from exacta.core.values.subscriptions import SubscriptionType
from tests.core.subscriptions.consumer import Consumer
from tests.core.subscriptions.delivering import Dispatcher
from tests.core.world import SMALL, World
from tests.docstring_tables import docstring_table

EXCLUSIVE, SHARED = SubscriptionType.EXCLUSIVE, SubscriptionType.SHARED


def reader(world: World, name: str = "s") -> Consumer:
    return Consumer(world, name, durable=False)


@pytest.mark.parametrize("subscription_type", SubscriptionType)
def test_the_journal_hears_nothing_of_it(world: World, subscription_type: SubscriptionType) -> None:
    dispatcher = Dispatcher(world, subscription_type, durable=False)
    for _ in range(4):
        Consumer(world).write()
    length = len(world.log)
    consumer = dispatcher.connect(permits=100)
    for _, each in dispatcher.pump():
        assert dispatcher.acknowledge(each) == DONE
    assert dispatcher.subscription.position == 4
    assert reader(world).seek(2) == DONE
    consumer = dispatcher.connect(permits=100)
    assert [each.base for _, each in dispatcher.pump()] == [2, 3], "a move is forgotten no sooner than its consumers"
    world.check()
    dispatcher.disconnect(consumer)
    assert not dispatcher.exists()
    assert len(world.log) == length
    world.check()


@pytest.mark.parametrize(
    ("begin", "position"), [(EARLIEST, 3), (LATEST, 5), (0, 3), (4, 4), (5, 5), (77, 5), (-3, None)]
)
def test_where_it_begins(world: World, begin: int, position: int | None) -> None:
    Consumer(world).write(5)
    world.send(DeleteRecords(topic="t", partition=0, before_offset=3))
    expected = Rejection.OFFSET_OUT_OF_RANGE if position is None else Subscribed(position=Offset(position), is_new=True)
    assert reader(world).subscribe(begin) == expected
    world.check()


def test_deleted_records_are_acknowledged_in_it(world: World) -> None:
    Consumer(world).write(5)
    reader(world).subscribe()
    world.send(DeleteRecords(topic="t", partition=0, before_offset=3))
    assert reader(world).subscription.position == 3
    world.check()


@pytest.mark.parametrize("durable", [True, False])
def test_a_name_is_that_of_a_durable_or_of_a_non_durable_one(world: World, durable: bool) -> None:
    """Apache Pulsar answers NotAllowedError, too."""
    Consumer(world, durable=durable).begin()
    assert Consumer(world, durable=not durable).subscribe() == Rejection.INVALID_SUBSCRIPTION
    assert Consumer(world, partition=1, durable=not durable).subscribe() != Rejection.INVALID_SUBSCRIPTION
    assert Consumer(world, durable=durable).subscribe() == Subscribed(position=Offset(0), is_new=False)
    world.check()


@pytest.mark.parametrize("durable", [True, False])
def test_whose_subscribe_is_refused_does_not_connect(world: World, durable: bool) -> None:
    """A front submits both commands in one step, and forgets the consumer if one of them is refused."""
    Consumer(world, durable=durable).begin()
    other = Consumer(world, durable=not durable)
    assert other.subscribe() == Rejection.INVALID_SUBSCRIPTION
    assert other.connect(ConsumerId(1), SHARED, "") == Rejection.INVALID_SUBSCRIPTION
    assert Consumer(world, durable=durable).exists()
    assert not world.state.volatile.deliveries
    world.check()


def test_whose_type_is_refused_does_not_connect(world: World) -> None:
    reader(world).subscribe(subscription_type=SHARED)
    assert reader(world).connect(ConsumerId(1), EXCLUSIVE, "") == Rejection.SUBSCRIPTION_BUSY
    assert reader(world).connect(ConsumerId(2), SHARED, "") == DONE
    world.check()


def test_another_type_is_refused_also_while_nobody_is_connected(world: World) -> None:
    reader(world).subscribe(subscription_type=SHARED)
    assert reader(world).subscribe(subscription_type=EXCLUSIVE) == Rejection.SUBSCRIPTION_BUSY


TABLE = docstring_table("exacta.core.subscriptions.durability", "a non-durable subscription that is")


@pytest.mark.parametrize("moves", [False, True])
@pytest.mark.parametrize(("row", "column", "cell"), TABLE.cells())
def test_every_row_of_the_table(world: World, row: str, column: str, cell: str, moves: bool) -> None:
    assert column == "becomes"
    dispatcher = Dispatcher(world, SHARED, durable=False)
    if moves:
        dispatcher.connect()
        assert reader(world).seek(0) == DONE
    match row:
        case "new, or moved":
            pass
        case "idle for `non_durable_idle_ms`":
            world.pass_time(SMALL.non_durable_idle_ms)
        case "idle, and a consumer is refused":
            world.state.limits = replace(SMALL, max_consumers_per_subscription=0)
            assert dispatcher.ask_to_connect(ConsumerId(7)) == Rejection.LIMIT_REACHED
        case _:
            dispatcher.disconnect(dispatcher.connect())
    assert (dispatcher.exists(), dispatcher.delivery) == ({"idle": True, "gone": False}[cell], None)
    world.check()


def test_it_is_there_until_its_last_consumer_is_gone(world: World) -> None:
    dispatcher = Dispatcher(world, SHARED, durable=False)
    first, second = dispatcher.connect(), dispatcher.connect()
    world.pass_time(10 * SMALL.non_durable_idle_ms)
    dispatcher.disconnect(first)
    assert dispatcher.exists()
    dispatcher.disconnect(second)
    assert not dispatcher.exists()
    assert reader(world).acknowledge((0, 0)) == Rejection.SUBSCRIPTION_NOT_FOUND
    world.check()


def test_it_is_gone_where_its_first_consumer_is_refused(world: World) -> None:
    world.state.limits = replace(SMALL, max_consumers_per_subscription=0)
    dispatcher = Dispatcher(world, SHARED, durable=False)
    assert dispatcher.ask_to_connect(ConsumerId(1)) == Rejection.LIMIT_REACHED
    assert not dispatcher.exists()
    world.check()


def test_it_stays_where_a_further_consumer_is_refused(world: World) -> None:
    dispatcher = Dispatcher(world, EXCLUSIVE, durable=False)
    dispatcher.connect()
    assert dispatcher.ask_to_connect(ConsumerId(7)) == Rejection.SUBSCRIPTION_BUSY
    assert dispatcher.exists()


def test_nobody_comes(world: World) -> None:
    reader(world).subscribe()
    world.pass_time(SMALL.non_durable_idle_ms - 1)
    assert reader(world).exists()
    world.pass_time(1)
    assert not reader(world).exists()
    world.check()


def test_nobody_comes_back_after_a_move(world: World) -> None:
    """The timer of the beginning is still there, and asks again at the right time."""
    dispatcher = Dispatcher(world, SHARED, durable=False)
    consumer = dispatcher.connect()
    world.pass_time(SMALL.non_durable_idle_ms // 2)
    assert reader(world).seek(0) == DONE
    assert world.notices == [(consumer, ConsumerClosed())]
    world.pass_time(SMALL.non_durable_idle_ms - 1)
    assert dispatcher.exists()
    world.check()
    world.pass_time(1)
    assert not dispatcher.exists()
    world.check()


@pytest.mark.parametrize("how", ["unsubscribe", "delete the topic"])
def test_it_is_deleted_like_a_durable_one(world: World, how: str) -> None:
    dispatcher = Dispatcher(world, SHARED, durable=False)
    consumer = dispatcher.connect()
    if how == "unsubscribe":
        assert reader(world).unsubscribe(consumer) == DONE
    else:
        world.send(DeleteTopic(topic="t"))
    assert (dispatcher.exists(), world.notices) == (False, [(consumer, ConsumerClosed())])
    world.check()
    world.pass_time(2 * SMALL.non_durable_idle_ms)


@pytest.mark.parametrize("machine_stops", [False, True])
def test_a_restart_forgets_it(world: World, machine_stops: bool) -> None:
    reader(world).subscribe()
    world.crash(machine_stops=machine_stops)
    assert not reader(world).exists()
    assert isinstance(Consumer(world).subscribe(), Subscribed), "its name is free"
    world.check()


@pytest.mark.parametrize("cumulative", [False, True])
def test_no_transaction_acknowledges_its_messages(world: World, cumulative: bool) -> None:
    Consumer(world).write(5)
    client, handle = reader(world), world.handle()
    client.subscribe()
    answer = client.acknowledge_before(3, inside=handle) if cumulative else client.acknowledge((1, 2), inside=handle)
    assert answer == Rejection.INVALID_SUBSCRIPTION
    assert client.state_of(1) == "free"
    assert handle.end(commit=True) == DONE
    world.check()


def test_their_number_is_bounded_apart_from_that_of_durable_ones(world: World) -> None:
    world.state.limits = replace(SMALL, max_subscriptions=1, max_non_durable_subscriptions=2)
    Consumer(world, "durable").begin()
    assert isinstance(reader(world, "a").subscribe(), Subscribed)
    assert isinstance(reader(world, "b").subscribe(), Subscribed)
    assert reader(world, "c").subscribe() == Rejection.LIMIT_REACHED
    reader(world, "a").unsubscribe()
    assert isinstance(reader(world, "c").subscribe(), Subscribed)
    world.check()


def test_names_are_bounded(world: World) -> None:
    empty = Subscribe(topic="t", partition=0, subscription="", subscription_type=SHARED, durable=False)
    assert world.send(empty) == Rejection.INVALID_SUBSCRIPTION
