"""Transactions after a stop of the machine (decisions 0016, 0022 and 0027).

A write into an open transaction is acknowledged before it is durable: all that it promises is that the transaction's
end will tell. So where such writes may be missing, the transaction cannot be allowed to commit any more. It is aborted
and its producer fenced, as when it is open for too long; its client is told the same.

    at recovery, by what is durable   it is
    ONGOING                           aborted, and fenced
    ended or bound of late *          fenced
    ended or bound before that        left as it is **
    of two-phase commits              left as it is ***
    prepared                          left as it is ***
    an open handle                    aborted ****

What may be missing is writes, of an ONGOING one and of an open handle; the begin and writes, of one that ended or was
bound of late; the begin alone, of one before that; and nothing, of two-phase commits.

* Writes are acknowledged while the begin is not durable yet only if its producer's last transaction had ended, or the
producer had been bound, at most `UNSEEN_MS` before (`may_begin_unseen`). Time never goes back, so that a begin which is
missing is not earlier than whatever is durable; hence its producer is among those whom the recovered state heard of at
most `UNSEEN_MS` before the latest that it has noted.

** A missing begin is made up for (`transaction.py`, decision 0002).

*** It was durable with its acknowledgement. That it is prepared (KIP-939) is durable as well, and nothing is written
after that.

**** There is no producer to be fenced. A handle whose begin is missing is not found, and its end is refused
(`handle.py`).
"""

from exacta.core.commands import AbortAfterLoss, FenceAfterLoss
from exacta.core.ids import NO_TIMEOUT_MS, Cause
from exacta.core.outcome import Outcome
from exacta.core.replies import DONE
from exacta.core.state.state import State
from exacta.core.state.transaction import TransactionalId
from exacta.core.transactions.binding import aborted_and_fenced, fenced
from exacta.core.transactions.expiry import latest_noted_ms

UNSEEN_MS = 1_000
"""A begin may be unseen if its producer was heard of no longer ago than this.

If it were longer, more transactions would do without a sync of their begin, and more producers would be fenced that did
nothing. It must never be made shorter without a new format of the journal, because the version that recovers may be
later than the version that wrote.
"""


def may_begin_unseen(held: TransactionalId, now_ms: int) -> bool:
    """Return whether a transaction that this producer begins now is safe if nothing of it is found after a loss."""
    return now_ms - held.last_update_ms <= UNSEEN_MS


def fences_after_loss(state: State) -> list[FenceAfterLoss | AbortAfterLoss]:
    """Return what must be done if the state was recovered from a journal that may lack writes."""
    since_ms = latest_noted_ms(state) - UNSEEN_MS
    return [
        *(
            FenceAfterLoss(transactional_id=held.transactional_id)
            for held in state.transactional_ids.values()
            if (held.open is not None or held.last_update_ms >= since_ms) and not _is_spared(state, held)
        ),
        *(AbortAfterLoss(transaction_id=key) for key, each in state.transactions.items() if each.owner is None),
    ]


def fence_after_loss(state: State, command: FenceAfterLoss, now_ms: int) -> Outcome:
    """Fence the producer, and abort its transaction if one is open."""
    held = state.transactional_ids.get(command.transactional_id)
    if held is None or _is_spared(state, held):
        return Outcome(reply=DONE)
    transaction = state.open_transaction(held)
    if transaction is not None:
        return Outcome(events=aborted_and_fenced(state, transaction, cause=Cause.LOSS, now_ms=now_ms), reply=DONE)
    return Outcome(events=fenced(state, held, cause=Cause.LOSS, now_ms=now_ms), reply=DONE)


def abort_after_loss(state: State, command: AbortAfterLoss, now_ms: int) -> Outcome:
    """Abort a handle that was found open."""
    transaction = state.transactions.get(command.transaction_id)
    if transaction is None or transaction.owner is not None:
        return Outcome(reply=DONE)
    return Outcome(events=aborted_and_fenced(state, transaction, cause=Cause.LOSS, now_ms=now_ms), reply=DONE)


def _is_spared(state: State, held: TransactionalId) -> bool:
    transaction = state.open_transaction(held)
    if transaction is None:
        return held.transaction_timeout_ms == NO_TIMEOUT_MS
    return transaction.timeout_ms == NO_TIMEOUT_MS or held.has_prepared(transaction)
