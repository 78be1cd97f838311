"""Random histories of subscriptions and handles: every invariant after every step, and a promise kept over crashes."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from exacta.core.commands import DeleteRecords, Skip, Trim
from exacta.core.ids import Offset, PartitionId
from exacta.core.replies import DONE
from tests.core.subscriptions.consumer import Consumer
from tests.core.world import SMALL, Handle, World
from tests.shares import examples

OFFSETS = st.integers(0, 24)
RUNS = st.lists(st.tuples(OFFSETS, st.integers(0, 3)), min_size=1, max_size=3)


class SubscriptionMachine(RuleBasedStateMachine):
    """Two subscriptions of a partition, which come and go; transactions that acknowledge, end, time out or are lost."""

    handles = Bundle("handles")

    @initialize()
    def begin(self) -> None:
        self.world = World(SMALL)
        self.world.topic(partition_count=1)
        self.consumers = [Consumer(self.world, name) for name in ("s", "u")]
        self.promised: list[set[int]] = [set(), set()]
        """The messages of each subscription that are acknowledged for good, as their clients were told."""
        self.inside: dict[tuple[int, int], set[int]] = {}

    @rule(target=handles, timeout_ms=st.sampled_from([50, 1_000]))
    def begin_handle(self, timeout_ms: int) -> Handle:
        return self.world.handle(timeout_ms)

    @rule(handle=handles, count=st.integers(1, 3))
    def write(self, handle: Handle, count: int) -> None:
        handle.append(count=count)

    @rule(which=st.integers(0, 1), begin=st.sampled_from([-1, -2]))
    def subscribe(self, which: int, begin: int) -> None:
        self.consumers[which].subscribe(begin)

    @rule(which=st.integers(0, 1), entries=RUNS, soon=st.booleans())
    def acknowledge(self, which: int, entries: list[tuple[int, int]], soon: bool) -> None:
        pairs = [(first, first + more) for first, more in entries]
        if self.consumers[which].acknowledge(*pairs, soon=soon) == DONE and not soon:
            self.promised[which] |= {message for first, last in pairs for message in range(first, last + 1)}

    @rule(which=st.integers(0, 1), before=OFFSETS)
    def acknowledge_before(self, which: int, before: int) -> None:
        if self.consumers[which].acknowledge_before(before) == DONE:
            self.promised[which] |= set(range(before))

    @rule(which=st.integers(0, 1), handle=handles, entries=RUNS, may_repeat=st.booleans())
    def acknowledge_inside(self, which: int, handle: Handle, entries: list[tuple[int, int]], may_repeat: bool) -> None:
        pairs = [(first, first + more) for first, more in entries]
        if self.consumers[which].acknowledge(*pairs, inside=handle, may_repeat=may_repeat) == DONE:
            held = self.inside.setdefault((handle.transaction_id, which), set())
            held |= {message for first, last in pairs for message in range(first, last + 1)}

    @rule(which=st.integers(0, 1), handle=handles, before=OFFSETS)
    def acknowledge_before_inside(self, which: int, handle: Handle, before: int) -> None:
        if self.consumers[which].acknowledge_before(before, inside=handle) == DONE:
            self.inside.setdefault((handle.transaction_id, which), set()).update(range(before))

    @rule(handle=handles, commit=st.booleans())
    def end(self, handle: Handle, commit: bool) -> None:
        was_open = handle.transaction_id in self.world.state.transactions
        if handle.end(commit=commit) == DONE and was_open and commit:
            for which in (0, 1):
                self.promised[which] |= self.inside.get((handle.transaction_id, which), set())

    @rule(which=st.integers(0, 1), to=OFFSETS)
    def seek(self, which: int, to: int) -> None:
        if self.consumers[which].seek(to) == DONE:
            self.forget(which)

    @rule(which=st.integers(0, 1))
    def unsubscribe(self, which: int) -> None:
        if self.consumers[which].unsubscribe() == DONE:
            self.forget(which)

    @rule(before=OFFSETS)
    def delete_records(self, before: int) -> None:
        self.world.send(DeleteRecords(topic="t", partition=0, before_offset=before))

    @rule(before=OFFSETS)
    def trim(self, before: int) -> None:
        self.world.send(Trim(topic="t", partition=0, before_offset=before))

    @rule(which=st.sampled_from([None, 0, 1]), before=OFFSETS)
    def skip(self, which: int | None, before: int) -> None:
        name = None if which is None else self.consumers[which].name
        there = self.world.state.partitions[PartitionId(0)].subscriptions
        if self.world.send(Skip(topic="t", partition=0, before=Offset(before), subscription=name)) == DONE:
            for number, consumer in enumerate(self.consumers):
                if which in (None, number) and consumer.name in there:
                    self.promised[number] |= set(range(before))

    @rule()
    def pass_time(self) -> None:
        self.world.pass_time(60)

    @rule(machine_stops=st.booleans())
    def crash(self, machine_stops: bool) -> None:
        self.world.crash(machine_stops=machine_stops)

    def forget(self, which: int) -> None:
        """Nothing is promised of a subscription that was moved or deleted, nor of what is still pending in it."""
        self.promised[which].clear()
        for (_, subscription), messages in self.inside.items():
            if subscription == which:
                messages.clear()

    @invariant()
    def all_hold(self) -> None:
        self.world.check()
        partition = self.world.state.partitions[PartitionId(0)]
        for which, consumer in enumerate(self.consumers):
            if consumer.name in partition.subscriptions:
                lost = {each for each in self.promised[which] if consumer.state_of(each) != "acknowledged"}
                assert not lost, f"{lost} of {consumer.name} were acknowledged"


TestSubscriptionMachine = SubscriptionMachine.TestCase
TestSubscriptionMachine.settings = settings(max_examples=examples(150), stateful_step_count=40, deadline=None)
