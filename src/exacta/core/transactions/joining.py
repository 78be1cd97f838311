"""Joint transactions: a transactional id owns them, and clients that know their ids write into them (decision 0038).

JoinTransaction makes one, in either direction; its answer is the id by which the other side names the transaction.

    the transactional id has       names no handle      names an open handle     names its own joint one
    nothing open                   INVALID_STATE *      joins **                 -
    a transaction open             joins ***            CONCURRENT               -
    a joint one open               the same answer      CONCURRENT               the same answer
    a prepared one open            INVALID_STATE        INVALID_STATE            INVALID_STATE
    concluded (`conclusion.py`)    see there            see there                see there

A handle that is not open is answered as by a write into it (`handle.py`). One that another transactional id has joined
is INVALID_STATE. A joint transaction counts as an open handle, and where there are as many as may be, no transaction is
joined (`Limits.max_open_handles`).

* Nothing would end it: clients send no EndTxn where they have registered nothing. So a client that wants its
transaction joined must have written a record, or sent offsets, before.

** The handle keeps its id, its time-out, and all that it has written. It belongs to the transactional id from now on. A
transactional id of two-phase commits has no time-out, and joins none (INVALID_STATE).

*** It gets a producer id of its own for what is written by its id, so that a TxnID never names a transactional id's
producer, which has the next transaction under the same pair (version 1).

Its end is the one event `TransactionEnded`, on either side. Two tables say how the other side is answered after
it: the one in `conclusion.py` for the holder of the transactional id, and the one in `handle.py` for everybody who
knows the transaction's id.
"""

from exacta.core.commands import JoinTransaction
from exacta.core.events import TransactionJoined
from exacta.core.ids import NO_TIMEOUT_MS, TransactionId
from exacta.core.outcome import Outcome
from exacta.core.rejections import Rejection
from exacta.core.replies import TransactionJoinedReply
from exacta.core.state.state import State
from exacta.core.state.transaction import Conclusion, Transaction, TransactionalId
from exacta.core.transactions.conclusion import refusal_of_write
from exacta.core.transactions.handle import open_handle
from exacta.core.transactions.numbering import after_reservation
from exacta.core.transactions.transaction import authorize


def join(state: State, command: JoinTransaction, now_ms: int) -> Outcome:
    """Make the transaction of a transactional id, or a handle, a joint one (see the table above)."""
    held = authorize(state, command.transactional_id, command.producer_id, command.producer_epoch)
    if isinstance(held, Rejection):
        return Outcome(reply=held)
    transaction = state.open_transaction(held)
    if transaction is not None and held.has_prepared(transaction):
        return Outcome(reply=Rejection.INVALID_TRANSACTION_STATE)
    if transaction is not None and transaction.is_joint and command.transaction in (None, transaction.transaction_id):
        return Outcome(reply=TransactionJoinedReply(transaction_id=transaction.transaction_id))
    if command.transaction is not None:
        return _join_handle(state, held, transaction, command.transaction, now_ms)
    if transaction is None:
        return Outcome(reply=refusal_of_write(held) or Rejection.INVALID_TRANSACTION_STATE)
    if state.volatile.open_handles >= state.limits.max_open_handles:
        return Outcome(reply=Rejection.LIMIT_REACHED)
    joined = TransactionJoined(
        transaction_id=transaction.transaction_id,
        producer_ids=(*transaction.producer_ids, state.volatile.next_producer_id),
        producer_epoch=transaction.producer_epoch,
        owner=held.transactional_id,
        at_ms=now_ms,
    )
    reply = TransactionJoinedReply(transaction_id=transaction.transaction_id)
    return Outcome(events=after_reservation(state, joined), reply=reply)


def _join_handle(
    state: State, held: TransactionalId, present: Transaction | None, transaction_id: TransactionId, now_ms: int
) -> Outcome:
    if present is not None:
        return Outcome(reply=Rejection.CONCURRENT_TRANSACTIONS)
    if held.concluded is Conclusion.OF_WHAT_IT_WROTE:
        return Outcome(reply=refusal_of_write(held))
    handle = open_handle(state, transaction_id, now_ms)
    if isinstance(handle, Rejection):
        return Outcome(reply=handle)
    if handle.is_joint or held.transaction_timeout_ms == NO_TIMEOUT_MS:
        return Outcome(reply=Rejection.INVALID_TRANSACTION_STATE)
    joined = TransactionJoined(
        transaction_id=transaction_id,
        producer_ids=(held.producer_id, *handle.producer_ids),
        producer_epoch=held.producer_epoch,
        owner=held.transactional_id,
        at_ms=now_ms,
    )
    return Outcome(events=(joined,), reply=TransactionJoinedReply(transaction_id=transaction_id))
