"""Groups of the consumer protocol in a world of their own, and clients that do what they are told."""

from typing import Any

from exacta.core.commands import CommitOffsets, ConsumerHeartbeat, OffsetToCommit
from exacta.core.ids import PrincipalName
from exacta.core.rejections import Rejection
from exacta.core.replies import ConsumerHeartbeatDone
from exacta.core.state.consumer_membership import ConsumerGroup, ConsumerMember
from exacta.core.values.consumer_groups import TopicPartition
from tests.core.world import World

REBALANCE_MS = 300


class Consumer:
    """One client: its id and epoch, what it owns, and what it last heard it shall own."""

    def __init__(
        self,
        world: World,
        member_id: str,
        *topics: str,
        instance_id: str | None = None,
        pattern: str | None = None,
        assignor: str | None = None,
        group_id: str = "g",
    ) -> None:
        self.world, self.member_id, self.group_id, self.instance_id = world, member_id, group_id, instance_id
        self.topics, self.pattern, self.assignor = topics, pattern, assignor
        self.epoch = 0
        self.missed = False
        self.owned: frozenset[TopicPartition] = frozenset()
        self.shall_own: frozenset[TopicPartition] = frozenset()

    def send(self, epoch: int, **more: Any) -> object:
        """Send a heartbeat that says just this."""
        return self.world.send(
            ConsumerHeartbeat(
                group_id=self.group_id,
                member_id=self.member_id,
                member_epoch=epoch,
                client_id="c",
                client_host="h",
                instance_id=self.instance_id,
                principal=PrincipalName(f"User:{self.member_id}"),
                **more,
            )
        )

    def join(self) -> object:
        """Join, or join again with nothing."""
        self.owned = frozenset()
        return self._heard(self._send_everything(0))

    def beat(self) -> object:
        """Say what is owned; do what is said. Who has missed an answer says everything, to be told everything."""
        if self.missed or self.epoch == 0:
            return self._heard(self._send_everything(self.epoch))
        return self._heard(self.send(self.epoch, owned=self.owned))

    def miss(self) -> None:
        """Do what `beat` does, but for hearing the answer."""
        self._send_everything(self.epoch)
        self.missed = True

    def _send_everything(self, epoch: int) -> object:
        return self.send(
            epoch,
            rebalance_timeout_ms=REBALANCE_MS,
            topics=frozenset(self.topics),
            pattern=self.pattern,
            assignor=self.assignor,
            owned=self.owned,
        )

    def subscribe(self, *topics: str) -> object:
        """Ask for other topics."""
        self.topics = topics
        if self.missed:
            return self.beat()
        return self._heard(self.send(self.epoch, topics=frozenset(topics), owned=self.owned))

    def _heard(self, reply: object) -> object:
        self.missed = False
        if isinstance(reply, ConsumerHeartbeatDone):
            self.epoch = reply.member_epoch
            if reply.assignment is not None:
                self.shall_own = reply.assignment
        return reply

    def give_up(self) -> None:
        """Stop reading what it shall not own any more."""
        self.owned &= self.shall_own

    def step(self) -> object:
        """Do what is said, report it, and do what is said then; a fenced client joins again."""
        self.owned = self.shall_own
        reply = self.beat()
        if isinstance(reply, Rejection):
            self.epoch, self.owned, self.shall_own = 0, frozenset(), frozenset()
            return self.join()
        self.owned = self.shall_own
        return reply

    def leave(self, epoch: int = -1) -> object:
        return self.send(epoch)

    @property
    def indexes(self) -> list[int]:
        """Which partitions it shall own, by index."""
        return sorted(index for _, index in self.shall_own)

    @property
    def state(self) -> ConsumerMember:
        return group_of(self.world, self.group_id).members[self.member_id]

    def commit(self, offset: int = 5, epoch: int | None = None, partition: int = 0, topic: str = "t") -> object:
        offsets = (OffsetToCommit(topic=topic, partition=partition, offset=offset),)
        generation = self.epoch if epoch is None else epoch
        return self.world.send(
            CommitOffsets(group_id=self.group_id, offsets=offsets, member_id=self.member_id, generation=generation)
        )


def group_of(world: World, group_id: str = "g") -> ConsumerGroup:
    return world.state.volatile.consumer_groups[group_id]


def settle(*consumers: Consumer) -> None:
    """Let the clients go on until everybody has what it shall have."""
    for _ in range(4 * len(consumers)):
        for consumer in consumers:
            consumer.step()
    for consumer in consumers:
        assert group_of(consumer.world, consumer.group_id).is_reconciled(consumer.state)
