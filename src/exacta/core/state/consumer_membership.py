"""The members of a group of the consumer protocol (KIP-848): frozen data. The rules are in `core.groups.consumer`.

A change makes a new `ConsumerGroup`, and is durable (`consumer_updates`). Members are written to the journal as they
are: a field may be added only at the end and with a default.
"""

from enum import IntEnum

from msgspec import Struct

from exacta.core.ids import NO_PRINCIPAL, PrincipalName
from exacta.core.values.consumer_groups import JOINING_EPOCH, GroupPhase, TopicPartition


class MemberPhase(IntEnum):
    """The progress of a member on its way to its target. The numbers are written to the journal."""

    STABLE = 0
    UNREVOKED = 1
    """The member has partitions that it must give up first."""
    UNRELEASED = 2
    """The member waits for partitions that others have not given up."""


class ClassicTerms(Struct, frozen=True, kw_only=True, array_like=True):
    """The words of a member that speaks the classic protocol. The first protocol is the one that it is told."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


class ConsumerMember(Struct, frozen=True, kw_only=True, array_like=True):
    """One member. What it has been told to own is `assigned`, what it must give up `revoking`.

    Both say of each partition in which epoch it was assigned (KIP-1251). `revoke_by_ms` is when a member that gives
    nothing up is out. `classic`: the member speaks the classic protocol, and its epoch is its generation.
    """

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topics: frozenset[str] = frozenset()
    pattern: str = ""
    assignor: str = ""
    epoch: int = JOINING_EPOCH
    previous_epoch: int = JOINING_EPOCH
    phase: MemberPhase = MemberPhase.STABLE
    assigned: dict[TopicPartition, int] = {}
    revoking: dict[TopicPartition, int] = {}
    revoke_by_ms: int = 0
    classic: ClassicTerms | None = None
    principal: PrincipalName = NO_PRINCIPAL

    @property
    def held(self) -> set[TopicPartition]:
        """Return the partitions that nobody else may have."""
        return self.assigned.keys() | self.revoking.keys()


class SubscribedTopic(Struct, frozen=True, array_like=True):
    """A topic that members subscribe to, as it was when the target was made."""

    topic_id: bytes
    partition_count: int


class ConsumerGroup(Struct, frozen=True, kw_only=True):
    """The group and its target: who shall own what, as of `target_epoch`.

    `static` maps instance ids to member ids. `topics` are those subscribed to, as of `topics_version`, and `matched`
    what each member's pattern names among them.
    """

    epoch: int
    target_epoch: int
    assignor: str = ""
    members: dict[str, ConsumerMember] = {}
    static: dict[str, str] = {}
    target: dict[str, frozenset[TopicPartition]] = {}
    topics: dict[str, SubscribedTopic] = {}
    topics_version: tuple[int, int] = (-1, -1)
    matched: dict[str, frozenset[str]] = {}

    def subscribed(self, member: ConsumerMember) -> frozenset[str]:
        """Return the topics that exist of those that a member subscribes to."""
        named = member.topics & self.topics.keys()
        if not member.pattern:
            return named
        return named | self.matched.get(member.pattern, frozenset())

    @property
    def phase(self) -> GroupPhase:
        """Return where the group stands."""
        if not self.members:
            return GroupPhase.EMPTY
        if self.epoch > self.target_epoch:
            return GroupPhase.ASSIGNING
        if all(self.is_reconciled(member) for member in self.members.values()):
            return GroupPhase.STABLE
        return GroupPhase.RECONCILING

    def is_reconciled(self, member: ConsumerMember) -> bool:
        """Return whether a member has what it shall have."""
        return member.phase is MemberPhase.STABLE and member.epoch == self.target_epoch
