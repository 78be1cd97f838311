"""Isolation levels: who gets which messages of transactions, and who may ask for what; the tables of `isolation.py`."""

import pytest

from exacta.core.commands import Skip
from exacta.core.commands.subscriptions import LATEST
from exacta.core.ids import ConsumerId, Offset
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, Subscribed
from exacta.core.subscriptions.backlog import BacklogPart, ranges_to_count
from exacta.core.subscriptions.description import SubscriptionsWanted, WaitReason, page_of
from exacta.core.values.subscriptions import IsolationLevel, SubscriptionType
from tests.core.subscriptions.consumer import Consumer
from tests.core.subscriptions.delivering import Dispatcher
from tests.core.world import Handle, World
from tests.docstring_tables import docstring_table

COMMITTED, UNCOMMITTED = IsolationLevel
SHARED = SubscriptionType.SHARED
KINDS = {
    "durable, committed": (True, COMMITTED),
    "durable, uncommitted": (True, UNCOMMITTED),
    "non-durable, committed": (False, COMMITTED),
    "non-durable, uncommitted": (False, UNCOMMITTED),
}
DIFFER = Rejection.ISOLATION_LEVELS_DIFFER
MODULE = "exacta.core.subscriptions.isolation"
LEVELS = docstring_table(MODULE, "a subscription of")
TABLE = docstring_table(MODULE, "asked for \\ it is")
ANSWERS = {
    "is taken": None,
    "INVALID": Rejection.INVALID_SUBSCRIPTION,
    "NOT_DURABLE": Rejection.UNCOMMITTED_NOT_DURABLE,
    "DIFFER": DIFFER,
}
CELLS = [(asked, there) for asked in TABLE.rows for there in ("", *KINDS) if there != "durable, uncommitted"]


def column_of(asked: str, there: str) -> str:
    if not there or KINDS[there][0]:
        return "durable" if there else "nobody's"
    return f"non-durable, of {'this level' if KINDS[there][1] is KINDS[asked][1] else 'the other'}"


def test_the_table_is_complete() -> None:
    assert TABLE.rows.keys() == KINDS.keys()
    assert {column_of(asked, there) for asked, there in CELLS} == set(TABLE.columns)


def consumer_of(world: World, kind: str) -> Consumer:
    durable, level = KINDS[kind]
    return Consumer(world, durable=durable, level=level)


@pytest.mark.parametrize("is_connected", [False, True])
@pytest.mark.parametrize(("asked", "there"), CELLS)
def test_who_may_ask_for_what(world: World, asked: str, there: str, is_connected: bool) -> None:
    """A front submits both commands in one step, so that both are refused, or neither."""
    if there:
        present = consumer_of(world, there).begin()
        if is_connected:
            assert present.connect(ConsumerId(1), SHARED, "") == DONE
    consumer, expected = consumer_of(world, asked), ANSWERS[TABLE[asked, column_of(asked, there)]]
    answer = consumer.subscribe()
    assert (None if isinstance(answer, Subscribed) else answer) == expected
    if there or expected is None:
        assert consumer.connect(ConsumerId(2), SHARED, "") == (expected or DONE)
    else:
        assert not consumer.exists()
    world.check()


def test_the_level_outlives_a_move(world: World) -> None:
    dispatcher = Dispatcher(world, SHARED, durable=False, level=UNCOMMITTED)
    world.handle().append()
    dispatcher.connect(permits=9)
    assert [each.base for _, each in dispatcher.pump()] == [0]
    reader = Consumer(world, durable=False, level=UNCOMMITTED)
    assert reader.seek(0) == DONE
    assert Consumer(world, durable=False).subscribe() == DIFFER
    dispatcher.connect(permits=9)
    assert [each.base for _, each in dispatcher.pump()] == [0]
    world.check()


@pytest.mark.parametrize("subscription_type", SubscriptionType)
@pytest.mark.parametrize("outcome", ["open", "committed", "aborted"])
@pytest.mark.parametrize("level", IsolationLevel)
def test_what_a_consumer_gets(
    world: World, level: IsolationLevel, outcome: str, subscription_type: SubscriptionType
) -> None:
    before, of_aborted = LEVELS.rows[level.name]
    expected = [0, 1, 4]
    if outcome == "open" and before == "the last stable offset":
        expected = [0]
    if outcome == "aborted" and of_aborted == "nothing":
        expected = [0, 4]
    assert before in ("the last stable offset", "the high watermark")
    dispatcher = Dispatcher(world, subscription_type, durable=False, level=level)
    dispatcher.connect(permits=100)
    writer, handle = Consumer(world), world.handle()
    writer.write()
    handle.append(count=3)
    writer.write()
    if outcome != "open":
        assert handle.end(commit=outcome == "committed") == DONE
    found = [each.base for _, each in dispatcher.pump()]
    assert found == expected
    world.check()


@pytest.mark.parametrize("subscription_type", SubscriptionType)
@pytest.mark.parametrize("commit", [True, False])
def test_an_end_changes_nothing_for_a_reader_of_uncommitted_messages(
    world: World, subscription_type: SubscriptionType, commit: bool
) -> None:
    dispatcher = Dispatcher(world, subscription_type, durable=False, level=UNCOMMITTED)
    consumer, handle = dispatcher.connect(permits=100), world.handle()
    handle.append()
    handle.append()
    (_, first), (_, second) = dispatcher.pump()
    assert dispatcher.acknowledge(first) == DONE
    assert handle.end(commit=commit) == DONE
    Consumer(world).write()
    assert [each.base for _, each in dispatcher.pump()] == [3], "behind the marker, and nothing again"
    dispatcher.redeliver(consumer)
    assert [each.base for _, each in dispatcher.pump()] == [1, 3]
    assert dispatcher.acknowledge(second) == DONE
    assert dispatcher.subscription.position == 3, "the marker is passed over"
    world.check()


def held_back(world: World) -> Handle:
    """Write 0 outside of a transaction, 1 to 3 in one that is left open, and 4 behind it."""
    handle = world.handle()
    Consumer(world).write()
    handle.append(count=3)
    Consumer(world).write()
    return handle


@pytest.mark.parametrize("cumulative", [False, True])
@pytest.mark.parametrize("level", IsolationLevel)
def test_what_a_consumer_may_see_may_be_acknowledged(world: World, level: IsolationLevel, cumulative: bool) -> None:
    reader = Consumer(world, durable=False, level=level).begin()
    handle = held_back(world)

    def acknowledge(last: int) -> object:
        return reader.acknowledge_before(last + 1) if cumulative else reader.acknowledge((0, last))

    assert acknowledge(0) == DONE
    assert acknowledge(5) == Rejection.OFFSET_OUT_OF_RANGE
    assert acknowledge(4) == (Rejection.OFFSET_OUT_OF_RANGE if level is COMMITTED else DONE)
    assert reader.subscription.position == (1 if level is COMMITTED else 5)
    assert handle.end(commit=False) == DONE
    assert reader.subscription.position == (1 if level is COMMITTED else 5)
    world.check()


@pytest.mark.parametrize(("level", "position"), [(COMMITTED, 1), (UNCOMMITTED, 5)])
def test_a_backlog_is_cleared_up_to_what_its_consumers_may_see(
    world: World, level: IsolationLevel, position: int
) -> None:
    reader = Consumer(world, durable=False, level=level).begin()
    held_back(world)
    assert world.send(Skip(topic="t", partition=0, before=LATEST, subscription="s")) == DONE
    assert reader.subscription.position == position
    world.check()


@pytest.mark.parametrize("level", IsolationLevel)
def test_what_is_left_and_what_is_held_back(world: World, level: IsolationLevel) -> None:
    reader = Consumer(world, durable=False, level=level).begin()
    held_back(world)
    page = page_of(
        world.state, SubscriptionsWanted(topics={"t": {0}}, most=9, most_size=9, most_partitions=9, has_details=True)
    )
    [found] = page.subscriptions
    details = found.told.details
    assert (found.told.reads_uncommitted, found.reads_committed) == (level is UNCOMMITTED, level is COMMITTED)
    assert details is not None
    waits = {COMMITTED: (WaitReason.NO_CONSUMER, WaitReason.HELD_BACK), UNCOMMITTED: (WaitReason.NO_CONSUMER,)}
    assert (details.waits, details.uncommitted) == (waits[level], 3)
    ranges = {
        COMMITTED: [(BacklogPart.LEFT, 1, Offset(0), Offset(1)), (BacklogPart.HELD_BACK, 1, Offset(1), Offset(5))],
        UNCOMMITTED: [(BacklogPart.LEFT, 1, Offset(0), Offset(5))],
    }
    assert list(ranges_to_count(found)) == ranges[level]
    assert reader.exists()
