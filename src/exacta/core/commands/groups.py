"""The commands of the members of groups, and of offsets."""

from typing import Any, ClassVar

from msgspec import Struct

from exacta.core.command import Command, Parked
from exacta.core.ids import (
    NO_GENERATION,
    NO_PRINCIPAL,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    PrincipalName,
    ProducerEpoch,
    ProducerId,
    TransactionId,
    TransactionVersion,
)
from exacta.core.promises import Promise
from exacta.core.values.consumer_groups import JOINING_EPOCH


class JoinGroup(Parked, frozen=True, kw_only=True):
    """Join a group or rejoin it; the answer waits for the other members.

    `new_member_id` is fresh entropy, used where `member_id` is empty. `knows_member_id_required`: the client can be
    told to join again under that id (KIP-394, JoinGroup v4). `subscription` are the topics that the member reads, None
    where that is not known. `instance_id` makes it a static member (KIP-345). `knows_skip_assignment`: as a leader it
    can be told that all have their assignments (KIP-814, JoinGroup v9).
    """

    group_id: str
    member_id: str
    new_member_id: str
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]
    knows_member_id_required: bool
    subscription: frozenset[str] | None = None
    instance_id: str | None = None
    knows_skip_assignment: bool = False
    principal: PrincipalName = NO_PRINCIPAL


class SyncGroup(Parked, frozen=True, kw_only=True):
    """Fetch the own assignment; the leader brings everybody's. Protocol and its type: None if not said (KIP-559)."""

    group_id: str
    member_id: str
    generation: int
    assignments: tuple[tuple[str, bytes], ...] = ()
    instance_id: str | None = None
    protocol_type: str | None = None
    protocol: str | None = None


class Heartbeat(Command, frozen=True, kw_only=True):
    """Say that the member lives."""

    promises: ClassVar[Promise] = Promise.NOTHING

    group_id: str
    member_id: str
    generation: int
    instance_id: str | None = None


class MemberToRemove(Struct, frozen=True, kw_only=True):
    """One member, by its id or, where that is empty, by its instance id alone (KIP-345)."""

    member_id: str = ""
    instance_id: str | None = None


class LeaveGroup(Command, frozen=True, kw_only=True):
    """Let members leave at once instead of by time-out."""

    group_id: str
    members: tuple[MemberToRemove, ...]


class ConsumerHeartbeat(Command, frozen=True, kw_only=True):
    """Join a group of the consumer protocol, go on in it, or leave (KIP-848); the epoch says which.

    None, and a time-out of -1, say nothing: it is as it was. `topics` are names, `pattern` is in RE2's syntax; `owned`
    are topic ids and partitions. Patterns do not match the topics that are `hidden` from this client.
    """

    group_id: str
    member_id: str
    member_epoch: int
    client_id: str
    client_host: str
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topics: frozenset[str] | None = None
    pattern: str | None = None
    assignor: str | None = None
    owned: frozenset[tuple[bytes, int]] | None = None
    hidden: frozenset[str] = frozenset()
    principal: PrincipalName = NO_PRINCIPAL
    rehearsed: Any = None
    """Its outcome on a scene (`Rehearsed`, in `core/groups/consumer/rehearsal.py`); None: it was not rehearsed."""

    @property
    def leaves(self) -> bool:
        """Return whether the member leaves, for good or for a while."""
        return self.member_epoch < JOINING_EPOCH

    @property
    def is_full(self) -> bool:
        """Return whether the client says everything, as after an error: it then wants to be told everything too."""
        subscribes = self.topics is not None or self.pattern is not None
        return self.rebalance_timeout_ms != -1 and subscribes and self.owned is not None


class ExpireConsumer(Command, frozen=True, kw_only=True):
    """Timer: remove a member of the consumer protocol that has not been heard of in the session time-out."""

    group_id: str
    member_id: str


class ExpireRevocation(Command, frozen=True, kw_only=True):
    """Timer: remove a member of the consumer protocol that has not given up in time what it must."""

    group_id: str
    member_id: str


class ExpireMember(Command, frozen=True, kw_only=True):
    """Timer: remove a member that has not been heard of in its session time-out."""

    group_id: str
    member_id: str


class ExpireRebalance(Command, frozen=True, kw_only=True):
    """Timer: go on without the members that did not join, or sync, in time."""

    group_id: str


class ExpireGroups(Command, frozen=True, kw_only=True):
    """Timer: forget groups that have had no members, and whose offsets have been idle, for too long.

    `begun_ms` is when the broker has started: what a group did before is not known. `next_group` is where the last look
    has stopped, in the order of the groups that have offsets, and then of the others.
    """

    begun_ms: int
    next_group: int = 0


# --- offsets ----------------------------------------------------------------------------------------------------------


class OffsetToCommit(Struct, frozen=True, kw_only=True, array_like=True):
    """One partition's position in a group, as its client gave it."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str = ""


class CommitOffsets(Command, frozen=True, kw_only=True):
    """Commit offsets outside any transaction. A caller outside the group's membership gives generation -1.

    `generation` is a member epoch where the group is one of the consumer protocol, which older versions of OffsetCommit
    do not know.
    """

    group_id: str
    offsets: tuple[OffsetToCommit, ...]
    member_id: str = ""
    generation: int = NO_GENERATION
    instance_id: str | None = None
    knows_member_epochs: bool = True


class CommitTransactionalOffsets(Command, frozen=True, kw_only=True):
    """Put offsets into the open transaction (TxnOffsetCommit), fenced by member and generation (KIP-447).

    The holder's pair names the transaction of a transactional id, and `transaction` the one of a handle.
    """

    promises: ClassVar[Promise] = Promise.WRITE

    group_id: str
    offsets: tuple[OffsetToCommit, ...]
    transactional_id: str = ""
    producer_id: ProducerId = NO_PRODUCER_ID
    producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH
    transaction: TransactionId | None = None
    member_id: str = ""
    generation: int = NO_GENERATION
    version: TransactionVersion = TransactionVersion.V1
    instance_id: str | None = None


class DeleteGroup(Command, frozen=True, kw_only=True):
    """Delete a group that nobody is a member of, with all of its offsets (DeleteGroups)."""

    group_id: str


class DeleteOffsets(Command, frozen=True, kw_only=True):
    """Delete a group's offsets of partitions that none of its members reads (OffsetDelete)."""

    group_id: str
    partitions: tuple[tuple[str, int], ...]
