"""Delivery: who gets which entry, what is delivered again and what is not."""

import pytest
from msgspec.structs import replace

from exacta.core.commands import AbortAfterLoss, DeleteRecords, EndHandle
from exacta.core.ids import Cause, ConsumerId, Offset
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, Delivering
from exacta.core.subscriptions.notices import ConsumerClosed
from exacta.core.values.subscriptions import SubscriptionType
from tests.core.subscriptions.consumer import Consumer
from tests.core.subscriptions.delivering import KEYS, Dispatcher
from tests.core.world import SMALL, World

SHARED, KEY_SHARED = SubscriptionType.SHARED, SubscriptionType.KEY_SHARED
IN_ORDER = (SubscriptionType.EXCLUSIVE, SubscriptionType.FAILOVER)


def write(world: World, count: int = 1, size: int = 1) -> None:
    for _ in range(count):
        Consumer(world).write(size)


def bases(sent: list[tuple[ConsumerId, Delivering]]) -> list[int]:
    return [each.base for _, each in sent]


@pytest.mark.parametrize("subscription_type", SubscriptionType)
def test_only_committed_messages_are_delivered_and_markers_fragment_nothing(
    world: World, subscription_type: SubscriptionType
) -> None:
    dispatcher = Dispatcher(world, subscription_type)
    dispatcher.connect(permits=100)
    opened = world.handle()
    for commit in (True, False, True):
        handle = world.handle()
        handle.append(count=2)
        write(world)
        handle.end(commit=commit)
    opened.append()
    write(world)
    sent = dispatcher.pump()
    assert bases(sent) == [0, 2, 6, 8, 10]
    for each in sent[1::2] + sent[::2]:
        assert dispatcher.acknowledge(each[1]) == DONE
    assert (dispatcher.subscription.position, dispatcher.subscription.acknowledged) == (12, [])
    opened.end(commit=False)
    assert bases(dispatcher.pump()) == [13]
    world.check()


def test_shared_consumers_have_their_turns_as_far_as_they_take_messages(world: World) -> None:
    dispatcher = Dispatcher(world, SHARED)
    write(world, 7)
    one, two, three = (dispatcher.connect(permits=permits) for permits in (3, 1, 2))
    dispatcher.pump()
    assert [[each.base for each in dispatcher.sent[who]] for who in (one, two, three)] == [
        [0, 3, 5],
        [1],
        [2, 4],
    ]
    dispatcher.permit(two, 1)
    assert bases(dispatcher.pump()) == [6]
    world.check()


def test_a_batch_goes_to_one_consumer_and_may_be_more_than_it_has_asked_for(world: World) -> None:
    dispatcher = Dispatcher(world, SHARED)
    write(world, size=5)
    write(world)
    one, two = dispatcher.connect(permits=1), dispatcher.connect(permits=1)
    assert [(who, each.base, each.count) for who, each in dispatcher.pump()] == [(one, 0, 5), (two, 5, 1)]
    assert dispatcher.delivery is not None
    assert dispatcher.delivery.consumers[one].permits == -4
    world.check()


def test_consumers_of_lower_priority_get_what_the_others_do_not_take(world: World) -> None:
    dispatcher = Dispatcher(world, SHARED)
    write(world, 4)
    low, high = dispatcher.connect(permits=9, priority=1), dispatcher.connect(permits=3)
    assert [who for who, _ in dispatcher.pump()] == [high, high, high, low]


def test_what_is_given_back_is_delivered_to_others_and_before_what_is_new(world: World) -> None:
    dispatcher = Dispatcher(world, SHARED)
    write(world, 4)
    one = dispatcher.connect(permits=3)
    dispatcher.pump()
    assert dispatcher.redeliver(one, 1, 3, 77) == DONE
    two = dispatcher.connect(permits=9)
    assert [(who, each.base, each.redeliveries) for who, each in dispatcher.pump()] == [(two, 1, 1), (two, 3, 0)]
    assert dispatcher.redeliver(one, 1) == DONE, "it has it not any more"
    assert dispatcher.pump() == []
    dispatcher.disconnect(one)
    assert [(each.base, each.redeliveries) for _, each in dispatcher.pump()] == [(0, 0), (2, 0)], "a leave counts not"
    assert dispatcher.redeliver(two) == DONE
    assert [(each.base, each.redeliveries) for _, each in dispatcher.pump()] == [(0, 1), (1, 2), (2, 1), (3, 1)]
    world.check()


@pytest.mark.parametrize("subscription_type", IN_ORDER)
def test_delivery_in_order_goes_back_to_the_position(world: World, subscription_type: SubscriptionType) -> None:
    dispatcher = Dispatcher(world, subscription_type)
    write(world, 4)
    consumer = dispatcher.connect(permits=100)
    sent = dispatcher.pump()
    dispatcher.acknowledge(sent[0][1])
    dispatcher.acknowledge(sent[2][1])
    assert dispatcher.redeliver(consumer, 3) == DONE
    assert bases(dispatcher.pump()) == [1, 3]
    world.check()


@pytest.mark.parametrize("subscription_type", SubscriptionType)
@pytest.mark.parametrize("cumulative", [False, True])
def test_what_a_transaction_has_acknowledged_comes_back_with_its_abort_only(
    world: World, subscription_type: SubscriptionType, cumulative: bool
) -> None:
    dispatcher = Dispatcher(world, subscription_type)
    write(world, 4)
    consumer = dispatcher.connect(permits=100)
    sent = dispatcher.pump()
    handle, committed = world.handle(), world.handle()
    if cumulative:
        assert Consumer(world).acknowledge_before(3, inside=handle) == DONE
    else:
        for each in sent[:3]:
            dispatcher.acknowledge(each[1], inside=handle)
    assert dispatcher.redeliver(consumer) == DONE
    waits = cumulative and subscription_type in IN_ORDER
    assert bases(dispatcher.pump()) == ([] if waits else [3]), "what is pending is not delivered again"
    dispatcher.acknowledge(sent[3][1], inside=committed)
    committed.end(commit=True)
    handle.end(commit=False)
    again = dispatcher.pump()
    assert bases(again) == [0, 1, 2]
    counted = subscription_type not in IN_ORDER
    assert {each.redeliveries for _, each in again} == {1 if counted else 0}
    world.check()


@pytest.mark.parametrize("subscription_type", IN_ORDER)
@pytest.mark.parametrize("times_out", [False, True])
def test_later_messages_do_not_overtake_what_was_acknowledged_cumulatively(
    world: World, subscription_type: SubscriptionType, times_out: bool
) -> None:
    """The consumer has 3 by the time of the abort, and an acknowledgement of it would acknowledge 0 to 2, too."""
    dispatcher = Dispatcher(world, subscription_type)
    write(world, 4)
    consumer = dispatcher.connect(permits=100)
    dispatcher.pump()
    handle, late = world.handle(timeout_ms=50), world.handle()
    acknowledging = Consumer(world)
    assert acknowledging.acknowledge_before(3, inside=handle, consumer_id=consumer) == DONE
    write(world, 1)
    [(_, goes_on)] = dispatcher.pump()
    world.notices.clear()
    if times_out:
        world.pass_time(50)
    else:
        handle.end(commit=False)
    assert world.notices == [(consumer, ConsumerClosed())], "nobody would ask for the messages by itself"
    assert dispatcher.pump() == []
    assert acknowledging.acknowledge_before(4, inside=late, consumer_id=consumer) == Rejection.CONSUMER_NOT_FOUND
    again = dispatcher.connect(permits=100)
    assert acknowledging.acknowledge_before(4, inside=late, consumer_id=again) == Rejection.TRANSACTION_CONFLICT
    assert bases(dispatcher.pump()) == [0, 1, 2, 3, goes_on.base]
    assert acknowledging.acknowledge_before(4, inside=late, consumer_id=again) == DONE
    world.check()


def test_an_abort_closes_nobody_who_has_not_gone_beyond_what_it_gives_back(world: World) -> None:
    dispatcher = Dispatcher(world, SubscriptionType.FAILOVER)
    write(world, 4)
    consumer, standing_by = dispatcher.connect("a", permits=100), dispatcher.connect("b", permits=100)
    dispatcher.pump()
    handle, one_by_one = world.handle(), world.handle()
    assert Consumer(world).acknowledge_before(2, inside=handle, consumer_id=consumer) == DONE
    assert Consumer(world).acknowledge((3, 3), inside=one_by_one) == DONE
    dispatcher.disconnect(consumer)
    world.notices.clear()
    assert dispatcher.pump() == []
    handle.end(commit=False)
    one_by_one.end(commit=False)
    assert world.notices == []
    assert [(who, each.base) for who, each in dispatcher.pump()] == [(standing_by, each) for each in range(4)]
    world.check()


@pytest.mark.parametrize("aborts", ["its owner's next life", "a marker", "the loss of what it wrote"])
def test_whatever_aborts_a_transaction_closes_the_consumers(world: World, aborts: str) -> None:
    dispatcher = Dispatcher(world, SubscriptionType.EXCLUSIVE)
    write(world, 2)
    consumer = dispatcher.connect(permits=100)
    dispatcher.pump()
    handle, owner = world.handle(), world.producer()
    assert Consumer(world).acknowledge_before(2, inside=handle, consumer_id=consumer) == DONE
    world.notices.clear()
    if aborts == "its owner's next life":
        owner.join(handle)
        world.producer()
    elif aborts == "a marker":
        command = EndHandle(transaction_id=handle.transaction_id, commit=False, cause=Cause.MARKER)
        assert world.send(command) == DONE
    else:
        assert world.send(AbortAfterLoss(transaction_id=handle.transaction_id)) == DONE
    assert world.notices == [(consumer, ConsumerClosed())]
    assert dispatcher.delivery is None
    world.check()


@pytest.mark.parametrize("subscription_type", IN_ORDER)
@pytest.mark.parametrize("commit", [True, False])
def test_another_consumer_waits_for_the_end_of_what_was_acknowledged_cumulatively(
    world: World, subscription_type: SubscriptionType, commit: bool
) -> None:
    dispatcher = Dispatcher(world, subscription_type)
    write(world, 4)
    gone = dispatcher.connect(permits=100)
    dispatcher.pump()
    handle = world.handle()
    assert Consumer(world).acknowledge_before(3, inside=handle, consumer_id=gone) == DONE
    dispatcher.disconnect(gone)
    dispatcher.connect(permits=100)
    assert dispatcher.pump() == []
    handle.end(commit=commit)
    assert bases(dispatcher.pump()) == ([3] if commit else [0, 1, 2, 3])
    world.check()


def test_an_abort_gives_back_the_entries_that_its_transaction_had_a_part_of(world: World) -> None:
    dispatcher = Dispatcher(world, SHARED)
    write(world, 3, size=3)
    dispatcher.connect(permits=100)
    dispatcher.pump()
    handle = world.handle()
    Consumer(world).acknowledge((1, 1), inside=handle)
    Consumer(world).acknowledge((3, 5), inside=handle)
    Consumer(world).acknowledge((4, 4))
    handle.end(commit=False)
    assert [(each.base, each.free, each.redeliveries) for _, each in dispatcher.pump()] == [
        (0, ((0, 2),), 1),
        (3, ((3, 3), (5, 5)), 1),
    ]
    world.check()


def test_a_part_of_a_batch_is_left_for_delivery(world: World) -> None:
    dispatcher = Dispatcher(world, SHARED)
    write(world, size=5)
    consumer = dispatcher.connect(permits=100)
    dispatcher.pump()
    Consumer(world).acknowledge((1, 2))
    dispatcher.redeliver(consumer)
    ((_, again),) = dispatcher.pump()
    assert again.free == ((0, 0), (3, 4))
    world.check()


def test_a_key_stays_with_its_consumer_until_that_has_nothing_of_it(world: World) -> None:
    dispatcher = Dispatcher(world, KEY_SHARED)
    write(world, KEYS)
    one = dispatcher.connect(permits=100)
    assert bases(dispatcher.pump()) == [0, 1, 2]
    two = dispatcher.connect(permits=100)
    write(world, KEYS)
    assert [(who, each.base) for who, each in dispatcher.pump()] == [(one, 3), (one, 4)], "the last key has moved"
    for each in dispatcher.sent[one]:
        dispatcher.acknowledge(each)
    assert [(who, each.base) for who, each in dispatcher.pump()] == [(two, 5)]
    world.check()


def test_a_key_that_waits_does_not_hold_up_the_others(world: World) -> None:
    dispatcher = Dispatcher(world, KEY_SHARED)
    one = dispatcher.connect(permits=1)
    write(world, KEYS + 1)
    assert bases(dispatcher.pump()) == [0]
    dispatcher.redeliver(one, 0)
    dispatcher.permit(one, 100)
    assert bases(dispatcher.pump()) == [0, 1, 2, 3], "the earlier one of the key goes first"
    world.check()


def test_delivery_waits_where_too_much_is_not_acknowledged(world: World) -> None:
    world.state.limits = replace(SMALL, max_unacknowledged_per_consumer=2, max_noted_entries=3)
    dispatcher = Dispatcher(world, SHARED)
    write(world, 9)
    one, two = dispatcher.connect(permits=100), dispatcher.connect(permits=100)
    dispatcher.pump()
    assert {who: len(sent) for who, sent in dispatcher.sent.items()} == {one: 2, two: 1}
    dispatcher.acknowledge(dispatcher.sent[one][0])
    assert bases(dispatcher.pump()) == [3]
    world.check()


def test_deleted_records_are_not_delivered_again(world: World) -> None:
    dispatcher = Dispatcher(world, SHARED)
    write(world, 4)
    consumer = dispatcher.connect(permits=100)
    dispatcher.pump()
    world.send(DeleteRecords(topic="t", partition=0, before_offset=3))
    dispatcher.redeliver(consumer)
    assert bases(dispatcher.pump()) == [3]
    world.check()


def test_what_was_read_elsewhere_is_left_alone(world: World) -> None:
    """A read takes time, and the subscription may go on elsewhere meanwhile."""
    dispatcher = Dispatcher(world, SHARED)
    write(world, 4)
    dispatcher.connect(permits=100)
    dispatcher.pump()
    assert dispatcher.deliver(Offset(1), Offset(4)) == []
    assert dispatcher.deliver(Offset(5), Offset(6)) == []
    world.check()


def test_no_transaction_acknowledges_beyond_an_offset_what_is_pending_in_another(world: World) -> None:
    """An offset for nobody beside a message is pending with that message. No other message takes it along."""
    dispatcher = Dispatcher(world, SHARED)
    write(world)
    dropped = world.handle()
    dropped.append()
    dropped.end(commit=False)
    write(world)
    dispatcher.connect(permits=9)
    _, (_, last) = dispatcher.pump()
    one, other = world.handle(), world.handle()
    assert dispatcher.acknowledge(last, one) == DONE
    assert Consumer(world).acknowledge_before(1, inside=other) == DONE
    world.check()
    one.end(commit=False)
    other.end(commit=True)
    assert (dispatcher.subscription.position, bases(dispatcher.pump())) == (1, [3])
    world.check()
