"""The check of members that commit or read offsets (KIP-447, invariant 6)."""

from exacta.core.commands import CommitOffsets, CommitTransactionalOffsets
from exacta.core.groups.classic.step import check_generation
from exacta.core.rejections import Rejection
from exacta.core.state.classic_membership import NOBODY
from exacta.core.state.consumer_membership import ConsumerGroup, ConsumerMember
from exacta.core.state.state import State
from exacta.core.values.classic_groups import Phase

Commit = CommitOffsets | CommitTransactionalOffsets


def check_committer(state: State, commit: Commit) -> Rejection | None:
    """Return the reason why this caller may not commit offsets to the group, or None.

    A caller that names a member, a generation or an epoch must be current. A caller that names none is no member. Its
    commit is taken while the group has no members, or if it is transactional, since old request versions can name none.
    """
    if not state.has_group(commit.group_id):
        # A group that never had members is made by its first commit; nobody can have been given a generation of it.
        if commit.generation >= 0:
            return state.unknown_group
        return None if state.has_room_for_group(commit.group_id) else Rejection.LIMIT_REACHED
    group = state.volatile.consumer_groups.get(commit.group_id)
    if group is None:
        return _check_classic(state, commit)
    return _check_consumer(state, group, commit)


def _check_classic(state: State, commit: Commit) -> Rejection | None:
    transactional = isinstance(commit, CommitTransactionalOffsets)
    membership = state.volatile.memberships.get(commit.group_id, NOBODY)
    if commit.generation < 0 and membership.phase is Phase.EMPTY:
        return None
    if commit.generation >= 0 or commit.member_id or commit.instance_id is not None:
        rejection = check_generation(membership, commit.member_id, commit.instance_id, commit.generation)
        if rejection is not None:
            return rejection
    elif not transactional:
        return Rejection.UNKNOWN_MEMBER_ID
    if not transactional and membership.phase is Phase.COMPLETING_REBALANCE:
        return Rejection.REBALANCE_IN_PROGRESS
    return None


def _check_consumer(state: State, group: ConsumerGroup, commit: Commit) -> Rejection | None:
    if commit.generation < 0 and not group.members:
        return None
    names_nobody = commit.generation < 0 and not commit.member_id and commit.instance_id is None
    if isinstance(commit, CommitTransactionalOffsets) and names_nobody:
        return None
    member = group.members.get(commit.member_id)
    if member is None:
        return Rejection.UNKNOWN_MEMBER_ID
    if isinstance(commit, CommitOffsets) and not commit.knows_member_epochs and member.classic is None:
        return Rejection.MEMBER_EPOCH_NEEDED
    if commit.generation == member.epoch:
        return None
    if member.classic is not None:
        return Rejection.ILLEGAL_GENERATION
    if commit.generation < member.epoch and _has_held_all_since(state, member, commit):
        return None
    return Rejection.STALE_MEMBER_EPOCH


def _has_held_all_since(state: State, member: ConsumerMember, commit: Commit) -> bool:
    """Return whether the member has held every partition since before the epoch that it names (KIP-1251).

    A member may learn of its new epoch while a commit is on its way. The partitions that it has held all the time
    belong to nobody else.
    """
    held = member.assigned | member.revoking
    for offset in commit.offsets:
        topic = state.topics.get(offset.topic)
        since = None if topic is None else held.get((topic.topic_id, offset.partition))
        if since is None or since > commit.generation:
            return False
    return True


def check_reader(state: State, group_id: str, member_id: str | None, member_epoch: int) -> Rejection | None:
    """Return the reason why this caller may not read the group's offsets, or None.

    A stale member of the consumer protocol may not, because it would read partitions that are not its own any more. A
    caller that names no member may read. So may the members of a classic group, whose requests name no generation.
    """
    group = state.volatile.consumer_groups.get(group_id)
    if group is None or (member_id is None and member_epoch < 0):
        return None
    member = group.members.get(member_id or "")
    if member is None:
        return Rejection.UNKNOWN_MEMBER_ID
    if member.epoch == member_epoch:
        return None
    return Rejection.STALE_MEMBER_EPOCH if member.classic is None else Rejection.ILLEGAL_GENERATION
