"""Subscriptions come, move and go: the table of `subscribing.py`, swept; where new ones begin; bounds."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from exacta.core.commands import DeleteRecords, DeleteTopic, Skip
from exacta.core.commands.subscriptions import EARLIEST, LATEST
from exacta.core.ids import Offset
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, Subscribed
from exacta.core.values.subscriptions import SubscriptionType
from tests.core.subscriptions.consumer import Consumer
from tests.core.subscriptions.delivering import Dispatcher
from tests.core.world import SMALL, World, world_of_ten
from tests.docstring_tables import docstring_table

GONE, ACKED, FREE, PENDING = "gone", "acknowledged", "free", "pending"


@pytest.fixture
def world() -> World:
    return world_of_ten()


def delete_topic(consumer: Consumer) -> object:
    return done(consumer.world.send(DeleteTopic(topic="t")))


def delete_records(consumer: Consumer) -> object:
    return done(consumer.world.send(DeleteRecords(topic="t", partition=0, before_offset=6)))


def skip(before: int) -> Callable[[Consumer], object]:
    return lambda consumer: consumer.world.send(
        Skip(topic="t", partition=0, before=Offset(before), subscription=consumer.name)
    )


def skip_all(consumer: Consumer) -> object:
    return consumer.world.send(Skip(topic="t", partition=0, before=Offset(6)))


def done(answer: object) -> object:
    return answer if isinstance(answer, Rejection) else DONE


ACTS: dict[str, tuple[Callable[[Consumer], object], ...]] = {
    # the name of a row: what does it
    "deleted": (lambda consumer: consumer.unsubscribe(),),
    "moved beyond it": (lambda consumer: consumer.seek(6),),
    "moved to or before it": (lambda consumer: consumer.seek(5), lambda consumer: consumer.seek(0)),
    "topic deleted": (delete_topic,),
    "records deleted": (delete_records,),
    "skipped or cleared": (skip(6), skip(LATEST)),
    "expired (TTL)": (skip_all,),
    "evicted by its quota": (skip_all,),
}
TABLE = docstring_table("exacta.core.subscriptions.subscribing", "what is done to the subscription")
CELLS = [(row, way, column) for row in TABLE.rows for way in range(len(ACTS[row])) for column in TABLE.columns]


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize(("act", "way", "before"), CELLS)
def test_what_becomes_of_a_message_and_the_end_of_its_transaction(
    world: World, act: str, way: int, before: str, commit: bool
) -> None:
    consumer, handle = Consumer(world).begin(), world.handle()
    consumer.acknowledge((2, 2))
    if before == "pending in a transaction":
        consumer.acknowledge((5, 5), inside=handle)
    elif before == "held by a consumer":
        dispatcher = Dispatcher(world, SubscriptionType.SHARED)
        dispatcher.connect(permits=100)
        assert 0 in [each.base for _, each in dispatcher.pump()]
    assert ACTS[act][way](consumer) == DONE
    world.check()
    after = TABLE[act, before]
    exists = any("s" in each.subscriptions for each in world.state.partitions.values())
    assert exists is (after != GONE)
    if exists:
        assert consumer.state_of(5).split()[0] == after
    if (act, way) == ("moved to or before it", 1):
        assert consumer.state_of(2) == FREE, "a move forgets what was acknowledged from there on"
    assert handle.end(commit=commit) == DONE, "the end does not fail for what is gone"
    if after == PENDING:
        assert consumer.state_of(5) == (ACKED if commit else FREE)
    world.check()


@pytest.mark.parametrize("back", ["before the end", "after the end"])
@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("before", [None, 6])
def test_what_a_seek_skips_is_pending_again_after_a_seek_back(
    world: World, back: str, commit: bool, before: int | None
) -> None:
    consumer, handle, other = Consumer(world).begin(), world.handle(), world.handle()
    if before is None:
        consumer.acknowledge((5, 5), inside=handle)
    else:
        consumer.acknowledge_before(before, inside=handle)
    consumer.seek(7)
    consumer.acknowledge_before(8)
    if back == "before the end":
        consumer.seek(0)
        assert consumer.state_of(5) == f"{PENDING} in {handle.transaction_id}"
        assert consumer.acknowledge((5, 5), inside=other) == Rejection.TRANSACTION_CONFLICT
    world.check()
    assert handle.end(commit=commit) == DONE
    if back == "after the end":
        consumer.seek(0)
    assert consumer.state_of(5) == (ACKED if commit and back == "before the end" else FREE)
    world.check()


@pytest.mark.parametrize("again", ["before the end", "after the end"])
def test_a_transaction_ends_nothing_in_a_later_subscription_of_the_name(world: World, again: str) -> None:
    consumer, handle = Consumer(world).begin(), world.handle()
    consumer.acknowledge((5, 5), inside=handle)
    consumer.unsubscribe()
    if again == "before the end":
        consumer.begin()
    assert handle.end(commit=True) == DONE
    if again == "after the end":
        consumer.begin()
    assert consumer.state_of(5) == FREE
    world.check()


@pytest.mark.parametrize(
    ("begin", "position"),
    [(EARLIEST, 3), (LATEST, 11), (0, 3), (7, 7), (11, 11), (12, None), (-3, None)],
)
def test_where_a_subscription_begins_and_goes_on(world: World, begin: int, position: int | None) -> None:
    world.send(DeleteRecords(topic="t", partition=0, before_offset=3))
    consumer = Consumer(world)
    expected = Rejection.OFFSET_OUT_OF_RANGE if position is None else Subscribed(position=Offset(position), is_new=True)
    assert consumer.subscribe(begin) == expected
    other = Consumer(world, "other").begin()
    assert other.seek(begin) == (Rejection.OFFSET_OUT_OF_RANGE if position is None else DONE)
    assert other.subscription.position == (3 if position is None else position)
    world.check()


def test_who_comes_back_finds_what_was_left(world: World) -> None:
    consumer = Consumer(world)
    consumer.subscribe(owner="billing")
    consumer.acknowledge_before(4)
    length = len(world.log)
    assert consumer.subscribe(LATEST, owner="other") == Subscribed(position=Offset(4), is_new=False)
    assert len(world.log) == length
    assert consumer.subscribe(subscription_type=SubscriptionType.FAILOVER) == Subscribed(
        position=Offset(4), is_new=False
    )
    found = consumer.subscription
    assert (found.subscription_type, found.properties) == (SubscriptionType.FAILOVER, {"owner": "billing"})
    world.check()


def test_what_does_not_exist_is_named(world: World) -> None:
    consumer, nowhere = Consumer(world), Consumer(world, partition=7)
    assert nowhere.subscribe() == nowhere.unsubscribe() == Rejection.UNKNOWN_TOPIC_OR_PARTITION
    assert nowhere.acknowledge((0, 0)) == Rejection.UNKNOWN_TOPIC_OR_PARTITION
    for answer in (consumer.unsubscribe(), consumer.seek(0), consumer.acknowledge((0, 0))):
        assert answer == Rejection.SUBSCRIPTION_NOT_FOUND


def test_names_and_properties_are_bounded(world: World) -> None:
    assert Consumer(world, "").subscribe() == Rejection.INVALID_SUBSCRIPTION
    assert Consumer(world, "ü" * 257).subscribe() == Rejection.INVALID_SUBSCRIPTION
    assert Consumer(world).subscribe(note="x" * 4_096) == Rejection.INVALID_SUBSCRIPTION
    assert isinstance(Consumer(world, "ü" * 256).subscribe(note="x" * 4_092), Subscribed)


def test_the_number_of_subscriptions_is_bounded(world: World) -> None:
    world.state.limits = replace(SMALL, max_subscriptions=2)
    first, second = Consumer(world, "a").begin(), Consumer(world, "b", partition=1).begin()
    assert Consumer(world, "c").subscribe() == Rejection.LIMIT_REACHED
    assert isinstance(first.subscribe(), Subscribed), "one that exists is found"
    second.unsubscribe()
    assert isinstance(Consumer(world, "c").subscribe(), Subscribed)
    world.send(DeleteTopic(topic="t"))
    assert world.state.volatile.subscriptions == 0
    world.check()
