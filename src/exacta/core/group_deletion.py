"""Deleting a group (KIP-229): its offsets and what is remembered of its membership.

As in Apache Kafka, offsets that wait in it for an open transaction go as well, and the transaction's end then brings
none of them back. The transaction itself goes on, and may commit further offsets to the group, which begins anew.
"""

from exacta.core.commands import DeleteGroup
from exacta.core.events import GroupDeleted
from exacta.core.membership import NOBODY, Phase
from exacta.core.outcome import Outcome
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE
from exacta.core.state import State


def delete(state: State, command: DeleteGroup, now_ms: int) -> Outcome:
    """Delete a group that has no members."""
    if not command.group_id:
        return Outcome(reply=Rejection.INVALID_GROUP_ID)
    membership = state.volatile.memberships.get(command.group_id, NOBODY)
    if membership.phase is not Phase.EMPTY:
        return Outcome(reply=Rejection.NON_EMPTY_GROUP)
    if membership is NOBODY and command.group_id not in state.groups:
        return Outcome(reply=Rejection.GROUP_ID_NOT_FOUND)
    return Outcome(events=(GroupDeleted(group_id=command.group_id),), reply=DONE)
