"""The transaction coordinator: who holds a transactional id, and the life of its transaction.

    phase \\ input    AddPartitions, AddGroup ***   time-out (`expiry.py`)
    EMPTY            begin                         -
    ONGOING          extend *****                  abort, bump
    COMPLETE_COMMIT  begin                         -
    COMPLETE_ABORT   begin                         -

EndTxn, in version 1 of the protocol and in version 2 (KIP-890):

    phase \\ version 1     commit           abort
    EMPTY                 INVALID_STATE *  done
    ONGOING               commit           abort
    COMPLETE_COMMIT       done             INVALID_STATE *
    COMPLETE_ABORT        INVALID_STATE    done

    phase \\ version 2 ****  commit           abort           commit, the pair before  abort, the pair before
    EMPTY                   INVALID_STATE *  abort, bump **  fenced                   fenced
    ONGOING                 commit, bump     abort, bump     fenced                   fenced
    COMPLETE_COMMIT         INVALID_STATE *  abort, bump **  done                     INVALID_STATE
    COMPLETE_ABORT          INVALID_STATE *  abort, bump **  INVALID_STATE            done

Before the tables every request is fenced by producer id and epoch (`authorize`). Ending is one event for all partitions
and groups (decision D2), so that no phase lies between, and nobody is ever told to wait for one.

In version 2 EndTxn bumps the epoch, so that a pair names one transaction, and a late request finds itself fenced. A
repeat of EndTxn names the pair before; it is answered as the first time if that pair's transaction ended like this (and
fenced if it was not EndTxn of version 2 that made the present pair, or rotated away by now).

* An acknowledged AddPartitions or AddGroup is written, but not synced by itself (D4), so that a machine that stops may
forget it. What follows it makes up for it (`extension_for_write`, decision 0002): a write registers its partition or
group itself, a commit of nothing succeeds, and an abort of nothing gives up what was forgotten. `may_have_forgotten`
says for whom: those that were there at recovery and are not fenced (`loss.py`), until they end a transaction, abort or
initialise again. After a commit an abort is refused even then: it may be that commit's own client which has not heard
of it.

** A client that is unsure whether the broker knows of its transaction aborts, and must get a new epoch all the same.

*** In version 2 the writes themselves: Produce and TxnOffsetCommit register what they write to (`extension_for_write`).

**** A transaction may also end and leave the pair, by version 1 or as one of a set (`transaction_set.py`). Its owner
must not go on under that pair in version 2, with two transactions that it takes for one: no write begins another, and
EndTxn is answered as a repeat of that end, and bumps.

A joint transaction may also be ended by its id, and its holder hear of that later (`joining.py`, `conclusion.py`).

***** A prepared transaction is an exception (KIP-939, `binding.py`): it stayed open when its id got another holder, can
only be ended, by the pair of that holder, and everything else gets INVALID_STATE.
"""

from msgspec import Struct

from exacta.core.commands import AddGroup, AddPartitions, EndTransaction, ExpireTransaction
from exacta.core.events import (
    Event,
    NothingAborted,
    TransactionBegun,
    TransactionExtended,
)
from exacta.core.ids import (
    NO_TIMEOUT_MS,
    PartitionId,
    ProducerEpoch,
    ProducerId,
    SubscriptionKey,
    TransactionId,
    TransactionVersion,
)
from exacta.core.outcome import Outcome, Timer
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, PartitionsVerified, TransactionEndedReply
from exacta.core.state.state import State
from exacta.core.state.transaction import Transaction, TransactionalId
from exacta.core.transactions.conclusion import heard, refusal_of_end, refusal_of_group, refusal_of_write
from exacta.core.transactions.ending import ending, ending_of_nothing
from exacta.core.transactions.numbering import after_reservation
from exacta.core.values.internal_topics import INTERNAL_TOPICS
from exacta.core.values.transactions import Phase


def authorize(
    state: State, transactional_id: str, producer_id: ProducerId, producer_epoch: ProducerEpoch
) -> TransactionalId | Rejection:
    """Return the transactional id's entry if this producer holds it now (KIP-98 zombie fencing)."""
    if not transactional_id:
        return Rejection.INVALID_TRANSACTIONAL_ID
    held = state.transactional_ids.get(transactional_id)
    if held is None or held.producer_id != producer_id:
        return Rejection.INVALID_PRODUCER_ID_MAPPING
    if held.producer_epoch != producer_epoch:
        return Rejection.PRODUCER_FENCED
    return held


def add_partitions(state: State, command: AddPartitions, now_ms: int) -> Outcome:
    """Register partitions, all or none; or only tell which are registered (KIP-890)."""
    named: list[PartitionId] = []
    for topic, index in command.partitions:
        if topic in INTERNAL_TOPICS:
            return Outcome(reply=Rejection.INTERNAL_TOPIC)
        partition = state.partition(topic, index)
        if partition is None:  # looked at first, as in Kafka, for every client
            return Outcome(reply=Rejection.UNKNOWN_TOPIC_OR_PARTITION)
        named.append(partition.partition_id)
    held = authorize(state, command.transactional_id, command.producer_id, command.producer_epoch)
    if isinstance(held, Rejection):
        return Outcome(reply=held)
    transaction = state.open_transaction(held)
    known = frozenset[PartitionId]() if transaction is None else transaction.partitions
    if command.verify_only:
        return Outcome(reply=PartitionsVerified(registered=tuple(each in known for each in named)))
    if (refused := _refusal_of_extension(held, transaction) or refusal_of_write(held)) is not None:
        return Outcome(reply=refused)
    added = tuple(each for each in named if each not in known)
    return _extension_alone(state, held, transaction, added, (), now_ms)


def add_group(state: State, command: AddGroup, now_ms: int) -> Outcome:
    """Register a group, whose offsets then may join the transaction."""
    held = authorize(state, command.transactional_id, command.producer_id, command.producer_epoch)
    if isinstance(held, Rejection):
        return Outcome(reply=held)
    if not command.group_id:
        return Outcome(reply=Rejection.INVALID_GROUP_ID)
    transaction = state.open_transaction(held)
    if (refused := _refusal_of_extension(held, transaction)) is not None:
        return Outcome(reply=refused)
    if held.concluded is not None:
        return Outcome(reply=refusal_of_group(held) or DONE)
    is_known = transaction is not None and command.group_id in transaction.groups
    return _extension_alone(state, held, transaction, (), () if is_known else (command.group_id,), now_ms)


def may_extend(held: TransactionalId, transaction: Transaction | None) -> bool:
    """Return whether requests of version 1 may begin a transaction, or add to the one that is open.

    Nothing is added to a prepared transaction. And a pair that takes part in two-phase commits names one transaction in
    either version, since a recovering client goes by the pair (KIP-939).
    """
    if transaction is not None:
        return not held.has_prepared(transaction)
    return held.has_unused_pair or held.transaction_timeout_ms != NO_TIMEOUT_MS


def _refusal_of_extension(held: TransactionalId, transaction: Transaction | None) -> Rejection | None:
    """Return why requests of version 1 may neither begin a transaction nor add to the one that is open."""
    return None if may_extend(held, transaction) else Rejection.INVALID_TRANSACTION_STATE


class Extension(Struct, frozen=True):
    """The registration of a partition or group, which goes before the write that needs it."""

    transaction_id: TransactionId | None = None
    events: tuple[Event, ...] = ()
    timers: tuple[Timer, ...] = ()
    is_decisive: bool = False
    """The write must be durable when it is answered: what takes part in a two-phase commit may be prepared with the
    last write that is acknowledged (KIP-939)."""

    @property
    def inside_transaction(self) -> TransactionId | None:
        """Return what `Outcome.inside_transaction` says of the write."""
        return None if self.is_decisive else self.transaction_id


def _extension_alone(
    state: State,
    held: TransactionalId,
    transaction: Transaction | None,
    partitions: tuple[PartitionId, ...],
    groups: tuple[str, ...],
    now_ms: int,
) -> Outcome:
    """Register these without a write; where there are none, nothing begins."""
    if not partitions and not groups and (transaction is None or transaction.has_owners_part):
        return Outcome(reply=DONE)
    extension = _extend(state, held, transaction, partitions, groups, now_ms)
    return Outcome(events=extension.events, reply=DONE, timers=extension.timers)


def _extend(
    state: State,
    held: TransactionalId,
    transaction: Transaction | None,
    partitions: tuple[PartitionId, ...],
    groups: tuple[str, ...],
    now_ms: int,
) -> Extension:
    """Let these take part in the transaction of a transactional id, which begins where none is open."""
    if transaction is not None:
        return extended(transaction, partitions, groups, now_ms, by_owner=True)
    transaction_id, timeout_ms = state.volatile.next_transaction_id, held.transaction_timeout_ms
    begun = TransactionBegun(
        transaction_id=transaction_id,
        producer_ids=(held.producer_id,),
        producer_epoch=held.producer_epoch,
        owner=held.transactional_id,
        timeout_ms=timeout_ms,
        at_ms=now_ms,
        partitions=partitions,
        groups=groups,
        principal=held.principal,
    )
    events: tuple[Event, ...] = (begun,)
    if transaction_id >= state.reserved_transaction_id:  # asked here first: most begins need nothing of it
        events = after_reservation(state, begun)
    if timeout_ms == NO_TIMEOUT_MS:
        return Extension(transaction_id, events, is_decisive=True)
    return Extension(transaction_id, events, (time_out(transaction_id, now_ms + timeout_ms),))


def extended(
    transaction: Transaction,
    partitions: tuple[PartitionId, ...],
    groups: tuple[str, ...],
    now_ms: int,
    subscriptions: tuple[SubscriptionKey, ...] = (),
    *,
    by_owner: bool = False,
) -> Extension:
    """Let these take part in an open transaction, and note if its owner asks for the first time."""
    is_first = by_owner and not transaction.has_owners_part
    transaction_id = transaction.transaction_id
    events: tuple[Event, ...] = ()
    if partitions or groups or subscriptions or is_first:
        event = TransactionExtended(
            transaction_id=transaction_id,
            partitions=partitions,
            groups=groups,
            at_ms=now_ms,
            subscriptions=subscriptions,
            by_owner=is_first,
        )
        events = (event,)
    return Extension(transaction_id, events, is_decisive=transaction.timeout_ms == NO_TIMEOUT_MS)


def extension_for_write(
    state: State,
    held: TransactionalId,
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
    transaction = state.open_transaction(held)
    if (refused := refusal_of_write(held)) is not None:
        return refused
    if transaction is not None:
        if held.has_prepared(transaction):
            # Its client must not be told to abort what another has prepared.
            return Rejection.INVALID_TRANSACTION_STATE
        if partition_id in transaction.partitions if partition_id is not None else group_id in transaction.groups:
            return extended(transaction, (), (), now_ms, by_owner=True)
    if version is TransactionVersion.V2 or not may_extend(held, transaction):
        allowed = transaction is not None or held.has_unused_pair
    else:
        allowed = held.transactional_id in state.volatile.may_have_forgotten
    if not allowed:
        return Rejection.TRANSACTION_NOT_BEGUN
    partitions = (partition_id,) if partition_id is not None else ()
    groups = (group_id,) if group_id is not None else ()
    return _extend(state, held, transaction, partitions, groups, now_ms)


def time_out(transaction_id: TransactionId, deadline_ms: int) -> Timer:
    """Return the timer that looks at the deadline of a transaction which is open, or begins."""
    return Timer(deadline_ms, ExpireTransaction(transaction_id=transaction_id))


def end(state: State, command: EndTransaction, now_ms: int) -> Outcome:
    """Commit or abort; a repeat gets the same answer (see the tables above)."""
    if command.version is TransactionVersion.V2 and (repeated := _repeat_of_end(state, command)) is not None:
        return Outcome(reply=repeated)
    held = authorize(state, command.transactional_id, command.producer_id, command.producer_epoch)
    if isinstance(held, Rejection):
        return Outcome(reply=held)
    if held.concluded is not None and (refused := refusal_of_end(held, commit=command.commit)) is not None:
        return Outcome(reply=refused)
    if command.version is TransactionVersion.V2:
        return _end_and_bump(state, held, commit=command.commit, now_ms=now_ms)
    return _end_keeping_the_epoch(state, held, command, now_ms)


def _repeat_of_end(state: State, command: EndTransaction) -> TransactionEndedReply | Rejection | None:
    """Return the answer to a repeat of the EndTxn that made the present pair, or None where it is none."""
    held = state.transactional_ids.get(command.transactional_id)
    if held is None or not held.bumped_by_end:
        return None
    if (command.producer_id, command.producer_epoch) != held.previous_pair:
        return None
    if command.commit is not held.last_committed:
        return Rejection.INVALID_TRANSACTION_STATE
    return TransactionEndedReply(producer_id=held.producer_id, producer_epoch=held.producer_epoch)


def _end_and_bump(state: State, held: TransactionalId, *, commit: bool, now_ms: int) -> Outcome:
    transaction = state.open_transaction(held)
    if transaction is not None:
        ended = ending(state, transaction, commit=commit, now_ms=now_ms, bump=True)
    else:
        if held.concluded is not None:
            refused = False
        elif held.has_unused_pair:
            refused = commit and held.transactional_id not in state.volatile.may_have_forgotten
        else:
            refused = commit is not held.last_committed
        if refused:
            return Outcome(reply=Rejection.INVALID_TRANSACTION_STATE)
        ended = ending_of_nothing(state, held, commit=commit, now_ms=now_ms)
    reply = TransactionEndedReply(producer_id=ended.next_producer_id, producer_epoch=ended.next_producer_epoch)
    return Outcome(events=after_reservation(state, ended), reply=reply)


def _end_keeping_the_epoch(state: State, held: TransactionalId, command: EndTransaction, now_ms: int) -> Outcome:
    reply = TransactionEndedReply(producer_id=held.producer_id, producer_epoch=held.producer_epoch)
    transaction = state.open_transaction(held)
    if transaction is not None:
        return Outcome(events=(ending(state, transaction, commit=command.commit, now_ms=now_ms),), reply=reply)
    if held.concluded is not None:
        return Outcome(events=(heard(held, commit=command.commit, now_ms=now_ms),), reply=reply)
    forgotten = held.transactional_id in state.volatile.may_have_forgotten
    if held.phase is Phase.EMPTY:
        already = not command.commit or forgotten
    else:  # a commit is never aborted: the abort may be of what was committed, the answer lost
        already = command.commit is held.last_committed
    if not already:
        return Outcome(reply=Rejection.INVALID_TRANSACTION_STATE)
    given_up = (NothingAborted(transactional_id=held.transactional_id),) if forgotten and not command.commit else ()
    return Outcome(events=given_up, reply=reply)
