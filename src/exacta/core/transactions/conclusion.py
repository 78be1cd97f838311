"""The holder of a transactional id whose joint transaction the other side has ended (decision 0038).

The id is *concluded* then: its holder has not heard yet how its transaction ended. Until it has said an end, or
initialised the id again, no write of it begins the next transaction. It may be a late write of the one that ended, and
nobody can tell. The columns say how the transaction ended, and whether its holder had registered anything with it.

                                committed,   committed,   aborted,     aborted,
    input                       with a part  without *    with a part  without *
    a write **, either version  INVALID      ABORTABLE    ABORTABLE    ABORTABLE
    AddOffsetsToTxn             INVALID      NOTHING      ABORTABLE    NOTHING ***
    EndTxn(commit), version 1   done         done         ABORTABLE    ABORTABLE
    EndTxn(commit), version 2   done, bump   done, bump   ABORTABLE    ABORTABLE
    EndTxn(abort), version 1    INVALID      done         done         done
    EndTxn(abort), version 2    INVALID      done, bump   done, bump   done, bump
    EndTransactions(commit)     done         done         INVALID      INVALID
    EndTransactions(abort)      INVALID      INVALID      done         done
    JoinTransaction             INVALID      ABORTABLE    ABORTABLE    ABORTABLE
    JoinTransaction, a handle   INVALID      joins        ABORTABLE    joins
    InitProducerId              as ever      as ever      as ever      as ever

ABORTABLE is TRANSACTION_ABORTABLE: the holder aborts, and goes on with its next transaction. INVALID is
INVALID_TRANSACTION_STATE: no abort can repair it, because the rest of the transaction is committed. "Done" and
InitProducerId end the state; whatever is refused leaves it as it is.

* A client that has registered nothing sends no EndTxn, and goes on with its next transaction. So it may name the next
handle at once, and an abort is true of all that it has written: nothing.

** Records, offsets of a group, and what registers a partition: Produce, TxnOffsetCommit and AddPartitionsToTxn. A
repeat of a batch is answered as a repeat before this is asked.

*** NOTHING_TO_ABORT. Clients abort without an EndTxn if AddOffsetsToTxn is refused and was their first request. They
would be refused again in each of their next transactions. So they are told to initialise again: Java's client does so,
and librdkafka has to be closed for that.
"""

from exacta.core.events import ConclusionHeard
from exacta.core.rejections import Rejection
from exacta.core.state.transaction import Conclusion, TransactionalId


def refusal_of_write(held: TransactionalId) -> Rejection | None:
    """Return why a holder without an open transaction may not begin one; None: nothing is concluded."""
    if held.concluded is None:
        return None
    is_beyond_repair = held.last_committed and held.concluded is Conclusion.OF_WHAT_IT_WROTE
    return Rejection.INVALID_TRANSACTION_STATE if is_beyond_repair else Rejection.TRANSACTION_ABORTABLE


def refusal_of_group(held: TransactionalId) -> Rejection | None:
    """Return why a holder without an open transaction may not begin one by a group; None: nothing is concluded."""
    return Rejection.NOTHING_TO_ABORT if held.concluded is Conclusion.OF_NOTHING else refusal_of_write(held)


def refusal_of_end(held: TransactionalId, *, commit: bool) -> Rejection | None:
    """Return why EndTxn of a concluded id is refused; None: it is answered as if it had ended the transaction."""
    if commit is held.last_committed:
        return None
    if commit:
        return Rejection.TRANSACTION_ABORTABLE
    return None if held.concluded is Conclusion.OF_NOTHING else Rejection.INVALID_TRANSACTION_STATE


def heard(held: TransactionalId, *, commit: bool, now_ms: int) -> ConclusionHeard:
    """Make the event that its holder has said an end and keeps its pair."""
    return ConclusionHeard(transactional_id=held.transactional_id, committed=commit, at_ms=now_ms)
