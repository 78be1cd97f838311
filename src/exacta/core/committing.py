"""What offsets need to know of members: who may commit (KIP-447, invariant 6)."""

from exacta.core.classic_group.step import check_generation
from exacta.core.commands import CommitOffsets, CommitTransactionalOffsets
from exacta.core.membership import NOBODY, Phase
from exacta.core.rejections import Rejection
from exacta.core.state import State

Commit = CommitOffsets | CommitTransactionalOffsets


def check_committer(state: State, commit: Commit, *, transactional: bool) -> Rejection | None:
    """Return why this caller may not commit offsets to the group, or None.

    Who names a member or a generation must be current. Who names none is no member: such a commit is taken while the
    group has no members, or where it is transactional (old request versions can name none).
    """
    if not state.has_group(commit.group_id):
        # A group that never had members is made by its first commit; there is none that could have had a generation.
        if commit.generation >= 0:
            return Rejection.GROUP_ID_NOT_FOUND
        return None if state.has_room_for_group(commit.group_id) else Rejection.LIMIT_REACHED
    return _check_classic(state, commit, transactional=transactional)


def _check_classic(state: State, commit: Commit, *, transactional: bool) -> Rejection | None:
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


def check_reader(state: State, group_id: str, member_id: str | None, member_epoch: int) -> Rejection | None:
    """Return why this caller may not be told the group's offsets, or None: a stale member would begin elsewhere.

    Who names no member may read; so may the members of a classic group, whose generation nobody asks for.
    """
    return None
