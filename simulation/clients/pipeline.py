"""A program that consumes, transforms and produces: one group, outputs and offsets in one transaction (KIP-447)."""

import asyncio
import struct
from collections.abc import Sequence
from itertools import cycle
from math import inf
from typing import Any

from exacta.core.groups.consumer_words import read_assignment, write_assignment
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import (
    k11_join_group,
    k12_heartbeat,
    k13_leave_group,
    k14_sync_group,
    k68_consumer_group_heartbeat,
)
from exacta.protocol.kafka.messages.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from simulation.clients.connection import Disconnected
from simulation.clients.reading import fetch_request, shares
from simulation.clients.surroundings import Surroundings
from simulation.clients.transactional import REJOIN, Abort, Fenced, Producer
from simulation.group_use import SPARKS
from simulation.history import Outcome, Place, value_of

GROUP = "pipelines"
SESSION_MS = 8_000
REBALANCE_MS = 6_000
STALLS = 0.05
MOVES = 0.15
LEAVING_EPOCH = -1
STALL_SECONDS = (8.5, 13.0)
INPUTS: list[Place] = [("in", 0), ("in", 1)]
OUTPUTS: list[Place] = [("out", 0), ("out", 1)]


class Rejoin(Exception):
    """The group has changed."""


class Member:
    """One membership."""

    protocol_type = "simulation"
    words = b""

    def __init__(self, here: Surroundings, group: str = GROUP) -> None:
        self.group = group
        self._here = here
        self.member_id = ""
        self.generation = -1

    async def join(self) -> dict[Place, int]:
        """Join, get a share of the inputs, and the positions there."""
        while True:
            request = k11_join_group.JoinGroupRequest(
                group_id=self.group,
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=REBALANCE_MS,
                member_id=self.member_id,
                protocol_type=self.protocol_type,
                protocols=[k11_join_group.JoinGroupRequestProtocol(name="any", metadata=self.words)],
            )
            answer = await self._ask(request, 5, 30.0)
            if answer is None:
                continue
            if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = answer.member_id
            elif answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""
            elif answer.error_code == ErrorCode.NONE:
                self.member_id, self.generation = answer.member_id, answer.generation_id
                assigned = await self._sync(answer)
                if assigned is not None:
                    return await self.positions(assigned)
            else:
                await self._here.connection.back_off()

    async def _ask(self, request: Any, version: int, seconds: float) -> Any:
        try:
            return await self._here.connection.ask(request, version, seconds)
        except Disconnected:
            await self._here.connection.back_off()
            return None

    async def _sync(self, joined: Any) -> list[Place] | None:
        assignments = []
        if joined.leader == self.member_id:
            members = [each.member_id for each in joined.members]
            for number, member_id in enumerate(members):
                mine = self.written(INPUTS[number :: len(members)])
                assignments.append(k14_sync_group.SyncGroupRequestAssignment(member_id=member_id, assignment=mine))
        request = k14_sync_group.SyncGroupRequest(
            group_id=self.group, generation_id=self.generation, member_id=self.member_id, assignments=assignments
        )
        answer = await self._ask(request, 3, 30.0)
        if answer is None or answer.error_code != ErrorCode.NONE:
            return None
        return self.read(answer.assignment)

    def written(self, places: list[Place]) -> bytes:
        """Write an assignment."""
        return ",".join(str(INPUTS.index(place)) for place in places).encode()

    def read(self, assignment: bytes) -> list[Place]:
        """Read an assignment."""
        return [INPUTS[int(number)] for number in assignment.decode().split(",") if number]

    async def positions(self, places: list[Place]) -> dict[Place, int]:
        """Return where the group has come to, once no transaction holds an answer back."""
        while places:
            answer = await self._ask(offset_request(places), 7, 8.0)
            if answer is None:
                continue
            found = offsets_in(answer)
            if found is not None:
                return found
            await self._here.connection.back_off()
        return {}

    async def heartbeat(self) -> None:
        """Stay in the group; raise Rejoin."""
        await self.is_heard()

    async def is_heard(self) -> bool:
        """Stay in the group; return whether the broker says so. Raise Rejoin."""
        request = k12_heartbeat.HeartbeatRequest(
            group_id=self.group, generation_id=self.generation, member_id=self.member_id
        )
        answer = await self._ask(request, 3, 8.0)
        if answer is not None and answer.error_code != ErrorCode.NONE:
            if answer.error_code in REJOIN and answer.error_code != ErrorCode.REBALANCE_IN_PROGRESS:
                self.member_id = ""
            raise Rejoin
        return answer is not None

    async def leave(self) -> None:
        """Leave; the session ends it where nobody hears of that."""
        await self._ask(k13_leave_group.LeaveGroupRequest(group_id=self.group, member_id=self.member_id), 2, 8.0)


class SubscribedMember(Member):
    """One membership by the classic protocol, in the words of consumers: its group can move to the consumer protocol.

    It gives all partitions up before it joins again, as consumers of the assignor `range` do.
    """

    protocol_type = "consumer"
    words = struct.pack(">hih2sii", 1, 1, 2, INPUTS[0][0].encode(), -1, 0)

    def written(self, places: list[Place]) -> bytes:
        """Write an assignment."""
        return write_assignment(1, places)

    def read(self, assignment: bytes) -> list[Place]:
        """Read an assignment."""
        return list(read_assignment(assignment) or ())


class ConsumerMember(Member):
    """One membership by the consumer protocol (KIP-848): what it shall own comes with heartbeats."""

    def __init__(self, here: Surroundings, group: str = GROUP) -> None:
        super().__init__(here, group)
        self.member_id = f"{here.writer}-{here.chance.getrandbits(32):x}"
        self.generation = 0
        self._owned: list[k68_consumer_group_heartbeat.TopicPartitions] = []

    async def join(self) -> dict[Place, int]:
        """Join where it is no member; get the positions of what it owns."""
        while self.generation == 0:
            request = k68_consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
                group_id=self.group,
                member_id=self.member_id,
                rebalance_timeout_ms=REBALANCE_MS,
                subscribed_topic_names=[INPUTS[0][0]],
                topic_partitions=[],
            )
            if not self._hear(await self._ask(request, 0, 8.0)):
                await self._here.connection.back_off()
        return await self.positions([(INPUTS[0][0], index) for each in self._owned for index in each.partitions])

    async def is_heard(self) -> bool:
        """Stay in the group; raise Rejoin, also where it shall own something else."""
        owned = self._owned
        request = k68_consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
            group_id=self.group, member_id=self.member_id, member_epoch=self.generation, topic_partitions=owned
        )
        answer = await self._ask(request, 0, 8.0)
        if answer is not None and (not self._hear(answer) or self._owned != owned):
            raise Rejoin
        return answer is not None

    async def leave(self) -> None:
        """Leave; the session ends it where nobody hears of that."""
        request = k68_consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
            group_id=self.group, member_id=self.member_id, member_epoch=LEAVING_EPOCH
        )
        await self._ask(request, 0, 8.0)
        self.generation = 0

    def _hear(self, answer: Any) -> bool:
        if answer is None or answer.error_code != ErrorCode.NONE:
            self.generation, self._owned = 0, []
            return False
        self.generation = answer.member_epoch
        if answer.assignment is not None:
            self._owned = answer.assignment.topic_partitions
            for each in self._owned:
                each.partitions.sort()  # they come in the order of a set
        return True


def offset_request(places: list[Place], group: str = GROUP, *, stable: bool = True) -> OffsetFetchRequest:
    """Make an OffsetFetch of the pipelines' group, or another one."""
    topics: dict[str, list[int]] = {}
    for topic, partition in places:
        topics.setdefault(topic, []).append(partition)
    return OffsetFetchRequest(
        group_id=group,
        require_stable=stable,
        topics=[
            OffsetFetchRequestTopic(name=topic, partition_indexes=partitions) for topic, partitions in topics.items()
        ],
    )


def offsets_in(answer: Any) -> dict[Place, int] | None:
    """Return the offsets; None where they are not stable, or cannot be told."""
    if answer.error_code != ErrorCode.NONE:
        return None
    found: dict[Place, int] = {}
    for topic in answer.topics:
        for entry in topic.partitions:
            if entry.error_code != ErrorCode.NONE:
                return None
            found[topic.name, entry.partition_index] = max(0, entry.committed_offset)
    return found


async def pipeline(here: Surroundings) -> bool:
    """Consume, transform, produce, until the world is over; return whether another instance should go on."""
    return await _pipe(here, [Member])


async def consumer_pipeline(here: Surroundings) -> bool:
    """Do the same as a member by the consumer protocol."""
    return await _pipe(here, [ConsumerMember])


async def moving_pipeline(here: Surroundings) -> bool:
    """Do the same in a group whose members speak either protocol, and move to the other one now and then."""
    return await _pipe(here, here.chance.sample([SubscribedMember, ConsumerMember], 2))


async def _pipe(here: Surroundings, kinds: Sequence[type[Member]]) -> bool:
    """Be a member of the first kind; with several of them go on as one of the next kind now and then."""
    member, kinds_to_come = kinds[0](here), cycle([*kinds[1:], kinds[0]])
    producer = Producer(here)
    number = 0
    try:
        await producer.initialise()
        while not here.is_over():
            positions = await member.join()
            try:
                while not here.is_over():
                    await here.think(0.8)
                    await member.heartbeat()
                    number += 1
                    await _turn(here, producer, member, positions, number)
                    if len(kinds) > 1 and here.chance.random() < MOVES:
                        if here.chance.random() < 0.8:  # else its session ends
                            await member.leave()
                        member = next(kinds_to_come)(here)
                        break
            except Rejoin:
                pass
    except Fenced:
        return not here.is_superseded()
    return False


async def _stall(here: Surroundings) -> None:
    """Say nothing for so long that the group goes on without this member, which does not know."""
    await asyncio.sleep(here.chance.uniform(*STALL_SECONDS))


async def _turn(
    here: Surroundings, producer: Producer, member: Member, positions: dict[Place, int], number: int
) -> None:
    """Read a few records, and write for each one of their own: all of it, or nothing."""
    if not positions:
        return
    try:
        request = fetch_request(positions, committed=True, max_bytes=400, max_wait_ms=500)
        answer = await here.connection.ask(request, 11)
    except Disconnected:
        return
    found = [share for share in shares(answer, positions, committed=True) if share.error_code == ErrorCode.NONE]
    taken = [(share.place, offset) for share in found for offset, _ in share.records]
    ends = {share.place: share.next_offset for share in found if share.next_offset > positions[share.place]}
    if not taken:
        positions.update(ends)  # nothing but markers, and what was aborted
        return
    writing = here.history.begin(f"{here.writer}.{number}", Outcome.NO_COMMIT)
    batches: dict[Place, list[bytes]] = {}
    for k, ((topic, partition), offset) in enumerate(taken):
        value = value_of(writing.name, k) + f"|{topic}/{partition}/{offset}".encode()
        batches.setdefault(here.chance.choice(OUTPUTS), []).append(value)
    try:
        await producer.send(writing, list(batches.items()))
        if here.chance.random() < STALLS:
            await _stall(here)
        # The pipelines' group must not expire: what a Spark query writes beside its offsets keeps it.
        metadata = SPARKS[0] if here.history.retention_seconds < inf else ""
        await producer.send_offsets(GROUP, (member.member_id, member.generation), ends, metadata)
        if here.chance.random() < STALLS:
            await _stall(here)
        await producer.commit(writing)
        positions.update(ends)
    except Abort:
        await producer.abort(bump=True)
        raise Rejoin from None
