"""Redelivery counts are written with acknowledgements, and a restart goes on from them (decision 0061)."""

import pytest
from msgspec.structs import replace

from exacta.core.commands import DeleteRecords
from exacta.core.events import MessagesAcknowledged, MessagesAcknowledgedInTransaction
from exacta.core.ids import ConsumerId
from exacta.core.replies import DONE
from exacta.core.snapshot import after_recovery, restore, snapshot
from exacta.core.state.redeliveries import MOST_AT_ONCE, MOST_KNOWN
from exacta.core.values.subscriptions import SubscriptionType
from simulation.invariants.redeliveries import counts_are_those_that_were_written, counts_do_not_fall
from tests.core.subscriptions.consumer import Consumer
from tests.core.subscriptions.delivering import Dispatcher
from tests.core.world import Handle, World

SHARED = (SubscriptionType.SHARED, SubscriptionType.KEY_SHARED)


def delivered_again(
    world: World, count: int = 3, kind: SubscriptionType = SubscriptionType.SHARED
) -> tuple[Dispatcher, ConsumerId]:
    """Deliver this many messages, and all but the first once more, whose counts nobody has written yet."""
    dispatcher = Dispatcher(world, kind)
    for _ in range(count):
        Consumer(world).write(1)
    consumer = dispatcher.connect(permits=10 * count)
    dispatcher.pump()
    dispatcher.redeliver(consumer, *range(1, count))
    dispatcher.pump()
    return dispatcher, consumer


def acknowledge(world: World, offset: int, inside: Handle | None = None) -> object:
    return Consumer(world).acknowledge((offset, offset), inside=inside)


def restarted(world: World, kind: SubscriptionType = SubscriptionType.SHARED) -> Dispatcher:
    world.state = restore(snapshot(world.state), world.state.limits)
    after_recovery(world.state)
    world.crash()
    return Dispatcher(world, kind)


def counts(dispatcher: Dispatcher, permits: int = 100) -> list[tuple[int, int]]:
    dispatcher.connect(permits=permits)
    return [(each.base, each.redeliveries) for _, each in dispatcher.pump()]


@pytest.mark.parametrize("kind", SHARED)
def test_a_restart_keeps_what_an_acknowledgement_of_others_has_written(world: World, kind: SubscriptionType) -> None:
    dispatcher, consumer = delivered_again(world, kind=kind)
    dispatcher.redeliver(consumer, 2)
    dispatcher.pump()
    assert acknowledge(world, 0) == DONE
    world.check()
    assert dispatcher.subscription.redelivered == [(1, 1, 1), (2, 2, 2)]
    assert counts(restarted(world, kind)) == [(1, 1), (2, 2)]
    world.check()


def test_it_forgets_what_no_acknowledgement_has_written(world: World) -> None:
    dispatcher, consumer = delivered_again(world)
    acknowledge(world, 0)
    dispatcher.redeliver(consumer, 1)
    assert counts(restarted(world)) == [(1, 1), (2, 1)]


def test_so_does_one_in_a_transaction_whatever_its_end_is(world: World) -> None:
    delivered_again(world)
    handle = world.handle()
    assert acknowledge(world, 0, handle) == DONE
    (event,) = (each for each in world.log if isinstance(each, MessagesAcknowledgedInTransaction))
    assert event.counts == ((1, 1, 1), (2, 2, 1))
    handle.end(commit=False)
    world.check()
    assert counts(restarted(world)) == [(0, 0), (1, 1), (2, 1)]


def test_an_abort_counts_and_the_next_acknowledgement_writes_it(world: World) -> None:
    dispatcher, _ = delivered_again(world)
    handle = world.handle()
    acknowledge(world, 1, handle)
    handle.end(commit=False)
    dispatcher.pump()
    acknowledge(world, 0)
    assert dispatcher.subscription.redelivered == [(1, 1, 2), (2, 2, 1)]
    world.check()


def test_where_nothing_was_delivered_again_nothing_is_written(world: World) -> None:
    dispatcher = Dispatcher(world, SubscriptionType.SHARED)
    for _ in range(2):
        Consumer(world).write(1)
    dispatcher.connect(permits=9)
    dispatcher.pump()
    acknowledge(world, 0)
    (event,) = (each for each in world.log if isinstance(each, MessagesAcknowledged))
    assert event.counts == ()


def test_a_count_is_written_once(world: World) -> None:
    dispatcher, _ = delivered_again(world)
    acknowledge(world, 0)
    acknowledge(world, 1)
    assert [each.counts for each in world.log if isinstance(each, MessagesAcknowledged)] == [
        ((1, 1, 1), (2, 2, 1)),
        (),
    ]
    assert dispatcher.subscription.redelivered == [(2, 2, 1)], "of what is acknowledged nothing is known"
    world.check()


def test_an_event_carries_some_and_the_next_one_the_rest(world: World) -> None:
    delivered_again(world, MOST_AT_ONCE + 5)
    for offset in (0, 1):
        acknowledge(world, offset)
    found = [len(each.counts) for each in world.log if isinstance(each, MessagesAcknowledged)]
    assert found == [MOST_AT_ONCE, 4]
    world.check()


def test_the_oldest_ones_are_known_where_there_are_too_many(world: World) -> None:
    dispatcher, _ = delivered_again(world, MOST_KNOWN + 10)
    for offset in range(MOST_KNOWN // MOST_AT_ONCE + 1):
        acknowledge(world, offset)
    assert len(dispatcher.subscription.redelivered) <= MOST_KNOWN
    assert dispatcher.subscription.redelivered[0][0] == MOST_KNOWN // MOST_AT_ONCE + 1


def test_a_seek_begins_anew(world: World) -> None:
    dispatcher, _ = delivered_again(world)
    acknowledge(world, 0)
    Consumer(world).seek(0)
    assert dispatcher.subscription.redelivered == []
    world.check()


def test_so_does_a_subscription_that_is_used_otherwise(world: World) -> None:
    dispatcher, consumer = delivered_again(world)
    acknowledge(world, 0)
    dispatcher.disconnect(consumer)
    other = Dispatcher(world, SubscriptionType.EXCLUSIVE)
    assert counts(other) == [(1, 0), (2, 0)]
    assert other.subscription.redelivered == []
    world.check()


def test_deleted_records_take_theirs_along(world: World) -> None:
    dispatcher, _ = delivered_again(world)
    acknowledge(world, 0)
    world.send(DeleteRecords(topic="t", partition=0, before_offset=2))
    assert dispatcher.subscription.redelivered == [(2, 2, 1)]
    world.check()


def test_once_all_consumers_have_left_counts_begin_anew_as_in_pulsar(world: World) -> None:
    dispatcher, consumer = delivered_again(world)
    acknowledge(world, 0)
    dispatcher.disconnect(consumer)
    assert counts(dispatcher) == [(1, 0), (2, 0)]
    world.check()


def test_for_want_of_room_counts_are_left_out_and_nothing_is_refused(world: World) -> None:
    dispatcher, _ = delivered_again(world)
    world.state.limits = replace(world.state.limits, max_subscription_bytes=1)
    assert acknowledge(world, 0) == DONE
    assert dispatcher.subscription.redelivered == []


def test_the_invariants_see_other_counts(world: World) -> None:
    dispatcher, _ = delivered_again(world)
    acknowledge(world, 0)
    dispatcher.subscription.redelivered = [(1, 1, 5)]  # type: ignore[list-item]
    assert list(counts_are_those_that_were_written(world.state, world.log))
    assert list(counts_do_not_fall(world.state))
