"""DescribeSubscriptions: what it counts is what a subscription has yet to get, message by message."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exacta.client.subscriptions import WAITS
from exacta.core.replies import DONE
from exacta.core.state.subscription import IsolationLevel, SubscriptionType
from exacta.core.subscriptions.description import Wait
from exacta.front import backlog_counts
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import k21_delete_records
from exacta.protocol.kafka.messages.k17787_describe_subscriptions import (
    DescribeSubscriptionsRequest,
    TopicRequest,
)
from tests.kafka.subscribing import Subscriber
from tests.kafka.test_describe_lag import offsets_read, produce
from tests.kafka.test_handles import Handle
from tests.kafka.test_topic_ids import create
from tests.kafka.wire import Front, Wire, batch, front
from tests.shares import examples


def describe(wire: Wire, **fields: Any) -> Any:
    return wire.ask(DescribeSubscriptionsRequest(include_details=True, **fields), 0)


def the_one(wire: Wire) -> Any:
    [topic] = describe(wire).topics
    [partition] = topic.partitions
    [found] = partition.subscriptions
    return found


def places(answer: Any) -> list[tuple[str, int, str]]:
    return [
        (topic.name, partition.partition_index, each.name)
        for topic in answer.topics
        for partition in topic.partitions
        for each in partition.subscriptions
    ]


HANDLES = st.integers(0, 2)
STEPS = st.one_of(
    st.tuples(st.just("begin"), HANDLES),
    st.tuples(st.just("write"), HANDLES),
    st.tuples(st.just("plain"), st.integers(1, 3)),
    st.tuples(st.just("ack"), st.integers(0, 12), st.integers(0, 2)),
    st.tuples(st.just("ack before"), st.integers(0, 12)),
    st.tuples(st.just("ack in"), HANDLES, st.integers(0, 12), st.integers(0, 2)),
    st.tuples(st.just("ack before in"), HANDLES, st.integers(0, 12)),
    st.tuples(st.just("end"), HANDLES, st.booleans()),
    st.tuples(st.just("seek"), st.integers(0, 12)),
)


class Model:
    """The offsets that are acknowledged or pending, as sets, by what was answered with success."""

    def __init__(self) -> None:
        self.acknowledged: set[int] = set()
        self.pending: dict[int, set[int]] = {}

    def acknowledge(self, offsets: set[int]) -> None:
        self.acknowledged |= offsets
        for each in self.pending.values():
            each -= offsets

    def hold(self, transaction: int, offsets: set[int]) -> None:
        self.pending.setdefault(transaction, set()).update(offsets - self.acknowledged)

    def end(self, transaction: int, *, commit: bool) -> None:
        ended = self.pending.pop(transaction, set())
        if commit:
            self.acknowledge(ended)

    def seek(self, offset: int) -> None:
        self.acknowledged = set(range(offset))
        for each in self.pending.values():
            each -= self.acknowledged


@settings(max_examples=examples(80), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEPS, min_size=4, max_size=24), reads_committed=st.booleans())
def test_the_backlog_is_what_the_subscription_has_yet_to_get(
    steps: list[tuple[Any, ...]], reads_committed: bool
) -> None:
    """One that reads uncommitted messages is not durable, and has yet to get those of open and aborted transactions."""
    kind: dict[str, Any] = {}
    if not reads_committed:
        kind = {"durable": False, "isolation_level": IsolationLevel.READ_UNCOMMITTED}
    with front() as broker:
        wire = broker.connect()
        create(wire)
        subscriber, model = Subscriber(broker, **kind), Model()
        handles: dict[int, Handle] = {}
        written: dict[int, set[int]] = {}
        aborted: set[int] = set()
        for step in steps:
            match step:
                case ("begin", number) if number not in handles:
                    handles[number], written[number] = Handle(broker), set()
                case ("write", number) if number in handles:
                    before = set(offsets_read(wire, committed=False))
                    handles[number].write(b"v")
                    written[number] |= set(offsets_read(wire, committed=False)) - before
                case ("plain", count):
                    produce(wire, batch(*[b"v"] * count))
                case ("ack", first, more):
                    if subscriber.acknowledge((first, first + more)) == DONE:
                        model.acknowledge(set(range(first, first + more + 1)))
                case ("ack before", before):
                    if subscriber.acknowledge(before=before) == DONE:
                        model.acknowledge(set(range(before)))
                case ("ack in", number, first, more) if number in handles:
                    transaction = handles[number].transaction_id
                    if subscriber.acknowledge((first, first + more), transaction=transaction) == DONE:
                        model.hold(number, set(range(first, first + more + 1)))
                case ("ack before in", number, before) if number in handles:
                    transaction = handles[number].transaction_id
                    if subscriber.acknowledge(before=before, transaction=transaction) == DONE:
                        model.hold(number, set(range(before)))
                case ("end", number, commit) if number in handles:
                    assert handles.pop(number).end(commit=commit) == DONE
                    aborted |= set() if commit else written[number]
                    del written[number]
                    model.end(number, commit=commit)
                case ("seek", offset):
                    if subscriber.seek(offset) == DONE:
                        model.seek(offset)
                case _:
                    pass
        found = the_one(wire)
        visible = set(offsets_read(wire, committed=reads_committed))
        there = set(offsets_read(wire, committed=False)) - (aborted if reads_committed else set())
        pending = set().union(*model.pending.values())
        assert found.left_messages == len(visible - model.acknowledged - pending)
        assert found.pending_messages == len(visible & pending - model.acknowledged)
        assert found.held_back_messages == len({each for each in there - visible if each >= found.position})
        uncommitted = set().union(*written.values())
        assert found.uncommitted_messages == len({each for each in uncommitted if each >= found.position})


@pytest.fixture
def broker() -> Iterator[Front]:
    with front() as running:
        create(running.connect(), "t", 2)
        yield running


@pytest.fixture
def wire(broker: Front) -> Wire:
    return broker.connect()


class TestAnswers:
    def test_all_about_one(self, broker: Front, wire: Wire) -> None:
        produce(wire, batch(*[b"v"] * 10))
        one = Subscriber(broker, "s", properties={"team": "blue"})
        handle = Handle(broker)
        assert one.acknowledge((2, 3), (5, 5)) == DONE
        assert one.acknowledge((7, 8), transaction=handle.transaction_id) == DONE
        assert one.acknowledge(before=2, transaction=handle.transaction_id) == DONE
        handle.write(b"open")
        answer = describe(wire)
        [partition] = answer.topics[0].partitions
        assert (partition.log_start_offset, partition.last_stable_offset, partition.high_watermark) == (0, 10, 11)
        [opened] = partition.open_transactions
        assert (opened.transactional_id, opened.first_offset) == (handle.name, 10)
        assert opened.start_ms <= answer.now_ms
        [found] = partition.subscriptions
        assert (found.name, found.subscription_type, found.position) == ("s", SubscriptionType.SHARED, 0)
        assert 0 < found.created_ms <= answer.now_ms
        assert (found.left_messages, found.pending_messages, found.held_back_messages) == (3, 4, 1)
        assert [(run.first_offset, run.last_offset) for run in found.acknowledged_runs] == [(2, 3), (5, 5)]
        [pending] = found.pending
        assert (pending.transaction_id, pending.before_offset) == (handle.transaction_id, 2)
        assert [(run.first_offset, run.last_offset) for run in pending.runs] == [(7, 8)]
        assert [(each.key, each.value) for each in found.properties] == [("team", "blue")]
        assert found.waits_for == [Wait.NO_CONSUMER, Wait.PENDING, Wait.HELD_BACK]

    def test_consumers_and_what_they_hold(self, broker: Front, wire: Wire) -> None:
        for _ in range(4):
            produce(wire, batch(b"v"))
        one = Subscriber(broker)
        one.connect(1, name="a", permits=3)
        one.connect(2, name="b")
        found = the_one(wire)
        assert found.consumer_count == 2
        shown = {each.name: (each.permits, each.held_messages, each.is_active) for each in found.consumers}
        assert shown == {"a": (0, 3, False), "b": (0, 0, False)}
        assert (found.noted_entries, found.waiting_entries, found.redelivered_entries) == (3, 0, 0)
        assert found.waits_for == [Wait.NO_PERMITS]
        one.redeliver(1)
        found = the_one(wire)
        assert (found.noted_entries, found.waiting_entries) == (3, 3)
        assert (found.redelivered_entries, found.most_redeliveries) == (3, 1)

    def test_messages_that_cannot_be_read_are_a_reason(
        self, broker: Front, wire: Wire, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        Subscriber(broker, "s").connect(1, permits=1)
        monkeypatch.setattr(broker.engine.dispatcher, "cannot_read", lambda key: key[1] == "s")
        assert the_one(wire).waits_for == [Wait.UNREADABLE]

    def test_every_reason_has_words(self) -> None:
        assert len(WAITS) == len(Wait)

    def test_a_list_has_no_details(self, broker: Front, wire: Wire) -> None:
        Subscriber(broker).connect(1, name="a")
        answer = wire.ask(DescribeSubscriptionsRequest(), 0)
        [found] = answer.topics[0].partitions[0].subscriptions
        assert (found.consumer_count, found.consumers, found.waits_for) == (1, [], [])

    def test_a_readers_subscription_is_shown_too(self, broker: Front, wire: Wire) -> None:
        Subscriber(broker, "reader", kind=SubscriptionType.EXCLUSIVE, durable=False).connect(1)
        Subscriber(broker, "s")
        [topic] = describe(wire).topics
        shown = [(each.name, each.is_durable) for each in topic.partitions[0].subscriptions]
        assert shown == [("reader", False), ("s", True)]

    @pytest.mark.parametrize("level", IsolationLevel)
    def test_its_isolation_level_is_shown(self, broker: Front, wire: Wire, level: IsolationLevel) -> None:
        Subscriber(broker, durable=False, isolation_level=level)
        assert the_one(wire).isolation_level == level

    def test_records_that_were_deleted_are_not_left(self, broker: Front, wire: Wire) -> None:
        produce(wire, batch(*[b"v"] * 4))
        Subscriber(broker)
        partition = k21_delete_records.DeleteRecordsPartition(partition_index=0, offset=3)
        topic = k21_delete_records.DeleteRecordsTopic(name="t", partitions=[partition])
        wire.ask(k21_delete_records.DeleteRecordsRequest(topics=[topic], timeout_ms=1_000), 2)
        assert (the_one(wire).position, the_one(wire).left_messages) == (3, 1)


class TestPages:
    @pytest.fixture(autouse=True)
    def several(self, broker: Front, wire: Wire) -> None:
        create(wire, "u")
        for place in [("t", 1, "b"), ("u", 0, "a"), ("t", 0, "b"), ("t", 1, "a"), ("t", 0, "a")]:
            Subscriber(broker, place[2], topic=place[0], partition=place[1])

    @pytest.mark.parametrize("limit", [1, 2, 3, 5, 9])
    def test_each_is_shown_once_in_order(self, wire: Wire, limit: int) -> None:
        found: list[Any] = []
        cursor: Any = None
        while True:
            answer = describe(wire, subscription_limit=limit, cursor=cursor)
            assert len(places(answer)) <= limit
            found += places(answer)
            cursor = answer.next_cursor
            if cursor is None:
                break
        assert found == [("t", 0, "a"), ("t", 0, "b"), ("t", 1, "a"), ("t", 1, "b"), ("u", 0, "a")]

    def test_a_page_goes_on_where_its_last_one_is_gone(self, broker: Front, wire: Wire) -> None:
        first = describe(wire, subscription_limit=2)
        Subscriber(broker, "b").delete()
        assert places(describe(wire, cursor=first.next_cursor))[0] == ("t", 1, "a")

    def test_a_page_ends_when_much_was_looked_at(
        self, wire: Wire, broker: Front, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        produce(wire, batch(*[b"v"] * 9))
        Subscriber(broker, "a").acknowledge((2, 2), (4, 4), (6, 6))
        monkeypatch.setattr("exacta.kafka.handlers.k17787_describe_subscriptions.MOST_SIZE", 3)
        answer = describe(wire)
        assert places(answer) == [("t", 0, "a")]
        assert answer.next_cursor is not None

    def test_topics_partitions_and_names(self, wire: Wire) -> None:
        only_b = describe(wire, subscriptions=["b", "c"])
        assert places(only_b) == [("t", 0, "b"), ("t", 1, "b")]
        one = describe(wire, topics=[TopicRequest(name="t", partitions=[1]), TopicRequest(name="u")])
        assert places(one) == [("t", 1, "a"), ("t", 1, "b"), ("u", 0, "a")]

    def test_a_topic_that_is_not_there(self, wire: Wire) -> None:
        [missing, there] = describe(wire, topics=[TopicRequest(name="v"), TopicRequest(name="u")]).topics
        assert (missing.name, missing.error_code) == ("v", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        assert (there.name, there.error_code) == ("u", ErrorCode.NONE)


def test_what_is_counted_in_many_turns_is_the_same(broker: Front, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    produce(wire, batch(*[b"v"] * 40))
    Subscriber(broker).acknowledge(*((each, each) for each in range(1, 40, 2)))
    turns: list[Any] = []
    call_soon = broker.engine.scheduler.call_soon

    def counted(*args: Any) -> Any:
        turns.append(args)
        return call_soon(*args)

    monkeypatch.setattr(backlog_counts, "RANGES_A_TURN", 3)
    monkeypatch.setattr(broker.engine.scheduler, "call_soon", counted)
    assert the_one(wire).left_messages == 20
    assert len(turns) >= 7
