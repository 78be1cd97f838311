"""Groups with members, by the classic protocol: joins, syncs, heartbeats, leaves, offsets, and who looks at it all.

`age` says which of the member ids that a client was given in the group a request names (0 the last one, -1 none);
`late` is added to the generation that it was told last. Time never comes into it: sessions are long. Versions go as
far as the handlers do, up to those that name topics by their ids.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from exacta.kafka.handlers import HANDLERS
from exacta.protocol.kafka.apis import ApiKey
from tests.differential.steps import (
    CLIENTS,
    MEMBERS,
    CommitOffsets,
    End,
    Init,
    PlainOffsets,
    ReadOffsets,
    Step,
    ages,
)

UNREADABLE = "unreadable"
"""Instead of the topics of a subscription: bytes that are none."""


@dataclass(frozen=True, kw_only=True, repr=False)
class MemberStep(Step):
    """A request of a member, or of somebody who says so; of a static one where there is an instance id (KIP-345)."""

    group: str
    late: int = 0
    instance: str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Join(MemberStep):
    """JoinGroup; `topics` is what the member reads."""

    protocols: tuple[str, ...] = ("range",)
    protocol_type: str = "consumer"
    topics: str = "t"


@dataclass(frozen=True, kw_only=True, repr=False)
class Sync(MemberStep):
    """SyncGroup; who `assigns` brings assignments, leader or not."""

    assigns: bool = True
    protocol: str = "range"


@dataclass(frozen=True, kw_only=True, repr=False)
class Heartbeat(MemberStep):
    """Heartbeat."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Leave(MemberStep):
    """LeaveGroup; from version 3 on of `others` as well."""

    others: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, repr=False)
class CommitAsMember(MemberStep):
    """OffsetCommit."""

    partition: int
    offset: int


@dataclass(frozen=True, kw_only=True, repr=False)
class CommitInTransactionAsMember(CommitOffsets):
    """TxnOffsetCommit of a producer, with the offsets of a member."""

    member: str
    member_age: int = 0
    late: int = 0
    instance: str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class FetchOffsets(Step):
    """OffsetFetch of some partitions (one of which there is not), or of all."""

    group: str
    stable: bool
    everything: bool


@dataclass(frozen=True, kw_only=True, repr=False)
class DeleteOffsets(Step):
    """OffsetDelete."""

    group: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class DeleteGroups(Step):
    """DeleteGroups."""

    groups: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class DescribeGroup(Step):
    """DescribeGroups."""

    group: str


@dataclass(frozen=True, kw_only=True, repr=False)
class ListGroups(Step):
    """ListGroups."""

    states: tuple[str, ...]


# --- sequences --------------------------------------------------------------------------------------------------------


def versions(key: ApiKey, oldest: int, newest: int) -> st.SearchStrategy[int]:
    """Return the versions that both serve; Kafka's are from `oldest` to `newest`."""
    handler = HANDLERS[key]
    return st.integers(max(oldest, handler.min_version), min(newest, handler.max_version))


_joins = versions(ApiKey.JOIN_GROUP, 2, 9)
_syncs = versions(ApiKey.SYNC_GROUP, 0, 5)
_commits = versions(ApiKey.OFFSET_COMMIT, 2, 8)
_leaves = versions(ApiKey.LEAVE_GROUP, 0, 5)
_member = st.sampled_from(MEMBERS)
_group = st.sampled_from(("g", "g", "g", "h"))
_late = st.sampled_from([0] * 12 + [-1, 1])
_instance = st.sampled_from([None] * 3 + ["i", "i", "j"])
_who = {"client": _member, "group": _group, "age": ages}
_when = {**_who, "late": _late, "instance": _instance}
_protocols = st.sampled_from([("range",)] * 6 + [("range", "sticky"), ("sticky", "range"), ("sticky",), ()])
_topics = st.sampled_from(["t", "t", "t", "u", UNREADABLE])

_steps = [
    st.builds(Join, **_who, version=_joins, instance=_instance),
    st.builds(
        Join,
        **_who,
        version=_joins,
        protocols=_protocols,
        topics=_topics,
        protocol_type=st.sampled_from(["consumer"] * 8 + ["connect", ""]),
    ),
    st.builds(Sync, **_when, version=_syncs, assigns=st.booleans()),
    st.builds(Heartbeat, **_when, version=versions(ApiKey.HEARTBEAT, 0, 4)),
    st.builds(Leave, **_who, version=_leaves, instance=_instance, others=st.sampled_from([(), (), ("m",), ("n", "o")])),
    st.builds(
        CommitAsMember, **_when, version=_commits, partition=st.sampled_from([0, 1, 7]), offset=st.integers(20, 29)
    ),
    st.builds(
        CommitInTransactionAsMember,
        client=st.sampled_from(CLIENTS),
        version=st.sampled_from([3, 4, 5, 5, 5]),
        group=_group,
        offset=st.integers(0, 9),
        member=_member,
        member_age=ages,
        late=_late,
        instance=_instance,
    ),
    st.builds(End, client=st.sampled_from(CLIENTS), version=st.sampled_from([4, 5, 5]), commit=st.booleans()),
    st.builds(Init, client=st.sampled_from(CLIENTS), version=st.just(5)),
    st.builds(PlainOffsets, client=_member, version=_commits, group=_group, offset=st.integers(10, 19)),
    st.builds(ReadOffsets, client=_member, version=st.just(7), group=_group, stable=st.booleans()),
    st.builds(
        FetchOffsets,
        client=_member,
        version=versions(ApiKey.OFFSET_FETCH, 2, 9),
        group=_group,
        stable=st.booleans(),
        everything=st.booleans(),
    ),
    st.builds(
        DeleteOffsets,
        client=_member,
        version=st.just(0),
        group=_group,
        partitions=st.sampled_from([(0,), (1,), (0, 1), (7,), (0, 7)]),
    ),
    st.builds(
        DeleteGroups,
        client=_member,
        version=versions(ApiKey.DELETE_GROUPS, 0, 2),
        groups=st.sampled_from([("g",), ("h",), ("g", "h")]),
    ),
    st.builds(DescribeGroup, client=_member, version=versions(ApiKey.DESCRIBE_GROUPS, 0, 6), group=_group),
    st.builds(
        ListGroups,
        client=_member,
        version=versions(ApiKey.LIST_GROUPS, 0, 5),
        states=st.sampled_from([(), (), ("Stable",), ("empty", "PreparingRebalance"), ("Nonsense",), ("Dead",)]),
    ),
]


steps = st.one_of(_steps)
"""What members do, one by one."""


def _entry(client: str, group: str, version: int) -> list[Step]:
    join = Join(client=client, group=group, version=version)
    sync = Sync(client=client, group=group, version=0)
    return [join, join, sync] if version >= 4 else [join, sync]


def _static_entry(client: str, group: str, instance: str) -> list[Step]:
    join = Join(client=client, group=group, version=7, age=-1, instance=instance)
    return [join, Sync(client=client, group=group, version=3, instance=instance)]


def _rebalance(clients: list[str], group: str, joins: int) -> list[Step]:
    rejoin: list[Step] = [Join(client=client, group=group, version=joins) for client in clients]
    return [*rejoin, *rejoin, *(Sync(client=client, group=group, version=0) for client in clients)]


_pieces = st.one_of(
    steps.map(lambda step: [step]),
    steps.map(lambda step: [step]),
    steps.map(lambda step: [step]),
    st.builds(_entry, _member, _group, _joins),
    st.builds(_static_entry, _member, _group, st.sampled_from(["i", "j"])),
    st.builds(_rebalance, st.lists(_member, min_size=2, max_size=3, unique=True), _group, _joins),
)

sequences = st.lists(_pieces, min_size=1, max_size=20).map(lambda pieces: [step for piece in pieces for step in piece])
"""What members do, also as well as they should: enter, and form a generation together."""
