"""Consumer groups' offsets: committed at once, or pending until a transaction ends (KIP-98, KIP-447)."""

from exacta.core.commands import CommitOffsets, CommitTransactionalOffsets, OffsetToCommit
from exacta.core.events import Event, OffsetsCommitted, TransactionalOffsetsCommitted
from exacta.core.groups.classic.belonging import session_extended
from exacta.core.groups.committing import check_committer
from exacta.core.outcome import Outcome
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, OffsetsTaken, Reply
from exacta.core.state.state import State
from exacta.core.transactions.handle import extension_in_handle, open_handle
from exacta.core.transactions.transaction import Extension, authorize, extension_for_write


def commit_offsets(state: State, command: CommitOffsets, now_ms: int) -> Outcome:
    """Commit offsets outside a transaction; the commit of a member is also a sign of life."""
    rejection = _check_group(command.group_id) or check_committer(state, command)
    if rejection is not None:
        return _refused(state, command.offsets, rejection)
    taken, reply = _check_offsets(state, command.offsets)
    events: tuple[Event, ...] = session_extended(state, command.group_id, command.member_id, now_ms)
    if taken:
        events = (OffsetsCommitted(group_id=command.group_id, offsets=taken, at_ms=now_ms), *events)
    return Outcome(events=events, reply=reply)


def commit_transactional_offsets(state: State, command: CommitTransactionalOffsets, now_ms: int) -> Outcome:
    """Put offsets into the open transaction, if both the producer and the group's member are current (KIP-447)."""
    before = _extension(state, command, now_ms)
    if isinstance(before, Rejection):
        return _refused(state, command.offsets, before)
    rejection = check_committer(state, command)
    if rejection is not None:
        return _refused(state, command.offsets, rejection)
    taken, reply = _check_offsets(state, command.offsets)
    if not taken:
        return Outcome(reply=reply)
    assert before.transaction_id is not None  # it is in a transaction
    committed = TransactionalOffsetsCommitted(
        group_id=command.group_id, transaction_id=before.transaction_id, offsets=taken, at_ms=now_ms
    )
    return Outcome(
        events=(*before.events, committed),
        reply=reply,
        timers=before.timers,
        inside_transaction=before.inside_transaction if reply is DONE else None,
    )


def _extension(state: State, command: CommitTransactionalOffsets, now_ms: int) -> Extension | Rejection:
    """Return what registers the group with the transaction, or why the command does not name an open one."""
    if command.transaction is not None:
        transaction = open_handle(state, command.transaction, now_ms)
        if isinstance(transaction, Rejection):
            return transaction
        rejection = _check_group(command.group_id)
        return rejection or extension_in_handle(state, transaction, group_id=command.group_id, now_ms=now_ms)
    held = authorize(state, command.transactional_id, command.producer_id, command.producer_epoch)
    if isinstance(held, Rejection):
        return held
    rejection = _check_group(command.group_id)
    return rejection or extension_for_write(state, held, command.version, group_id=command.group_id, now_ms=now_ms)


def _check_group(group_id: str) -> Rejection | None:
    return None if group_id else Rejection.INVALID_GROUP_ID


def _refused(state: State, offsets: tuple[OffsetToCommit, ...], rejection: Rejection) -> Outcome:
    """Refuse all partitions; those that do not exist get that answer first, as from Apache Kafka."""
    known = [state.partition(offset.topic, offset.partition) is not None for offset in offsets]
    if all(known):
        return Outcome(reply=rejection)
    unknown = Rejection.UNKNOWN_TOPIC_OR_PARTITION
    return Outcome(reply=OffsetsTaken(rejections=tuple(rejection if exists else unknown for exists in known)))


def _check_offsets(state: State, offsets: tuple[OffsetToCommit, ...]) -> tuple[tuple[OffsetToCommit, ...], Reply]:
    """Return the offsets that can be committed, and the answer; the fault of one partition refuses no other."""
    rejections = tuple(_check_offset(state, offset) for offset in offsets)
    if not any(rejections):
        return offsets, DONE
    taken = tuple(offset for offset, rejection in zip(offsets, rejections, strict=True) if rejection is None)
    return taken, OffsetsTaken(rejections=rejections)


def _check_offset(state: State, offset: OffsetToCommit) -> Rejection | None:
    if state.partition(offset.topic, offset.partition) is None:
        return Rejection.UNKNOWN_TOPIC_OR_PARTITION
    if len(offset.metadata.encode()) > state.limits.offset_metadata_max_bytes:
        return Rejection.OFFSET_METADATA_TOO_LARGE
    return None
