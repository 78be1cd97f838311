"""The holder of a transactional id whose joint transaction the other side has ended (decision 0038).

The id is *concluded* then: its holder has not heard yet how its transaction ended. Until it has said an end, or
initialised the id again, no write of it begins the next transaction. It may be a late write of the one that ended, and
nobody can tell. The columns say how the transaction ended, and whether its holder had registered anything with it.

    input                       committed,   committed,   aborted,     aborted,
                                with a part  without *    with a part  without *
    a write **, either version  INVALID      ABORTABLE    ABORTABLE    ABORTABLE
    AddOffsetsToTxn             INVALID      done ***     ABORTABLE    done ***
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
InitProducerId end the state, but for AddOffsetsToTxn; whatever is refused leaves it as it is.

* A client that has registered nothing sends no EndTxn, and goes on with its next transaction. So it may name the next
handle at once, and an abort is true of all that it has written: nothing.

** Records, offsets of a group, and the registration of partitions: Produce, TxnOffsetCommit and AddPartitionsToTxn. A
repeat of a batch is answered as a repeat before this is asked.

*** It changes nothing, and TxnOffsetCommit is refused after it. Java's client (version 1) and librdkafka send no end of
a transaction in which they have registered nothing, whatever AddOffsetsToTxn was refused with. A producer that never
does anything but send offsets would be told to abort for ever. Once it has registered something, it sends an end. (A
refused AddPartitionsToTxn makes both of them initialise the id again, by UNKNOWN_PRODUCER_ID, KIP-360.)
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
    """Return why AddOffsetsToTxn of a concluded id is refused; None: it succeeds, and the write after it is refused."""
    return None if held.concluded is Conclusion.OF_NOTHING else refusal_of_write(held)


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
