"""Random histories of a group whose members come and go with both protocols: no partition has two readers."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from exacta.core.rejections import Rejection
from exacta.core.state.classic_membership import NOBODY
from exacta.core.values.classic_groups import Phase
from tests.core.groups.consumer.members import Consumer
from tests.core.groups.mixed import REBALANCE_MS, SESSION_MS, Classic
from tests.core.world import World
from tests.shares import examples

CLASSIC, CONSUMERS = ("a", "b", "c"), ("x", "y")
STATIC = {"c": "i", "y": "i"}
PARTITIONS = 5


class MigrationMachine(RuleBasedStateMachine):
    """Clients of both protocols that are slow, miss answers, come and go; time, and crashes.

    A classic client gives everything up before it joins again. What a client reads is its own while the broker takes
    its commits: then nobody else may read it.
    """

    @initialize()
    def begin(self) -> None:
        self.world = World()
        self.world.topic(partition_count=PARTITIONS)
        self.classic = {name: self.new_classic(name) for name in CLASSIC}
        self.consumers = {name: self.new_consumer(name) for name in CONSUMERS}
        self.lives = 0

    def new_classic(self, name: str) -> Classic:
        return Classic(self.world, name, "t", instance_id=STATIC.get(name))

    def new_consumer(self, name: str) -> Consumer:
        return Consumer(self.world, name, "t", instance_id=STATIC.get(name))

    @rule(name=st.sampled_from(CLASSIC))
    def classic_step(self, name: str) -> None:
        self.classic[name].step()

    @rule(names=st.sets(st.sampled_from(CLASSIC), min_size=1), times=st.integers(2, 6))
    def some_go_on(self, names: set[str], times: int) -> None:
        for _ in range(times):
            for name in sorted(names):
                self.classic[name].step()

    @rule(name=st.sampled_from(CLASSIC))
    def classic_joins(self, name: str) -> None:
        client = self.classic[name]
        if client.waits is None:
            client.join()

    @rule(name=st.sampled_from(CLASSIC))
    def an_answer_to_a_join_is_lost(self, name: str) -> None:
        client = self.classic[name]
        if client.waits is None:
            before = client.member_id, client.generation
            client.join()
            client.waits, client.led = None, None
            client.member_id, client.generation = before

    @rule(name=st.sampled_from(CLASSIC))
    def classic_leaves(self, name: str) -> None:
        client = self.classic[name]
        if client.member_id:
            client.leave()

    @rule(name=st.sampled_from(CLASSIC))
    def classic_starts_anew(self, name: str) -> None:
        self.lives += 1
        self.classic[name] = fresh = self.new_classic(name)
        fresh.name = f"{name}{self.lives}"

    @rule(name=st.sampled_from(CONSUMERS))
    def consumer_step(self, name: str) -> None:
        self.consumers[name].step()

    @rule(name=st.sampled_from(CONSUMERS))
    def consumer_beats(self, name: str) -> None:
        self.consumers[name].beat()

    @rule(name=st.sampled_from(CONSUMERS))
    def consumer_takes(self, name: str) -> None:
        client = self.consumers[name]
        if not client.missed:  # it has told the broker that it owns less
            client.owned = client.shall_own

    @rule(name=st.sampled_from(CONSUMERS))
    def an_answer_to_a_heartbeat_is_lost(self, name: str) -> None:
        self.consumers[name].miss()

    @rule(name=st.sampled_from(CONSUMERS), epoch=st.sampled_from([-1, -2]))
    def consumer_leaves(self, name: str, epoch: int) -> None:
        client = self.consumers[name]
        client.leave(epoch if client.instance_id is not None else -1)
        self.lives += 1
        self.consumers[name] = fresh = self.new_consumer(name)
        fresh.member_id = f"{name}{self.lives}"

    @rule(ms=st.sampled_from([1, REBALANCE_MS, SESSION_MS, 45_000]))
    def pass_time(self, ms: int) -> None:
        self.world.pass_time(ms)

    @rule()
    def crash(self) -> None:
        self.world.crash()
        for client in self.classic.values():
            client.waits = None  # its connection is gone

    @invariant()
    def a_group_is_of_one_protocol(self) -> None:
        if not hasattr(self, "world"):
            return
        self.world.check()
        state = self.world.state
        assert not state.volatile.memberships.keys() & state.volatile.consumer_groups.keys()
        assert not state.settled.keys() & state.settled_consumers.keys()

    @invariant()
    def no_partition_has_two_readers(self) -> None:
        if not hasattr(self, "world"):
            return
        owned: list[int] = []
        for client in self.classic.values():
            if client.member_id and client.owned and client.generation > 0 and self.is_taken(client):
                owned += [index for _, index in client.owned]
        for consumer in self.consumers.values():
            if consumer.epoch > 0:
                indexes = (index for _, index in consumer.owned)
                owned += [each for each in indexes if not isinstance(consumer.commit(partition=each), Rejection)]
        assert len(owned) == len(set(owned)), owned

    def is_taken(self, client: Classic) -> bool:
        return client.commit() not in (Rejection.UNKNOWN_MEMBER_ID, Rejection.ILLEGAL_GENERATION)

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        everybody: list[Classic | Consumer] = [*self.classic.values(), self.consumers["x"]]
        for round_number in range(40):
            for client in everybody:
                client.step()
            if round_number < 20:
                self.world.pass_time(SESSION_MS // 4)
        present = self.world.state.volatile.consumer_groups["g"]
        assert sum(len(member.assigned) for member in present.members.values()) == PARTITIONS
        assert all(present.is_reconciled(member) for key, member in present.members.items() if key not in self.absent())
        self.consumers["x"].leave()
        for round_number in range(40):
            for client in self.classic.values():
                client.step()
            if round_number < 20:
                self.world.pass_time(SESSION_MS // 4)
        gone = self.world.state.volatile.memberships.get("g", NOBODY)
        assert gone.phase is Phase.STABLE or self.absent()

    def absent(self) -> set[str]:
        """Return the members that have left for a while, or that nobody hears of."""
        known = {client.member_id for client in self.classic.values()}
        known |= {client.member_id for client in self.consumers.values()}
        group = self.world.state.volatile.consumer_groups.get("g")
        return set() if group is None else group.members.keys() - known | {"y"}


TestMigration = MigrationMachine.TestCase
TestMigration.settings = settings(max_examples=examples(200), stateful_step_count=40)
