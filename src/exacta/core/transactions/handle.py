"""A transaction without a transactional id: a *handle* (decision 0027; Pulsar's transactions are such, PIP-31).

Every client that knows the id of a handle may write into it, put offsets into it, and end it. Several writers may do so
at once: the records lie under the handle's own producer id, and the sequences of its writers do not matter.

    handle \\ input    a write *****    commit ****      abort ****       time-out, marker, loss
    OPEN              taken *          commit           abort            abort
    COMMITTED **      ENDED            done             ENDED            -
    ABORTED **        ENDED            ENDED            done             -
    unknown ***       NOT_FOUND        NOT_FOUND        NOT_FOUND        -

* What it writes to is registered with the write. The write is answered ahead of its sync like one into any transaction
without a two-phase commit (decision 0016). After a possible loss recovery aborts every handle that it finds open.

** The outcome of a handle is remembered, up to a number and for a time (`Limits`).

*** The end of a handle that is not found is refused and never successful. A stop of the machine may have forgotten the
handle with acknowledged writes, or its end lies too far back. Its id is never given out again (`numbering.py`), so that
nobody ends another's. A transaction that a transactional id owns is not found either, unless it is joint: only its
holder ends that.

A *joint* transaction (`joining.py`) is a handle to everybody who knows its id, with the same table. While it is
prepared (KIP-939), all of it is INVALID_TRANSACTION_STATE, and only the holder of its transactional id ends it. An
operator's abort fences that holder, as for any transaction of a transactional id.

A handle in which nothing takes part is *abandoned* once the connection is closed over which it was begun. Its client
may still come back, and go on with it. But where half as many handles are open as may be, the one that was abandoned
first is aborted for each new one: nothing was promised of it, and nobody can tell it from one whose client has died.

**** A client that is strict hears of no outcome: NOT_FOUND in the two rows in the middle.

***** Records, offsets of a group, or acknowledgements of a subscription (`subscriptions/acknowledging.py`), which may
also be refused for a conflict. A write to what does not take part yet is refused where there are too many participants.
"""

from exacta.core.commands import AbandonHandles, BeginTransaction, EndHandle
from exacta.core.events import Event, HandlesAbandoned, TransactionBegun
from exacta.core.ids import Cause, PartitionId, SubscriptionKey, TransactionId
from exacta.core.outcome import Outcome
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, TransactionBegunReply
from exacta.core.state.state import State
from exacta.core.state.transaction import HANDLE_EPOCH, EndedHandle, Transaction
from exacta.core.transactions.binding import aborted_and_fenced
from exacta.core.transactions.ending import ending
from exacta.core.transactions.numbering import after_reservation
from exacta.core.transactions.transaction import Extension, extended, time_out


def begin(state: State, command: BeginTransaction, now_ms: int) -> Outcome:
    """Begin a handle: with a transaction id, and a producer id for its records, that nobody has had before."""
    if not 0 < command.timeout_ms <= state.limits.transaction_max_timeout_ms:
        return Outcome(reply=Rejection.INVALID_TRANSACTION_TIMEOUT)
    given_up: tuple[Event, ...] = ()
    if state.volatile.open_handles >= state.limits.max_open_handles // 2:
        given_up = _given_up(state, now_ms)
        if not given_up and state.volatile.open_handles >= state.limits.max_open_handles:
            return Outcome(reply=Rejection.LIMIT_REACHED)
    transaction_id, producer_id = state.volatile.next_transaction_id, state.volatile.next_producer_id
    begun = TransactionBegun(
        transaction_id=transaction_id,
        producer_ids=(producer_id,),
        producer_epoch=HANDLE_EPOCH,
        owner=None,
        timeout_ms=command.timeout_ms,
        at_ms=now_ms,
        client_id=command.client_id,
        client_host=command.client_host,
        principal=command.principal,
    )
    return Outcome(
        events=(*given_up, *after_reservation(state, begun)),
        reply=TransactionBegunReply(transaction_id=transaction_id, producer_id=producer_id),
        timers=(time_out(transaction_id, now_ms + command.timeout_ms),),
    )


def _given_up(state: State, now_ms: int) -> tuple[Event, ...]:
    """Abort the handle that was abandoned first, if there is one."""
    for transaction_id in state.volatile.abandoned:
        transaction = state.transactions[transaction_id]
        return (ending(state, transaction, commit=False, now_ms=now_ms, cause=Cause.IDLE),)
    return ()


def abandon(state: State, command: AbandonHandles, now_ms: int) -> Outcome:
    """Note that the connection is closed over which these handles were begun."""
    found = (state.transactions.get(each) for each in command.transactions)
    abandoned = tuple(each.transaction_id for each in found if each is not None and _is_empty(each))
    return Outcome(events=(HandlesAbandoned(transactions=abandoned),) if abandoned else (), reply=DONE)


def _is_empty(transaction: Transaction) -> bool:
    return transaction.owner is None and not transaction.participants


def open_handle(state: State, transaction_id: TransactionId, now_ms: int) -> Transaction | Rejection:
    """Return the handle or joint transaction if it is open, or why nothing can be written into it."""
    transaction = state.transactions.get(transaction_id)
    if transaction is not None and transaction.is_known_by_id:
        held = state.holder_of(transaction)
        is_prepared = held is not None and held.has_prepared(transaction)
        return Rejection.INVALID_TRANSACTION_STATE if is_prepared else transaction
    if _ended(state, transaction_id, now_ms) is not None:
        return Rejection.TRANSACTION_ENDED
    return Rejection.TRANSACTION_NOT_FOUND


def extension_in_handle(
    state: State,
    transaction: Transaction,
    *,
    partition_id: PartitionId | None = None,
    group_id: str | None = None,
    subscription: SubscriptionKey | None = None,
    now_ms: int,
) -> Extension | Rejection:
    """Return what a write into an open handle needs first: the registration of what it writes to; or why it may not."""
    is_new_partition = partition_id is not None and partition_id not in transaction.partitions
    is_new_group = group_id is not None and group_id not in transaction.groups
    partitions = (partition_id,) if partition_id is not None and is_new_partition else ()
    groups = (group_id,) if group_id is not None and is_new_group else ()
    is_new_subscription = subscription is not None and subscription not in transaction.subscriptions
    subscriptions = (subscription,) if subscription is not None and is_new_subscription else ()
    new = len(partitions) + len(groups) + len(subscriptions)
    limits, present = state.limits, transaction.participants
    if new and present + new > limits.max_participants_per_handle:
        return Rejection.LIMIT_REACHED
    if new and state.volatile.handle_participants + new > limits.max_participants_of_handles:
        return Rejection.LIMIT_REACHED
    return extended(transaction, partitions, groups, now_ms, subscriptions)


def end(state: State, command: EndHandle, now_ms: int) -> Outcome:
    """Commit or abort a handle for any client; a repeat gets the same answer (see the table above)."""
    transaction = state.transactions.get(command.transaction_id)
    if transaction is not None and transaction.is_known_by_id:
        return _end_open(state, transaction, command, now_ms)
    before = _ended(state, command.transaction_id, now_ms)
    if before is None or command.strict:
        return Outcome(reply=Rejection.TRANSACTION_NOT_FOUND)
    return Outcome(reply=DONE if before.committed is command.commit else Rejection.TRANSACTION_ENDED)


def _end_open(state: State, transaction: Transaction, command: EndHandle, now_ms: int) -> Outcome:
    held, cause, client = state.holder_of(transaction), command.cause, (command.client_id, command.client_host)
    if held is not None and cause is Cause.MARKER:
        events = aborted_and_fenced(state, transaction, cause=cause, now_ms=now_ms, client=client)
        return Outcome(events=events, reply=DONE)
    if held is not None and held.has_prepared(transaction):
        return Outcome(reply=Rejection.INVALID_TRANSACTION_STATE)
    if held is not None:
        cause = Cause.OTHER_SIDE
    ended = ending(state, transaction, commit=command.commit, now_ms=now_ms, cause=cause, client=client)
    return Outcome(events=(ended,), reply=DONE)


def _ended(state: State, transaction_id: TransactionId, now_ms: int) -> EndedHandle | None:
    """Return how a handle ended, if that is still remembered."""
    found = state.ended_handles.get(transaction_id)
    if found is None or found.ended_ms < now_ms - state.limits.ended_handle_retention_ms:
        return None
    return found
