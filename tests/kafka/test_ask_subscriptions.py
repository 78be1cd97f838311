"""The subscriptions that Ask tells: what it counts is what a subscription has yet to get, message by message."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exacta.core.ids import PartitionId
from exacta.core.replies import DONE
from exacta.core.subscriptions.description import WaitReason
from exacta.core.values.subscriptions import IsolationLevel, SubscriptionType
from exacta.front import backlog_counts
from exacta.protocol.kafka.messages import k21_delete_records
from exacta.readmodel.subscriptions import Details, Place, SubscriptionDescription, Subscriptions
from tests.kafka import asking
from tests.kafka.subscribing import Subscriber
from tests.kafka.test_ask_lag import offsets_read, produce
from tests.kafka.test_handles import Handle
from tests.kafka.test_topic_ids import create
from tests.kafka.wire import Front, Wire, batch, front
from tests.shares import examples


def the_one(wire: Wire) -> SubscriptionDescription:
    [found] = asking.subscriptions(wire).subscriptions
    return found


def details_of(wire: Wire) -> Details:
    found = the_one(wire).details
    assert found is not None
    return found


def places(answer: Subscriptions) -> list[Place]:
    return [each.place for each in answer.subscriptions]


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
        assert found.left == len(visible - model.acknowledged - pending)
        assert found.pending == len(visible & pending - model.acknowledged)
        assert found.held_back == len({each for each in there - visible if each >= found.position})
        uncommitted = set().union(*written.values())
        assert details_of(wire).uncommitted == len({each for each in uncommitted if each >= found.position})


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
        found, details = the_one(wire), details_of(wire)
        assert (found.log_start_offset, found.last_stable_offset, found.high_watermark) == (0, 10, 11)
        [opened] = details.held_by
        assert (opened.transactional_id, opened.first_offset) == (handle.name, 10)
        assert opened.open_for_ms >= 0
        assert (found.name, found.subscription_type, found.position) == ("s", "Shared", 0)
        assert found.created_ms > 0
        assert (found.left, found.pending, found.held_back) == (3, 4, 1)
        assert details.acknowledged_runs == ((2, 3), (5, 5))
        [pending] = details.pending
        assert (pending.transaction, pending.before, pending.runs) == (handle.name, 2, ((7, 8),))
        assert details.properties == {"team": "blue"}
        assert details.waits == (WaitReason.NO_CONSUMER, WaitReason.PENDING, WaitReason.HELD_BACK)

    def test_consumers_and_what_they_hold(self, broker: Front, wire: Wire) -> None:
        for _ in range(4):
            produce(wire, batch(b"v"))
        one = Subscriber(broker)
        one.connect(1, name="a", permits=3)
        one.connect(2, name="b")
        assert the_one(wire).consumer_count == 2
        found = details_of(wire)
        shown = {each.name: (each.permits, each.held, each.is_active) for each in found.consumers}
        assert shown == {"a": (0, 3, False), "b": (0, 0, False)}
        assert (found.noted_entries, found.waiting_entries, found.redelivered_entries) == (3, 0, 0)
        assert found.waits == (WaitReason.NO_PERMITS,)
        one.redeliver(1)
        found = details_of(wire)
        assert (found.noted_entries, found.waiting_entries) == (3, 3)
        assert (found.redelivered_entries, found.most_redeliveries) == (3, 1)

    def test_messages_that_cannot_be_read_are_a_reason(
        self, broker: Front, wire: Wire, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        Subscriber(broker, "s").connect(1, permits=1)
        monkeypatch.setattr(broker.engine.dispatcher, "unread", {(PartitionId(0), "s")})
        assert details_of(wire).waits == (WaitReason.UNREADABLE,)

    def test_a_list_has_no_details(self, broker: Front, wire: Wire) -> None:
        Subscriber(broker).connect(1, name="a")
        [found] = asking.subscriptions(wire, has_details=False).subscriptions
        assert (found.consumer_count, found.details) == (1, None)

    def test_a_readers_subscription_is_shown_too(self, broker: Front, wire: Wire) -> None:
        Subscriber(broker, "reader", kind=SubscriptionType.EXCLUSIVE, durable=False).connect(1)
        Subscriber(broker, "s")
        shown = [(each.name, each.is_durable) for each in asking.subscriptions(wire).subscriptions]
        assert shown == [("reader", False), ("s", True)]

    @pytest.mark.parametrize("level", IsolationLevel)
    def test_its_isolation_level_is_shown(self, broker: Front, wire: Wire, level: IsolationLevel) -> None:
        Subscriber(broker, durable=False, isolation_level=level)
        assert the_one(wire).reads_uncommitted is (level is IsolationLevel.READ_UNCOMMITTED)

    def test_records_that_were_deleted_are_not_left(self, broker: Front, wire: Wire) -> None:
        produce(wire, batch(*[b"v"] * 4))
        Subscriber(broker)
        partition = k21_delete_records.DeleteRecordsPartition(partition_index=0, offset=3)
        topic = k21_delete_records.DeleteRecordsTopic(name="t", partitions=[partition])
        wire.ask(k21_delete_records.DeleteRecordsRequest(topics=[topic], timeout_ms=1_000), 2)
        assert (the_one(wire).position, the_one(wire).left) == (3, 1)


class TestPages:
    @pytest.fixture(autouse=True)
    def several(self, broker: Front, wire: Wire) -> None:
        create(wire, "u")
        for place in [("t", 1, "b"), ("u", 0, "a"), ("t", 0, "b"), ("t", 1, "a"), ("t", 0, "a")]:
            Subscriber(broker, place[2], topic=place[0], partition=place[1])

    @pytest.mark.parametrize("limit", [1, 2, 3, 5, 9])
    def test_each_is_shown_once_in_order(self, wire: Wire, limit: int) -> None:
        found: list[Any] = []
        after: Place | None = None
        while True:
            answer = asking.subscriptions(wire, most=limit, after=after)
            assert len(places(answer)) <= limit
            found += places(answer)
            after = found[-1]
            if answer.end is None:
                break
        assert found == [("t", 0, "a"), ("t", 0, "b"), ("t", 1, "a"), ("t", 1, "b"), ("u", 0, "a")]

    def test_a_page_goes_on_where_its_last_one_is_gone(self, broker: Front, wire: Wire) -> None:
        last = places(asking.subscriptions(wire, most=2))[-1]
        Subscriber(broker, "b").delete()
        assert places(asking.subscriptions(wire, after=last))[0] == ("t", 1, "a")

    def test_a_page_ends_when_much_was_looked_at(
        self, wire: Wire, broker: Front, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        produce(wire, batch(*[b"v"] * 9))
        Subscriber(broker, "a").acknowledge((2, 2), (4, 4), (6, 6))
        monkeypatch.setattr("exacta.kafka.views.subscriptions.MOST_SIZE", 3)
        answer = asking.subscriptions(wire)
        assert places(answer) == [("t", 0, "a")]
        assert answer.end is not None

    def test_a_page_looks_at_so_many_partitions_and_may_be_empty(
        self, wire: Wire, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("exacta.kafka.views.subscriptions.MOST_PARTITIONS", 1)
        first = asking.subscriptions(wire)
        assert ({each[:2] for each in places(first)}, first.end is None) == ({("t", 0)}, False)
        second = asking.subscriptions(wire, after=first.end)
        assert {each[:2] for each in places(second)} == {("t", 1)}

    def test_topics_partitions_and_names(self, wire: Wire) -> None:
        only_b = asking.subscriptions(wire, names=("b", "c"))
        assert places(only_b) == [("t", 0, "b"), ("t", 1, "b")]
        one = asking.subscriptions(wire, topics=("t", "u"), partitions=(1,))
        assert places(one) == [("t", 1, "a"), ("t", 1, "b")]

    def test_a_topic_that_is_not_there(self, wire: Wire) -> None:
        assert places(asking.subscriptions(wire, topics=("v", "u"))) == [("u", 0, "a")]


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
    assert the_one(wire).left == 20
    assert len(turns) >= 7
