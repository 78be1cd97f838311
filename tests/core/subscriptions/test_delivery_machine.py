"""Random histories of delivery: what is delivered is free and shown, everything is delivered, keys keep order."""

from collections.abc import Iterable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from exacta.core.commands import DeleteRecords, Skip, Trim
from exacta.core.events import MessagesAcknowledged
from exacta.core.ids import ConsumerId, Offset, PartitionId
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, Delivering
from exacta.core.subscriptions.notices import ConsumerClosed
from exacta.core.values.runs import overlaps, subtract
from exacta.core.values.subscriptions import IN_ORDER, IsolationLevel, KeyShared, KeySharedMode, SubscriptionType
from tests.core.subscriptions.consumer import Consumer, runs
from tests.core.subscriptions.delivering import Dispatcher, key_of
from tests.core.subscriptions.test_keys import THIRDS
from tests.core.world import SMALL, Handle, World
from tests.shares import examples

PLENTY = 1_000
COMMITTED = IsolationLevel.READ_COMMITTED


class DeliveryMachine(RuleBasedStateMachine):
    """A subscription of any type with up to three consumers; handles that write and acknowledge; crashes.

    One that is not durable is there again as soon as it is needed, and may read uncommitted messages.
    """

    handles = Bundle("handles")

    @initialize(
        subscription_type=st.sampled_from([*SubscriptionType, SubscriptionType.KEY_SHARED]),
        kind=st.sampled_from([(True, COMMITTED), (False, COMMITTED), (False, IsolationLevel.READ_UNCOMMITTED)]),
        sticky=st.booleans(),
        out_of_order=st.booleans(),
        most_runs=st.sampled_from([2, SMALL.max_acknowledged_runs]),
    )
    def begin(
        self,
        subscription_type: SubscriptionType,
        kind: tuple[bool, IsolationLevel],
        sticky: bool,
        out_of_order: bool,
        most_runs: int,
    ) -> None:
        self.sticky = sticky and subscription_type is SubscriptionType.KEY_SHARED
        self.out_of_order = out_of_order
        self.thirds: dict[ConsumerId, int] = {}
        """The part of the hashes that each consumer has named, where hashes are named."""
        self.durable, level = kind
        limits = replace(SMALL, max_acknowledged_runs=most_runs) if self.durable else SMALL
        self.world = World(limits)
        self.world.topic(partition_count=1)
        self.dispatcher = Dispatcher(self.world, subscription_type, durable=self.durable, level=level)
        self.client = Consumer(self.world, durable=self.durable, level=level)

    @property
    def consumers(self) -> list[ConsumerId]:
        return list(self.dispatcher.sent)

    @rule(target=handles, timeout_ms=st.sampled_from([50, 1_000]))
    def begin_handle(self, timeout_ms: int) -> Handle:
        return self.world.handle(timeout_ms)

    @rule(handle=handles, count=st.integers(1, 3))
    def write_inside(self, handle: Handle, count: int) -> None:
        handle.append(count=count)

    @rule(count=st.integers(1, 3))
    def write(self, count: int) -> None:
        self.client.write(count)

    @rule(delay_ms=st.sampled_from([1, 70, 150]), count=st.integers(1, 2), handle=st.none() | handles)
    def write_delayed(self, delay_ms: int, count: int, handle: Handle | None) -> None:
        base = self.world.state.partitions[PartitionId(0)].next_offset
        if handle is None:
            self.client.write(count)
        else:
            handle.append(count=count)
        if self.world.state.partitions[PartitionId(0)].next_offset > base:
            self.dispatcher.deliver_at_ms[base] = self.world.now_ms + delay_ms

    @rule(removed=st.sets(st.integers(0, 4), min_size=1, max_size=4), handle=st.none() | handles)
    def write_compacted(self, removed: set[int], handle: Handle | None) -> None:
        """Write an entry of five messages, of which some are gone before anybody has seen it."""
        base = self.world.state.partitions[PartitionId(0)].next_offset
        if handle is None:
            self.client.write(5)
        else:
            handle.append(count=5)
        if self.world.state.partitions[PartitionId(0)].next_offset > base:
            self.dispatcher.gaps[base] = runs(*((base + each, base + each) for each in sorted(removed)))

    @rule(handle=handles, commit=st.booleans())
    def end(self, handle: Handle, commit: bool) -> None:
        handle.end(commit=commit)

    @precondition(lambda self: len(self.consumers) < 3)
    @rule(name=st.sampled_from("abc"), permits=st.sampled_from([0, 2, PLENTY]), priority=st.sampled_from([0, 0, 1]))
    def connect(self, name: str, permits: int, priority: int) -> None:
        alone = self.dispatcher.type is SubscriptionType.EXCLUSIVE and self.consumers
        if not alone:
            self.connect_one(name, permits, priority)

    def connect_one(self, name: str = "", permits: int = 0, priority: int = 0) -> ConsumerId:
        """Connect a consumer, which names the first part of the hashes that nobody has."""
        self.be_there()
        if not self.sticky:
            shared = KeyShared(out_of_order=self.out_of_order)
            return self.dispatcher.connect(name, permits, priority, shared)
        third = min({0, 1, 2} - {self.thirds[each] for each in self.consumers})
        shared = KeyShared(KeySharedMode.STICKY, (THIRDS[third],), self.out_of_order)
        consumer = self.dispatcher.connect(name, permits, priority, shared)
        self.thirds[consumer] = third
        return consumer

    def be_there(self) -> None:
        """Subscribe once more if the subscription is gone with its last consumer, or with a crash."""
        if not self.dispatcher.exists():
            assert not self.durable
            self.dispatcher.subscribe()

    @precondition(lambda self: self.consumers)
    @rule(data=st.data())
    def disconnect(self, data: st.DataObject) -> None:
        self.dispatcher.disconnect(data.draw(st.sampled_from(self.consumers)))

    @precondition(lambda self: self.consumers)
    @rule(data=st.data(), permits=st.integers(1, 4))
    def permit(self, data: st.DataObject, permits: int) -> None:
        self.dispatcher.permit(data.draw(st.sampled_from(self.consumers)), permits)

    @rule()
    def deliver(self) -> None:
        before = {who: len(sent) for who, sent in self.dispatcher.sent.items()}
        for who, each in self.dispatcher.pump():
            self.check_one(who, each)
        assert before.keys() == self.dispatcher.sent.keys()

    def check_one(self, who: ConsumerId, each: Delivering) -> None:
        assert each.free, "something is left of it"
        gaps = self.dispatcher.gaps.get(each.base, ())
        assert not any(overlaps(list(each.free), *gap) for gap in gaps), "what is gone is for nobody"
        if self.dispatcher.type not in IN_ORDER:
            assert self.dispatcher.deliver_at_ms.get(each.base, 0) <= self.world.now_ms, "its time has come"
        if self.sticky:
            assert THIRDS[self.thirds[who]][0] <= key_of(each.base) <= THIRDS[self.thirds[who]][1]
        is_ordered = self.dispatcher.type is SubscriptionType.KEY_SHARED and not self.out_of_order
        if is_ordered and not each.redeliveries:
            key = key_of(each.base)
            held = self.dispatcher.delivery
            assert held is not None
            holders = {entry.consumer for entry in held.entries.values() if entry.key == key} - {None}
            assert holders <= {who}, "nobody else has an entry of the key"

    @precondition(lambda self: any(self.dispatcher.sent.values()))
    @rule(data=st.data(), handle=st.none() | handles)
    def acknowledge(self, data: st.DataObject, handle: Handle | None) -> None:
        """Acknowledge what was sent, maybe long ago, and maybe for the second time."""
        sent = [each for sent in self.dispatcher.sent.values() for each in sent]
        self.dispatcher.acknowledge(data.draw(st.sampled_from(sent)), handle)

    @rule(offsets=st.tuples(st.integers(0, 20), st.integers(0, 2)), handle=st.none() | handles)
    def acknowledge_anything(self, offsets: tuple[int, int], handle: Handle | None) -> None:
        self.client.acknowledge((offsets[0], sum(offsets)), inside=handle)

    @rule(before=st.integers(0, 20), handle=st.none() | handles)
    def acknowledge_before(self, before: int, handle: Handle | None) -> None:
        self.client.acknowledge_before(before, inside=handle)

    @precondition(lambda self: any(self.dispatcher.sent.values()))
    @rule(data=st.data(), handle=handles)
    def acknowledge_up_to_what_came(self, data: st.DataObject, handle: Handle) -> None:
        consumer = data.draw(st.sampled_from([each for each, sent in self.dispatcher.sent.items() if sent]))
        last = data.draw(st.sampled_from(self.dispatcher.sent[consumer]))
        self.client.acknowledge_before(last.base + last.count, inside=handle, consumer_id=consumer)

    @precondition(lambda self: self.consumers)
    @rule(data=st.data(), bases=st.none() | st.lists(st.integers(0, 20), min_size=1, max_size=3))
    def redeliver(self, data: st.DataObject, bases: list[int] | None) -> None:
        self.dispatcher.redeliver(data.draw(st.sampled_from(self.consumers)), *(bases or ()))

    @rule(to=st.integers(0, 20))
    def seek(self, to: int) -> None:
        self.client.seek(to)

    @rule(before=st.integers(0, 20))
    def delete_records(self, before: int) -> None:
        self.world.send(DeleteRecords(topic="t", partition=0, before_offset=before))

    @rule(before=st.integers(0, 20))
    def trim(self, before: int) -> None:
        self.world.send(Trim(topic="t", partition=0, before_offset=before))

    @rule(before=st.integers(-1, 20), all_of_them=st.booleans())
    def skip(self, before: int, all_of_them: bool) -> None:
        name = None if all_of_them else "s"
        self.world.send(Skip(topic="t", partition=0, before=Offset(before), subscription=name))

    @rule()
    def pass_time(self) -> None:
        self.world.pass_time(60)

    @rule(machine_stops=st.booleans())
    def crash(self, machine_stops: bool) -> None:
        self.world.crash(machine_stops=machine_stops)
        self.dispatcher.sent.clear()

    @invariant()
    def all_hold(self) -> None:
        self.hear()
        self.world.check()
        delivery = self.dispatcher.delivery
        assert set(self.consumers) == (set() if delivery is None else {*delivery.consumers}), "nobody waits for nothing"
        if not self.durable:
            assert self.world.state.volatile.non_durable_subscriptions == self.dispatcher.exists()
            assert not any(isinstance(event, MessagesAcknowledged) for event in self.world.log)

    def hear(self) -> None:
        """Let consumers that are told of it be gone."""
        for consumer, notice in self.world.notices:
            if isinstance(notice, ConsumerClosed) and isinstance(consumer, int):
                del self.dispatcher.sent[ConsumerId(consumer)]
        self.world.notices.clear()

    def teardown(self) -> None:
        """In the end consumers that take everything have, or have acknowledged, all that is shown and free."""
        if not hasattr(self, "world"):
            return
        self.hear()
        self.world.pass_time(2_000)  # every transaction has ended
        self.hear()
        self.be_all_there()
        self.dispatcher.pump()
        self.check_left(each for sent in self.dispatcher.sent.values() for each in sent)  # without being asked for
        for consumer in self.consumers:
            self.dispatcher.redeliver(consumer)
        rounds = 1
        while not self.acknowledge_all():
            rounds += 1
            assert rounds < PLENTY
            for consumer in self.consumers:
                self.dispatcher.disconnect(consumer)
            self.be_all_there()
        assert rounds == 1 or self.world.state.limits is not SMALL, "markers fragment no cursor"
        self.world.check()

    def be_all_there(self) -> None:
        """Let there be consumers that take everything."""
        while not self.consumers or (self.sticky and len(self.consumers) < len(THIRDS)):
            self.connect_one()
        for consumer in self.consumers:
            self.dispatcher.permit(consumer, PLENTY)

    def acknowledge_all(self) -> bool:
        """Acknowledge what comes; return whether that was all. Who is refused connects again, as its front lets it."""
        while delivered := self.dispatcher.pump():
            self.check_left(each for _, each in delivered)
            for each in sorted((each for _, each in delivered), key=lambda each: each.base):
                answer = self.dispatcher.acknowledge(each)
                if answer == Rejection.LIMIT_REACHED:
                    return False
                assert answer == DONE
        subscription = self.dispatcher.subscription
        end = self.world.state.partitions[PartitionId(0)].next_offset
        assert (subscription.position, subscription.acknowledged) == (end, [])
        return True

    def check_left(self, delivered: Iterable[Delivering]) -> None:
        """Check that consumers have whatever is left, as far as delivery goes before the oldest is acknowledged."""
        found = {message for each in delivered for run in each.free for message in range(run[0], run[1] + 1)}
        delivery, subscription = self.dispatcher.delivery, self.dispatcher.subscription
        assert delivery is not None
        end = self.world.state.partitions[PartitionId(0)].next_offset
        if len(subscription.acknowledged) >= self.world.state.limits.max_acknowledged_runs:
            assert delivery.read_to > subscription.acknowledged[-1][1]
            end = delivery.read_to
        assert delivery.read_to == end
        for shown in self.dispatcher.shown(subscription.position, end):
            left = subscription.free(shown.base, Offset(shown.base + shown.count - 1))
            for gap in shown.gaps:
                subtract(left, *gap)
            assert {message for run in left for message in range(run[0], run[1] + 1)} <= found, shown


TestDeliveryMachine = DeliveryMachine.TestCase
TestDeliveryMachine.settings = settings(max_examples=examples(200), stateful_step_count=40, deadline=None)
