"""Random histories of a group of the consumer protocol: no partition is ever anybody's twice, and all settle."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from exacta.core.commands import DeleteTopic
from exacta.core.state.consumer_membership import ConsumerMember
from tests.core.groups.consumer.members import REBALANCE_MS, Consumer
from tests.core.world import World
from tests.shares import examples

NAMES = ("a", "b", "c", "d")
names = st.sampled_from(NAMES)
topics = st.sampled_from(["t", "u"])


class GroupMachine(RuleBasedStateMachine):
    """Clients that are slow, repeat themselves, come and go, and miss answers; time, topics, crashes."""

    @initialize()
    def begin(self) -> None:
        self.world = World()
        self.world.topic(partition_count=5)
        self.clients = {name: Consumer(self.world, name, "t", "u") for name in NAMES}
        self.epochs: dict[tuple[str, int], int] = {}
        self.incarnation = 0

    @rule(name=names)
    def join(self, name: str) -> None:
        self.clients[name].join()

    @rule(name=names)
    def beat(self, name: str) -> None:
        self.clients[name].beat()

    @rule(name=names)
    def an_answer_is_lost(self, name: str) -> None:
        self.clients[name].miss()

    @rule(name=names)
    def take(self, name: str) -> None:
        client = self.clients[name]
        client.owned = client.shall_own

    @rule(name=names)
    def give_up(self, name: str) -> None:
        self.clients[name].give_up()

    @rule(name=names, wanted=st.sets(topics))
    def resubscribe(self, name: str, wanted: set[str]) -> None:
        client = self.clients[name]
        client.topics = tuple(sorted(wanted))
        if client.epoch:
            client.subscribe(*client.topics)

    @rule(name=names)
    def leave(self, name: str) -> None:
        self.clients[name].leave()

    @rule(name=topics, count=st.integers(1, 4))
    def create(self, name: str, count: int) -> None:
        self.world.topic(name, count)

    @rule(name=topics)
    def delete(self, name: str) -> None:
        self.world.send(DeleteTopic(topic=name))

    @rule(ms=st.sampled_from([1, REBALANCE_MS, 45_000]))
    def pass_time(self, ms: int) -> None:
        self.world.pass_time(ms)

    @rule()
    def crash(self) -> None:
        """Members outlive it; only what is no member's any more must never be one's again."""
        members = self.members()
        self.world.crash()
        self.incarnation += 1
        assert self.members() == members
        self.epochs.update({(key, member.epoch): self.incarnation for key, member in members.items()})

    def members(self) -> dict[str, ConsumerMember]:
        group = self.world.state.volatile.consumer_groups.get("g")
        return {} if group is None else group.members

    @invariant()
    def every_partition_is_held_once_and_epochs_are_of_one_incarnation(self) -> None:
        group = self.world.state.volatile.consumer_groups.get("g") if hasattr(self, "world") else None
        if group is None:
            return
        self.world.check()
        held = [each for member in group.members.values() for each in (*member.assigned, *member.revoking)]
        assert len(held) == len(set(held))
        for member in group.members.values():
            assert -2 <= member.epoch <= group.target_epoch <= group.epoch < self.world.state.reserved_group_epoch
            if member.epoch > 0:
                assert self.epochs.setdefault((member.member_id, member.epoch), self.incarnation) == self.incarnation

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        for _ in range(12):
            for client in self.clients.values():
                client.step()
        group = self.world.state.volatile.consumer_groups["g"]
        assert all(group.is_reconciled(member) for member in group.members.values())
        read = {name for member in group.members.values() for name in member.topics}
        partitions = sum(
            self.world.state.topics[name].partition_count for name in read if name in self.world.state.topics
        )
        assert sum(len(member.assigned) for member in group.members.values()) == partitions
        for client in self.clients.values():
            assert client.shall_own == client.state.assigned.keys(), "everybody knows what it shall own"


TestGroup = GroupMachine.TestCase
TestGroup.settings = settings(max_examples=examples(200), stateful_step_count=40)
