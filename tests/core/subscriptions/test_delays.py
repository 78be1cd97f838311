"""Delayed messages: what is held back, what passes it, and how its delay ends, by the table of `delays.py`."""

import pytest
from msgspec.structs import replace

from exacta.core.commands import EndDelays
from exacta.core.ids import ConsumerId, PartitionId
from exacta.core.replies import DONE, Delivering
from exacta.core.subscriptions.description import WaitReason, waits
from exacta.core.values.subscriptions import IN_ORDER, SubscriptionType
from tests.core.subscriptions.consumer import Consumer
from tests.core.subscriptions.delivering import KEYS, Dispatcher
from tests.core.world import SMALL, World
from tests.docstring_tables import docstring_table

SHARED, KEY_SHARED = SubscriptionType.SHARED, SubscriptionType.KEY_SHARED
HELD_BACK = [SHARED, KEY_SHARED]


def write(world: World, dispatcher: Dispatcher, *delays_ms: int, size: int = 1) -> None:
    """Write an entry for each of these delays; 0: it has none."""
    for delay_ms in delays_ms:
        base = world.state.partitions[PartitionId(0)].next_offset
        if delay_ms:
            dispatcher.deliver_at_ms[base] = world.now_ms + delay_ms
        Consumer(world).write(size)


def bases(sent: list[tuple[ConsumerId, Delivering]]) -> list[int]:
    return [each.base for _, each in sent]


def waiting_for(world: World, dispatcher: Dispatcher) -> list[WaitReason]:
    partition = world.state.partitions[dispatcher.key[0]]
    return list(waits(partition, dispatcher.subscription, dispatcher.delivery, world.state.limits, has_room=True))


TABLE = docstring_table("exacta.core.subscriptions.delays", "an entry whose time")


@pytest.mark.parametrize("kind", SubscriptionType)
@pytest.mark.parametrize("row", TABLE.rows)
def test_every_cell_of_the_table(world: World, row: str, kind: SubscriptionType) -> None:
    dispatcher = Dispatcher(world, kind)
    write(world, dispatcher, 20, 0)
    if row == "has come, when it is read":
        world.pass_time(20)
    dispatcher.connect(permits=100)
    early = bases(dispatcher.pump())
    if row == "comes":
        world.pass_time(19)
        assert dispatcher.pump() == []
        world.pass_time(1)
    delivery = dispatcher.delivery
    assert delivery is not None
    delayed, late = [base for _, base in delivery.delayed], bases(dispatcher.pump())
    match TABLE[row, "Exclusive, Failover" if kind in IN_ORDER else "Shared, Key_Shared"]:
        case "delivered" | "-":
            assert (early, delayed, late) == ([0, 1], [], [])
        case "delayed":
            assert (early, delayed, late) == ([1], [0], [])
        case "waiting":
            assert (early, delayed, late) == ([1], [], [0])
        case other:
            raise AssertionError(other)
    world.check()


@pytest.mark.parametrize("subscription_type", HELD_BACK)
def test_entries_are_delivered_in_the_order_of_their_times(world: World, subscription_type: SubscriptionType) -> None:
    dispatcher = Dispatcher(world, subscription_type)
    write(world, dispatcher, 50, 0, 20, 0)
    dispatcher.connect(permits=100)
    assert bases(dispatcher.pump()) == [1, 3]
    world.check()
    world.pass_time(20)
    sent = dispatcher.pump()
    assert [(each.base, each.redeliveries) for _, each in sent] == [(2, 0)]
    world.pass_time(30)
    assert bases(dispatcher.pump()) == [0]
    world.check()


def test_later_entries_of_a_key_pass_a_delayed_one(world: World) -> None:
    """Apache Pulsar does so, too: a delay is a wish for another order."""
    dispatcher = Dispatcher(world, KEY_SHARED)
    write(world, dispatcher, 50, *[0] * KEYS)
    dispatcher.connect(permits=100)
    assert bases(dispatcher.pump()) == [1, 2, 3]
    world.pass_time(50)
    assert bases(dispatcher.pump()) == [0]


def test_a_delay_in_a_transaction_counts_from_the_sending(world: World) -> None:
    dispatcher = Dispatcher(world, SHARED)
    dispatcher.connect(permits=100)
    handle = world.handle()
    for delay_ms in (30, 90):
        dispatcher.deliver_at_ms[world.state.partitions[PartitionId(0)].next_offset] = world.now_ms + delay_ms
        handle.append()
    world.pass_time(60)
    assert dispatcher.pump() == []
    handle.end(commit=True)
    assert bases(dispatcher.pump()) == [0]
    world.pass_time(30)
    assert bases(dispatcher.pump()) == [1]
    world.check()


def test_what_was_delivered_is_delivered_again_without_a_delay(world: World) -> None:
    dispatcher = Dispatcher(world, SHARED)
    write(world, dispatcher, 50)
    consumer = dispatcher.connect(permits=100)
    dispatcher.pump()
    world.pass_time(50)
    assert bases(dispatcher.pump()) == [0]
    dispatcher.redeliver(consumer, 0)
    assert bases(dispatcher.pump()) == [0]
    dispatcher.disconnect(consumer)
    dispatcher.connect(permits=100)
    assert bases(dispatcher.pump()) == [0]
    world.check()


@pytest.mark.parametrize("when", ["before its time", "after its time"])
@pytest.mark.parametrize("commit", [True, False])
def test_a_delayed_entry_that_a_transaction_acknowledges(world: World, commit: bool, when: str) -> None:
    """It is withheld; if it comes back before its time, it is delayed for the rest of it."""
    dispatcher = Dispatcher(world, SHARED)
    write(world, dispatcher, 50)
    dispatcher.connect(permits=100)
    dispatcher.pump()
    handle = world.handle()
    assert Consumer(world).acknowledge((0, 0), inside=handle) == DONE
    world.check()
    world.pass_time(30 if when == "before its time" else 60)
    assert dispatcher.pump() == []
    handle.end(commit=commit)
    world.check()
    early = bases(dispatcher.pump())
    world.pass_time(30)
    late = bases(dispatcher.pump())
    world.check()
    assert (early, late) == {
        (True, "before its time"): ([], []),
        (True, "after its time"): ([], []),
        (False, "before its time"): ([], [0]),
        (False, "after its time"): ([0], []),
    }[commit, when]


@pytest.mark.parametrize("how", ["one by one", "all before an offset", "seek", "the consumer leaves"])
def test_a_delay_is_over_with_its_entry(world: World, how: str) -> None:
    dispatcher = Dispatcher(world, SHARED)
    write(world, dispatcher, 50, 0)
    consumer = dispatcher.connect(permits=100)
    dispatcher.pump()
    client = Consumer(world)
    if how == "one by one":
        client.acknowledge((0, 0))
    elif how == "all before an offset":
        client.acknowledge_before(1)
    elif how == "seek":
        client.seek(1)
    else:
        dispatcher.disconnect(consumer)
    world.check()
    world.pass_time(50)
    assert dispatcher.pump() == []
    world.check()


def test_after_a_restart_the_entry_is_read_again_with_its_time(world: World) -> None:
    dispatcher = Dispatcher(world, SHARED)
    write(world, dispatcher, 50)
    for _ in range(2):
        dispatcher.connect(permits=100)
        assert dispatcher.pump() == []
        world.crash()
        dispatcher.sent.clear()
    dispatcher.connect(permits=100)
    dispatcher.pump()
    world.pass_time(50)
    assert bases(dispatcher.pump()) == [0]
    world.check()


def test_there_is_one_timer_for_a_subscription(world: World) -> None:
    dispatcher = Dispatcher(world, SHARED)
    write(world, dispatcher, 50, 20, 80)
    dispatcher.connect(permits=100)
    dispatcher.pump()
    timers = [(timer.at_ms, timer.command) for timer in world.timers if isinstance(timer.command, EndDelays)]
    assert timers == [(world.now_ms + 20, EndDelays(topic="t", partition=0, subscription="s"))]
    begin_ms = world.now_ms
    world.pass_time(20)
    assert [timer.at_ms for timer in world.timers if isinstance(timer.command, EndDelays)] == [begin_ms + 50]


def test_delivery_waits_where_too_many_are_delayed(world: World) -> None:
    world.state.limits = replace(SMALL, max_delayed_entries=2)
    dispatcher = Dispatcher(world, SHARED)
    write(world, dispatcher, 50, 0, 20, 0, 90)
    dispatcher.connect(permits=100)
    assert bases(dispatcher.pump()) == [1], "the second delay is the last one for now"
    assert waiting_for(world, dispatcher) == [WaitReason.DELAYED]
    world.check()
    world.pass_time(20)
    assert bases(dispatcher.pump()) == [2, 3]
    world.pass_time(30)
    assert bases(dispatcher.pump()) == [0]
    world.pass_time(40)
    assert bases(dispatcher.pump()) == [4]
    assert waiting_for(world, dispatcher) == []
    world.check()


def test_delayed_entries_do_not_count_as_looked_ahead_of(world: World) -> None:
    world.state.limits = replace(SMALL, max_look_ahead_entries=1)
    dispatcher = Dispatcher(world, KEY_SHARED)
    one = dispatcher.connect(permits=100)
    write(world, dispatcher, *[0] * KEYS)
    dispatcher.pump()
    two = dispatcher.connect(permits=100)
    write(world, dispatcher, 50, 50, 0, 0)
    assert [(who, each.base) for who, each in dispatcher.pump()] == [(one, 6)], "entry 5 waits for its key"
    assert dispatcher.sent[two] == []
    world.check()
