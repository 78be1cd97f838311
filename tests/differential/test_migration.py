"""Random histories of a group with members of both protocols: the same answers and the same group on both brokers.

Runs as `test_consumer_groups.py` does, with members that speak the classic protocol beside. A classic group with one
member, or none, comes first. One member of the consumer protocol stays, so that no JoinGroup waits for others.
The assignor is `range`, whose outcome depends on the order of the members' ids, so that these are not drawn.
"""

from __future__ import annotations

import itertools
import struct
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from hypothesis import note
from hypothesis import strategies as st

from exacta.core.groups.consumer_words import read_assignment, write_assignment
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import (
    k08_offset_commit,
    k11_join_group,
    k12_heartbeat,
    k13_leave_group,
    k14_sync_group,
)
from tests.differential.agree import marks, on_both
from tests.differential.group_brokers import Broker
from tests.differential.group_steps import Beat, Member

pytestmark = marks

NAMES = {"p": None, "q": None, "s": "i"}
LONG_MS = 1_800_000
LED = [("t", 0), ("t", 2), ("u", 1)]
"""The partitions that a leader assigns to itself while the group is a classic one."""
Named = tuple[str, int]


@dataclass
class Classic:
    """The knowledge of a member that speaks the classic protocol: its id on each broker, and what both have told it."""

    ids: dict[int, str] = field(default_factory=dict)
    generation: int = -1
    owned: list[Named] = field(default_factory=list)


@dataclass(frozen=True)
class Step:
    """A request of such a member. `late` is added to the generation, `owns` says what it reports when it joins."""

    kind: str
    name: str
    late: int = 0
    owns: str = "nothing"
    topics: tuple[str, ...] = ("t",)
    protocols: tuple[str, ...] = ("range",)


names = st.sampled_from(sorted(NAMES))
late = st.sampled_from([0] * 8 + [-1, 1])
CLASSIC = st.builds(
    Step,
    kind=st.sampled_from(["join", "join", "join", "sync", "sync", "heartbeat", "heartbeat", "commit", "leave"]),
    name=names,
    late=late,
    owns=st.sampled_from(["nothing", "nothing", "told", "first"]),
    topics=st.sampled_from([("t",), ("t",), ("u",), ("t", "u")]),
    protocols=st.sampled_from([("range",)] * 4 + [("range", "roundrobin"), ("sticky",), ("roundrobin", "range")]),
)
BEATS = st.builds(
    Beat,
    member=st.sampled_from(["a", "a", "b", "c"]),
    epoch=st.sampled_from(["own"] * 6 + ["join"]),
    owned=st.sampled_from(["told", "told", "told", "first", "nothing"]),
    topics=st.sampled_from([None, None, None, ("t",), ("t", "u")]),
    instance=st.just("own"),
)
SEQUENCES = st.tuples(st.booleans(), st.lists(st.one_of(CLASSIC, CLASSIC, BEATS), max_size=25))


def subscription(topics: tuple[str, ...], owned: list[Named]) -> bytes:
    """Return what a consumer says when it joins."""
    said = b"".join(struct.pack(f">h{len(each)}s", len(each), each.encode()) for each in topics)
    return struct.pack(">hi", 1, len(topics)) + said + struct.pack(">i", -1) + write_assignment(0, owned)[2:-4]


def send(broker: Broker, number: int, step: Step, member: Classic) -> tuple[Any, ...]:
    """Send a step's request; return what came of it, without ids that the broker has drawn."""
    group, instance_id = broker.group, NAMES[step.name]
    # A member brings an id of its own, as it may in such a group; a static one is given one.
    member_id = step.name if instance_id is None else member.ids.get(number, "")
    generation = member.generation + step.late
    match step.kind:
        case "join":
            owned = {"told": member.owned, "first": member.owned[:1]}.get(step.owns, [])
            words = subscription(step.topics, owned)
            protocols = [k11_join_group.JoinGroupRequestProtocol(name=name, metadata=words) for name in step.protocols]
            joined = broker.wire.ask(
                k11_join_group.JoinGroupRequest(
                    group_id=group,
                    session_timeout_ms=LONG_MS,
                    rebalance_timeout_ms=LONG_MS,
                    member_id=member_id,
                    group_instance_id=instance_id,
                    protocol_type="consumer",
                    protocols=protocols,
                ),
                9,
            )
            if joined.error_code == ErrorCode.NONE:
                member.ids[number] = joined.member_id
            leads = joined.error_code == ErrorCode.NONE and joined.leader == joined.member_id
            return joined.error_code, joined.generation_id, joined.protocol_type, joined.protocol_name, leads
        case "sync":
            synced = broker.wire.ask(
                k14_sync_group.SyncGroupRequest(
                    group_id=group,
                    generation_id=generation,
                    member_id=member_id,
                    group_instance_id=instance_id,
                    protocol_type="consumer",
                    protocol_name=step.protocols[0],
                    assignments=[
                        k14_sync_group.SyncGroupRequestAssignment(
                            member_id=member_id, assignment=write_assignment(1, LED)
                        )
                    ],
                ),
                5,
            )
            return synced.error_code, synced.protocol_type, synced.protocol_name, bytes(synced.assignment)
        case "heartbeat":
            beat = k12_heartbeat.HeartbeatRequest(
                group_id=group, generation_id=generation, member_id=member_id, group_instance_id=instance_id
            )
            return (broker.wire.ask(beat, 4).error_code,)
        case "commit":
            entry = k08_offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
            commit = k08_offset_commit.OffsetCommitRequest(
                group_id=group,
                generation_id_or_member_epoch=generation,
                member_id=member_id,
                group_instance_id=instance_id,
                topics=[k08_offset_commit.OffsetCommitRequestTopic(name="t", partitions=[entry])],
            )
            return (broker.wire.ask(commit, 8).topics[0].partitions[0].error_code,)
        case _:
            identity = k13_leave_group.MemberIdentity(member_id=member_id, group_instance_id=instance_id)
            left = broker.wire.ask(k13_leave_group.LeaveGroupRequest(group_id=group, members=[identity]), 5)
            return left.error_code, [each.error_code for each in left.members]


def learn(step: Step, member: Classic, answer: tuple[Any, ...]) -> None:
    """Let a member know what both brokers have told it."""
    if step.kind == "join" and answer[0] == 0:
        member.generation = answer[1]
    elif step.kind == "sync" and answer[0] == 0:
        member.owned = list(read_assignment(answer[3]) or ())
    elif answer[0] == ErrorCode.UNKNOWN_MEMBER_ID or (step.kind == "leave" and answer[1] == [0]):
        member.ids, member.generation, member.owned = {}, -1, []


_numbers = itertools.count()


class Group:
    """One group on both brokers."""

    def __init__(self, brokers: tuple[Broker, Broker]) -> None:
        self.brokers = brokers
        self.classic: dict[str, Classic] = defaultdict(Classic)
        self.consumers: dict[str, Member] = defaultdict(Member)
        self.ids: dict[int, dict[str, str]] = {0: {}, 1: {}}

    def run(self, step: Step | Beat) -> None:
        """Send a step to both, and compare the answers, and the groups."""
        if isinstance(step, Beat):
            member = self.consumers[step.member]
            kafkas, ours = (broker.beat(step, member) for broker in self.brokers)
        else:
            classic = self.classic[step.name]
            kafkas, ours = (send(broker, number, step, classic) for number, broker in enumerate(self.brokers))
            for number, member_id in classic.ids.items():
                self.ids[number][member_id] = step.name
        note(f"{step}: {ours}")
        assert ours == kafkas, f"{step}: Kafka answers {kafkas}, Exacta {ours}"
        if isinstance(step, Beat):
            code, _, epoch, told = ours
            if code == 0 and epoch > 0:
                member.before, member.epoch = member.epoch, epoch
                member.told = member.told if told is None else told
            elif code != ErrorCode.UNRELEASED_INSTANCE_ID:
                member.epoch, member.told = 0, []
        else:
            learn(step, self.classic[step.name], ours)
        shown = [self.shown(number) for number in range(2)]
        assert shown[1] == shown[0], f"after {step} Kafka's group is {shown[0]}, Exacta's {shown[1]}"

    def shown(self, number: int) -> tuple[Any, ...]:
        """Return the group as it is described, with names for the ids that the broker has drawn."""
        code, state, epochs, assignor, members = self.brokers[number].describe()
        named = sorted((self.ids[number].get(each[0], each[0]), *each[1:]) for each in members)
        return code, state, epochs, assignor, named


@on_both(SEQUENCES, share=0.2)
def test_migration(brokers: tuple[Broker, Broker], sequence: tuple[bool, list[Step | Beat]]) -> None:
    is_classic_first, steps = sequence
    for broker in brokers:
        broker.begin(f"m{next(_numbers)}" if broker is brokers[0] else brokers[0].group)
    group = Group(brokers)
    if is_classic_first:
        for kind in ("join", "sync", "heartbeat"):
            group.run(Step(kind=kind, name="s"))
    group.run(Beat(member="a", epoch="join", owned="nothing", topics=("t", "u"), instance="own"))
    for step in steps:
        group.run(step)
    for name in [name for name, each in group.consumers.items() if each.epoch > 0]:
        group.run(Beat(member=name, epoch="leave", owned="nothing", topics=None, instance="own"))
    for name in sorted(group.classic):
        group.run(Step(kind="commit", name=name))
        group.run(Step(kind="heartbeat", name=name))
