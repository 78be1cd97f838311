"""Clients of the classic protocol that do as real consumers do, in a group that may get the other protocol."""

import struct
from itertools import count

from exacta.core.commands import (
    CommitOffsets,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    MemberToRemove,
    OffsetToCommit,
    SyncGroup,
)
from exacta.core.groups.consumer_words import read_assignment, write_assignment
from exacta.core.ids import Ticket
from exacta.core.rejections import Rejection
from exacta.core.replies import Joined, MembersLeft, Synced
from tests.core.world import World

SESSION_MS, REBALANCE_MS = 1_000, 300
_tickets = count(1)
Named = tuple[str, int]


def subscription(*topics: str, owned: frozenset[Named] = frozenset(), version: int = 1) -> bytes:
    """Return the words of a consumer that joins."""
    names = b"".join(struct.pack(f">h{len(each)}s", len(each), each.encode()) for each in topics)
    words = struct.pack(">hi", version, len(topics)) + names + struct.pack(">i", -1)
    return words + write_assignment(0, owned)[2:-4] if version else words


class Classic:
    """One client: what it was told, and what it reads. An eager one gives everything up before it joins again."""

    def __init__(
        self,
        world: World,
        name: str,
        *topics: str,
        instance_id: str | None = None,
        cooperative: bool = False,
        protocols: tuple[str, ...] = ("range",),
        group_id: str = "g",
    ) -> None:
        self.world, self.name, self.topics, self.instance_id = world, name, topics, instance_id
        self.cooperative, self.protocols, self.group_id = cooperative, protocols, group_id
        self.member_id, self.generation = "", -1
        self.owned: frozenset[Named] = frozenset()
        self.waits: Ticket | None = None
        self.led: Joined | None = None

    def join(self) -> object:
        """Join, or join again; None while others must join."""
        if not self.cooperative:
            self.owned = frozenset()
        ticket = Ticket(next(_tickets))
        words = subscription(*self.topics, owned=self.owned)
        reply = self.world.send(
            JoinGroup(
                ticket=ticket,
                group_id=self.group_id,
                member_id=self.member_id,
                new_member_id=self.name,
                client_id="c",
                client_host="h",
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=REBALANCE_MS,
                protocol_type="consumer",
                protocols=tuple((each, words) for each in self.protocols),
                subscription=frozenset(self.topics),
                knows_member_id_required=False,
                instance_id=self.instance_id,
                knows_skip_assignment=True,
            )
        )
        return self._joined(reply if reply is not None else self.world.woken.pop(ticket, None), ticket)

    def _joined(self, reply: object, ticket: Ticket | None = None) -> object:
        self.waits, self.led = (ticket if reply is None else None), None
        if isinstance(reply, Joined):
            self.member_id, self.generation, self.led = reply.member_id, reply.generation, reply
        elif isinstance(reply, Rejection):
            self._refused(reply)
        return reply

    def _refused(self, reply: Rejection) -> None:
        if reply in (Rejection.UNKNOWN_MEMBER_ID, Rejection.FENCED_INSTANCE_ID):
            self.member_id, self.owned = "", frozenset()
        if reply is not Rejection.REBALANCE_IN_PROGRESS:
            self.generation = -1

    def hear(self) -> object:
        """Take the answer that it waits for, if it has come."""
        reply = None if self.waits is None else self.world.woken.pop(self.waits, None)
        if reply is None:
            return None
        return self._synced(reply) if isinstance(reply, Synced) else self._joined(reply)

    def sync(self) -> object:
        """Fetch the assignment; a leader brings everybody's."""
        led = self.led
        assert led is not None
        ticket = Ticket(next(_tickets))
        reply = self.world.send(
            SyncGroup(
                ticket=ticket,
                group_id=self.group_id,
                member_id=self.member_id,
                generation=self.generation,
                instance_id=self.instance_id,
                protocol_type="consumer",
                protocol=led.protocol,
                assignments=self._assignments(led) if led.leader == self.member_id and not led.skip_assignment else (),
            )
        )
        self.led = None
        self.waits = ticket if reply is None else None
        return self._synced(reply if reply is not None else self.world.woken.get(ticket))

    def _assignments(self, led: Joined) -> tuple[tuple[str, bytes], ...]:
        topics = sorted(self.world.state.topics.items())
        partitions = [(name, index) for name, topic in topics for index in range(topic.partition_count)]
        names = sorted(key for key, _, _ in led.members)
        return tuple((name, write_assignment(1, partitions[k :: len(names)])) for k, name in enumerate(names))

    def _synced(self, reply: object) -> object:
        if isinstance(reply, Synced):
            self.waits = None
            told = read_assignment(reply.assignment)
            assert told is not None
            gives_up = self.owned - set(told)
            self.owned = frozenset(told)
            if gives_up and self.cooperative:
                self.generation = -1  # it joins again at once, and says what it has given up
        elif isinstance(reply, Rejection):
            self._refused(reply)
        return reply

    def beat(self) -> object:
        """Send a heartbeat."""
        reply = self.world.send(
            Heartbeat(
                group_id=self.group_id,
                member_id=self.member_id,
                generation=self.generation,
                instance_id=self.instance_id,
            )
        )
        if isinstance(reply, Rejection):
            self._refused(reply)
        return reply

    def step(self) -> None:
        """Do the next thing that a client does."""
        if self.waits is not None:
            self.hear()
        elif self.led is not None:
            self.sync()
        elif self.generation < 0 or self.beat() is Rejection.REBALANCE_IN_PROGRESS:
            self.join()

    def commit(self, generation: int | None = None) -> object:
        """Commit an offset."""
        offsets = (OffsetToCommit(topic="t", partition=0, offset=5),)
        return self.world.send(
            CommitOffsets(
                group_id=self.group_id,
                offsets=offsets,
                member_id=self.member_id,
                generation=self.generation if generation is None else generation,
                knows_member_epochs=False,
            )
        )

    def leave(self) -> Rejection | None:
        """Leave the group."""
        member = MemberToRemove(member_id=self.member_id)
        left = self.world.send(LeaveGroup(group_id=self.group_id, members=(member,)))
        assert isinstance(left, MembersLeft)
        self.member_id, self.generation, self.owned = "", -1, frozenset()
        self.led = self.waits = None
        return left.rejections[0]
