"""The transaction coordinator: who holds a transactional id, and the life of its transaction.

    phase \\ input    AddPartitions,   time-out
                     AddGroup ***     (`expiry.py`)
    EMPTY            begin            -
    ONGOING          extend *****     abort, bump
    COMPLETE_COMMIT  begin            -
    COMPLETE_ABORT   begin            -

                     version 1                        version 2 (KIP-890) ****         version 2, the pair before
    phase \\ input    EndTxn(commit)   EndTxn(abort)   EndTxn(commit)   EndTxn(abort)   EndTxn(commit)   EndTxn(abort)
    EMPTY            INVALID_STATE *  done            INVALID_STATE *  abort, bump **  fenced           fenced
    ONGOING          commit           abort           commit, bump     abort, bump     fenced           fenced
    COMPLETE_COMMIT  done             INVALID_STATE * INVALID_STATE *  abort, bump **  done             INVALID_STATE
    COMPLETE_ABORT   INVALID_STATE    done            INVALID_STATE *  abort, bump **  INVALID_STATE    done

Before the tables every request is fenced by producer id and epoch (`authorize`). Ending is one event for all partitions
and groups (decision D2), so that no phase lies between, and nobody is ever told to wait for one.

In version 2 EndTxn bumps the epoch, so that a pair names one transaction, and a late request finds itself fenced. A
repeat of EndTxn names the pair before; it is answered as the first time if that pair's transaction ended like this (and
fenced if it was not EndTxn of version 2 that made the present pair, or rotated away by now).

* An acknowledged AddPartitions or AddGroup is written, but not synced by itself (D4), so that a machine that stops may
forget it. What follows it makes up for it (`joined`, decision 0002): a write registers its partition or group itself, a
commit of nothing succeeds, and an abort of nothing gives up what was forgotten. `may_have_forgotten` says for whom:
those that were there at recovery and are not fenced (`loss.py`), until they end a transaction, abort or initialise
again. After a commit an abort is refused even then: it may be that commit's own client which has not heard of it.

** A client that is unsure whether the broker knows of its transaction aborts, and must get a new epoch all the same.

*** In version 2 the writes themselves: Produce and TxnOffsetCommit register what they write to (`joined`).

**** A transaction may also end and leave the pair, by version 1 or as one of a set (`transaction_set.py`). Its owner
must not go on under that pair in version 2, with two transactions that it takes for one: no write begins another, and
EndTxn is answered as a repeat of that end, and bumps.

***** But for one that was kept when its id got another holder (KIP-939, `binding.py`): that can only be ended, by the
pair of its holder, and INVALID_STATE is what everything else gets.
"""

from msgspec import Struct

from exacta.core.commands import AddGroup, AddPartitions, EndTransaction, ExpireTransaction
from exacta.core.events import Event, NothingAborted, TransactionEnded, TransactionExtended
from exacta.core.ids import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMEOUT_MS,
    Cause,
    Offset,
    PartitionId,
    ProducerEpoch,
    ProducerId,
    TransactionVersion,
)
from exacta.core.outcome import Outcome, Timer
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, PartitionsVerified
from exacta.core.replies import TransactionEnded as TransactionEndedReply
from exacta.core.state.internal_topics import INTERNAL_TOPICS
from exacta.core.state.state import State
from exacta.core.state.transaction import Phase, Transactional


def authorize(
    state: State, transactional_id: str, producer_id: ProducerId, producer_epoch: ProducerEpoch
) -> Transactional | Rejection:
    """Return the transactional id's entry if this producer holds it now (KIP-98 zombie fencing)."""
    if not transactional_id:
        return Rejection.INVALID_TRANSACTIONAL_ID
    held = state.transactionals.get(transactional_id)
    if held is None or held.producer_id != producer_id:
        return Rejection.INVALID_PRODUCER_ID_MAPPING
    if held.producer_epoch != producer_epoch:
        return Rejection.PRODUCER_FENCED
    return held


def next_pair(state: State, producer_id: ProducerId, producer_epoch: ProducerEpoch) -> tuple[ProducerId, ProducerEpoch]:
    """Return the pair that fences this one: the next epoch, or a new producer id where the epochs are used up."""
    if producer_epoch >= state.limits.highest_epoch:
        return state.next_producer_id, ProducerEpoch(0)
    return producer_id, ProducerEpoch(producer_epoch + 1)


def ending(
    state: State,
    held: Transactional,
    *,
    commit: bool,
    now_ms: int,
    next_offsets: dict[PartitionId, Offset] | None = None,
    bump: bool = False,
    cause: Cause = Cause.OWNER,
) -> TransactionEnded:
    """Make the one event that ends the open transaction; with `bump` it also gives its holder the next pair.

    Only partitions that were written to get a marker: a lone abort marker confuses readers. `next_offsets` is where
    the markers of several endings in one outcome leave off, and is kept up to date here.
    """
    if next_offsets is None:
        next_offsets = {}
    producer_id, producer_epoch = held.open_pair
    markers: list[tuple[PartitionId, Offset]] = []
    for partition_id in sorted(held.partitions):
        partition = state.partitions[partition_id]
        if producer_id in partition.open_transactions:
            offset = next_offsets.get(partition_id, partition.next_offset)
            next_offsets[partition_id] = Offset(offset + 1)
            markers.append((partition_id, offset))
    following = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
    if bump:
        following = next_pair(state, held.producer_id, held.producer_epoch)
    return TransactionEnded(
        transactional_id=held.transactional_id,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        committed=commit,
        markers=tuple(markers),
        at_ms=now_ms,
        next_producer_id=following[0],
        next_producer_epoch=following[1],
        cause=cause,
    )


def add_partitions(state: State, command: AddPartitions, now_ms: int) -> Outcome:
    """Register partitions, all or none; or only tell which are registered (KIP-890)."""
    named: list[PartitionId] = []
    for topic, index in command.partitions:
        if topic in INTERNAL_TOPICS:
            return Outcome(reply=Rejection.INTERNAL_TOPIC)
        partition = state.partition(topic, index)
        if partition is None:  # looked at first, as in Kafka, whoever asks
            return Outcome(reply=Rejection.UNKNOWN_TOPIC_OR_PARTITION)
        named.append(partition.partition_id)
    held = authorize(state, command.transactional_id, command.producer_id, command.producer_epoch)
    if isinstance(held, Rejection):
        return Outcome(reply=held)
    if command.verify_only:
        return Outcome(reply=PartitionsVerified(registered=tuple(each in held.partitions for each in named)))
    if not may_extend(held):
        return Outcome(reply=Rejection.INVALID_TRANSACTION_STATE)
    return _extend(held, tuple(each for each in named if each not in held.partitions), (), now_ms)


def add_group(state: State, command: AddGroup, now_ms: int) -> Outcome:
    """Register a group, whose offsets then may join the transaction."""
    held = authorize(state, command.transactional_id, command.producer_id, command.producer_epoch)
    if isinstance(held, Rejection):
        return Outcome(reply=held)
    if not command.group_id:
        return Outcome(reply=Rejection.INVALID_GROUP_ID)
    if not may_extend(held):
        return Outcome(reply=Rejection.INVALID_TRANSACTION_STATE)
    added = () if command.group_id in held.groups else (command.group_id,)
    return _extend(held, (), added, now_ms)


def may_extend(held: Transactional) -> bool:
    """Return whether requests of version 1 may begin a transaction, or add to it.

    Not to one that was kept; and a pair that takes part in two-phase commits names one transaction in either version,
    since whoever recovers goes by the pair (KIP-939).
    """
    if held.kept is not None:
        return False
    return held.phase is Phase.ONGOING or held.has_unused_pair or held.transaction_timeout_ms != NO_TIMEOUT_MS


def _extend(held: Transactional, partitions: tuple[PartitionId, ...], groups: tuple[str, ...], now_ms: int) -> Outcome:
    if not partitions and not groups:
        return Outcome(reply=DONE)
    extended = TransactionExtended(
        transactional_id=held.transactional_id, partitions=partitions, groups=groups, at_ms=now_ms
    )
    timers: tuple[Timer, ...] = ()
    if held.phase is not Phase.ONGOING and held.transaction_timeout_ms != NO_TIMEOUT_MS:
        timers = (time_out(held, now_ms + held.transaction_timeout_ms),)
    return Outcome(events=(extended,), reply=DONE, timers=timers)


class Extension(Struct, frozen=True):
    """What registers a partition or group, to go before the write that needs it."""

    events: tuple[Event, ...] = ()
    timers: tuple[Timer, ...] = ()
    inside_transaction: str | None = None
    """See `Outcome.inside_transaction`; it is None also where the transaction takes part in a two-phase commit."""


def joined(
    state: State,
    held: Transactional,
    version: TransactionVersion,
    *,
    partition_id: PartitionId | None = None,
    group_id: str | None = None,
    now_ms: int,
) -> Extension | Rejection:
    """Return what a write to this partition or group needs first (often nothing), or why it may not be.

    In version 2 a write registers what it writes to, but begins no second transaction under a pair. In version 1,
    without an open transaction that knows it, only a write whose registration a crash may have forgotten is taken. That
    is no late one of an ended transaction: requests of before the crash died with their connections, and a repeat was
    recognised before.
    """
    if held.kept is not None:
        return Rejection.INVALID_TRANSACTION_STATE  # its client must not be told to abort what another has prepared
    known = partition_id in held.partitions if partition_id is not None else group_id in held.groups
    # What takes part in a two-phase commit may be prepared with the last write that is acknowledged (KIP-939).
    inside = None if held.deadline_ms is None else held.transactional_id
    if held.phase is Phase.ONGOING and known:
        return Extension(inside_transaction=inside)
    if version is TransactionVersion.V2 or not may_extend(held):
        allowed = held.phase is Phase.ONGOING or held.has_unused_pair
    else:
        allowed = held.transactional_id in state.volatile.may_have_forgotten
    if not allowed:
        return Rejection.TRANSACTION_NOT_BEGUN
    outcome = _extend(
        held,
        (partition_id,) if partition_id is not None else (),
        (group_id,) if group_id is not None else (),
        now_ms,
    )
    return Extension(outcome.events, outcome.timers, inside)


def time_out(held: Transactional, deadline_ms: int) -> Timer:
    """Return the timer that looks at the deadline of the transaction which is open, or begins."""
    return Timer(deadline_ms, ExpireTransaction(transactional_id=held.transactional_id))


def end(state: State, command: EndTransaction, now_ms: int) -> Outcome:
    """Commit or abort; a repeat gets the same answer (see the tables above)."""
    if command.version is TransactionVersion.V2 and (repeated := _repeat_of_end(state, command)) is not None:
        return Outcome(reply=repeated)
    held = authorize(state, command.transactional_id, command.producer_id, command.producer_epoch)
    if isinstance(held, Rejection):
        return Outcome(reply=held)
    if command.version is TransactionVersion.V2:
        return _end_and_bump(state, held, commit=command.commit, now_ms=now_ms)
    return _end_keeping_the_epoch(state, held, command, now_ms)


def _repeat_of_end(state: State, command: EndTransaction) -> TransactionEndedReply | Rejection | None:
    """Return the answer to a repeat of the EndTxn that made the present pair, or None where it is none."""
    held = state.transactionals.get(command.transactional_id)
    if held is None or not held.bumped_by_end:
        return None
    if (command.producer_id, command.producer_epoch) != (held.previous_producer_id, held.previous_producer_epoch):
        return None
    if held.phase is not (Phase.COMPLETE_COMMIT if command.commit else Phase.COMPLETE_ABORT):
        return Rejection.INVALID_TRANSACTION_STATE
    return TransactionEndedReply(producer_id=held.producer_id, producer_epoch=held.producer_epoch)


def _end_and_bump(state: State, held: Transactional, *, commit: bool, now_ms: int) -> Outcome:
    if held.phase is Phase.ONGOING:
        refused = False
    elif held.has_unused_pair:
        refused = commit and held.transactional_id not in state.volatile.may_have_forgotten
    else:
        refused = commit is not (held.phase is Phase.COMPLETE_COMMIT)
    if refused:
        return Outcome(reply=Rejection.INVALID_TRANSACTION_STATE)
    ended = ending(state, held, commit=commit, now_ms=now_ms, bump=True)
    reply = TransactionEndedReply(producer_id=ended.next_producer_id, producer_epoch=ended.next_producer_epoch)
    return Outcome(events=(ended,), reply=reply)


def _end_keeping_the_epoch(state: State, held: Transactional, command: EndTransaction, now_ms: int) -> Outcome:
    reply = TransactionEndedReply(producer_id=held.producer_id, producer_epoch=held.producer_epoch)
    forgotten = held.transactional_id in state.volatile.may_have_forgotten
    match held.phase:
        case Phase.ONGOING:
            return Outcome(events=(ending(state, held, commit=command.commit, now_ms=now_ms),), reply=reply)
        case Phase.EMPTY:
            already = not command.commit or forgotten
        case Phase.COMPLETE_COMMIT:
            already = command.commit  # and never an abort: it may be of what was committed, the answer lost
        case Phase.COMPLETE_ABORT:
            already = not command.commit
    if not already:
        return Outcome(reply=Rejection.INVALID_TRANSACTION_STATE)
    given_up = (NothingAborted(transactional_id=held.transactional_id),) if forgotten and not command.commit else ()
    return Outcome(events=given_up, reply=reply)
