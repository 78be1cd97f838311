"""The events of groups and of their offsets."""

from typing import ClassVar

from msgspec import field

from exacta.core.commands.groups import OffsetToCommit
from exacta.core.event import Event
from exacta.core.state.classic_membership import Membership
from exacta.core.state.consumer_membership import ConsumerGroup, ConsumerMember, SubscribedTopic
from exacta.core.values.consumer_groups import TopicPartition


class OffsetsCommitted(Event, frozen=True, kw_only=True, array_like=True):
    """Offsets of a group, outside any transaction."""

    group_id: str
    offsets: tuple[OffsetToCommit, ...]
    at_ms: int


class MembershipChanged(Event, frozen=True, kw_only=True, array_like=True):
    """Volatile: the group's membership is this now."""

    durable: ClassVar[bool] = False
    group_id: str
    membership: Membership


class MemberSeen(Event, frozen=True, kw_only=True, array_like=True):
    """Volatile: the member's session lasts until `deadline_ms`."""

    durable: ClassVar[bool] = False
    group_id: str
    member_id: str
    deadline_ms: int


class MemberDue(Event, frozen=True, kw_only=True, array_like=True):
    """Volatile: a member that speaks the classic protocol in a group of the other one must join or sync until then.

    None: it has.
    """

    durable: ClassVar[bool] = False
    group_id: str
    member_id: str
    due_ms: int | None


class GroupEmptied(Event, frozen=True, kw_only=True, array_like=True):
    """Volatile: the group's last member is gone."""

    durable: ClassVar[bool] = False
    group_id: str
    at_ms: int


class GroupDeleted(Event, frozen=True, kw_only=True, array_like=True):
    """The group is gone with its offsets, those of open transactions included."""

    group_id: str
    expired_at_ms: int = 0
    """The time at which nobody had used the group for too long; 0 where a client has deleted it."""


class OffsetsDeleted(Event, frozen=True, kw_only=True, array_like=True):
    """The group has no offsets of these partitions any more; `pending` ones of transactions are gone, too."""

    group_id: str
    partitions: tuple[tuple[str, int], ...]
    pending: bool = False


class GroupEpochsReserved(Event, frozen=True, kw_only=True, array_like=True):
    """Groups may have epochs and generations below this one; after a restart they go on with it (decision 0012)."""

    end_epoch: int


class ConsumerGroupChanged(Event, frozen=True, kw_only=True, array_like=True):
    """Volatile: the group of the consumer protocol has looked at the topics again, and found what it knew."""

    durable: ClassVar[bool] = False
    group_id: str
    group: ConsumerGroup


class GroupSettled(Event, frozen=True, kw_only=True, array_like=True):
    """A rebalance of the classic protocol has ended, and the group is this now; None: it has no members any more.

    It is written, too, where a static member's successor takes its place without a rebalance. And it makes a classic
    group of one of the consumer protocol, whose remaining members all speak the classic one.
    """

    group_id: str
    membership: Membership | None


class ConsumerGroupUpdated(Event, frozen=True, kw_only=True, array_like=True):
    """A group of the consumer protocol has changed: these members and targets are new, and those of `gone` have left.

    It also makes such a group of a classic one, with that one's members. No other event is needed for this.

    `topics` and `matched` are None where they are as they were. What is a set in the group is in order here, so that
    the same history has the same bytes.
    """

    group_id: str
    epoch: int
    target_epoch: int
    assignor: str
    topics_version: tuple[int, int]
    members: tuple[ConsumerMember, ...] = ()
    gone: tuple[str, ...] = ()
    target: dict[str, tuple[TopicPartition, ...]] = field(default_factory=dict)
    topics: dict[str, SubscribedTopic] | None = None
    matched: dict[str, tuple[str, ...]] | None = None
