"""Binding a transactional id to a producer id and epoch: who holds it from now on (KIP-98, KIP-360, KIP-939).

    phase \\ InitProducerId presents    nothing *    the pair     the pair before      another pair
    EMPTY                              bump         bump         the present pair **  fenced
    ONGOING                            abort, bump  abort, bump  fenced               fenced
    COMPLETE, the pair is unused       bump         bump         the present pair **  fenced
    COMPLETE, ended under the pair     bump         bump         fenced               fenced
    ONGOING, with keep_prepared ***    keep, bump   keep, bump   the present pair **  fenced

* A takeover: the pair before is good for nothing any more. A transactional id that nobody holds is bound to a new
producer id whatever is presented: that was forgotten, or is another cluster's, and nobody here can be fenced by it.

** A repeat of the request that made the present pair, or the first word of a client whose transaction timed out or
was ended by EndTxn of version 2 (KIP-360). Nobody else has been given the present pair, and nothing was done under it:
else a late repeat would let a second transaction begin under a pair that names one (decision 0011). While a transaction
is open this holds only where the pair before belongs to the prepared transaction's last holder; else it is fenced.

*** The transaction stays open under the pair that it has, and the holder of the id now ends it by the new pair, which
writes nothing into it. Its own time-out goes on, or that it has none. Without an open transaction the flag
means nothing.

A predecessor is fenced, and what it left open aborted, in one step: nobody is ever told to wait for that.
"""

from exacta.core.commands import InitProducerId
from exacta.core.events import Event, ProducerBound, ProducerIdAllocated
from exacta.core.ids import NO_PRODUCER_ID, NO_TIMEOUT_MS, Cause, ProducerEpoch, TransactionId
from exacta.core.outcome import Outcome
from exacta.core.rejections import Rejection
from exacta.core.replies import ProducerBoundReply
from exacta.core.state.state import State
from exacta.core.state.transaction import Transaction, TransactionalId
from exacta.core.transactions.ending import NO_PAIR, ending
from exacta.core.transactions.numbering import Pair, after_reservation, next_pair
from exacta.core.values.transactions import Phase


def init_producer_id(state: State, command: InitProducerId, now_ms: int) -> Outcome:
    """Bind a producer id and epoch (see the table above)."""
    if command.transactional_id is None:
        producer_id = state.volatile.next_producer_id
        reply = ProducerBoundReply(producer_id=producer_id, producer_epoch=ProducerEpoch(0))
        return Outcome(events=after_reservation(state, ProducerIdAllocated(producer_id=producer_id)), reply=reply)
    if not 0 < len(command.transactional_id.encode()) <= state.limits.transactional_id_max_bytes:
        return Outcome(reply=Rejection.INVALID_TRANSACTIONAL_ID)
    if not command.two_phase and not 0 < command.transaction_timeout_ms <= state.limits.transaction_max_timeout_ms:
        return Outcome(reply=Rejection.INVALID_TRANSACTION_TIMEOUT)
    held = state.transactional_ids.get(command.transactional_id)
    if held is None:
        if len(state.transactional_ids) >= state.limits.max_transactional_ids:
            return Outcome(reply=Rejection.LIMIT_REACHED)
        bound = _bound(command, (state.volatile.next_producer_id, ProducerEpoch(0)), NO_PAIR, now_ms)
        return Outcome(events=after_reservation(state, bound), reply=_reply(bound, None))
    return _bind_again(state, held, command, now_ms)


def _bind_again(state: State, held: TransactionalId, command: InitProducerId, now_ms: int) -> Outcome:
    transaction = state.open_transaction(held)
    prepared = transaction.transaction_id if transaction is not None and command.keep_prepared else None
    open_pair = transaction.pair if transaction is not None and command.keep_prepared else None
    presented = (command.producer_id, command.producer_epoch)
    previous = NO_PAIR
    if command.producer_id != NO_PRODUCER_ID:
        if presented == held.previous_pair and _may_repeat(held, transaction, prepared):
            bound = _bound(command, held.pair, presented, now_ms, prepared=prepared)
            repeats = held.phase in (Phase.EMPTY, Phase.ONGOING)
            if repeats and bound.transaction_timeout_ms == held.transaction_timeout_ms:
                return Outcome(reply=_reply(bound, open_pair))
            # It asks for another time-out; or what ended before is not repeated from here on.
            return Outcome(events=(bound,), reply=_reply(bound, open_pair))
        if presented != held.pair:
            return Outcome(reply=Rejection.PRODUCER_FENCED)
        previous = held.pair
    following = next_pair(state, *held.pair)
    bound = _bound(command, following, previous, now_ms, prepared=prepared, takes_over=previous == NO_PAIR)
    events: tuple[Event, ...] = (bound,)
    if transaction is not None and prepared is None:
        events = (ending(state, transaction, commit=False, now_ms=now_ms, cause=bound.cause), bound)
    return Outcome(events=after_reservation(state, *events), reply=_reply(bound, open_pair))


def _may_repeat(held: TransactionalId, transaction: Transaction | None, prepared: TransactionId | None) -> bool:
    """Return whether who presents the pair before may be told the present one (see ** above)."""
    if transaction is None:
        return held.has_unused_pair
    return prepared is not None and held.has_prepared(transaction)


def _bound(
    command: InitProducerId,
    pair: Pair,
    previous: Pair,
    now_ms: int,
    *,
    prepared: TransactionId | None = None,
    takes_over: bool = False,
) -> ProducerBound:
    assert command.transactional_id is not None
    return ProducerBound(
        transactional_id=command.transactional_id,
        producer_id=pair[0],
        producer_epoch=pair[1],
        transaction_timeout_ms=NO_TIMEOUT_MS if command.two_phase else command.transaction_timeout_ms,
        at_ms=now_ms,
        previous_producer_id=previous[0],
        previous_producer_epoch=previous[1],
        prepared=prepared,
        cause=Cause.NEW_INSTANCE if takes_over else Cause.OWNER,
        client_id=command.client_id,
        client_host=command.client_host,
        principal=command.principal,
    )


def _reply(bound: ProducerBound, open_pair: Pair | None) -> ProducerBoundReply:
    open_producer_id, open_producer_epoch = open_pair or NO_PAIR
    return ProducerBoundReply(
        producer_id=bound.producer_id,
        producer_epoch=bound.producer_epoch,
        open_producer_id=open_producer_id,
        open_producer_epoch=open_producer_epoch,
    )


def aborted_and_fenced(
    state: State, transaction: Transaction, *, cause: Cause, now_ms: int, client: tuple[str, str] = ("", "")
) -> tuple[Event, ...]:
    """Abort an open transaction, and fence its producer if it has one, for another's sake (`client`: who asks)."""
    held = state.holder_of(transaction)
    if held is None:
        return (ending(state, transaction, commit=False, now_ms=now_ms, cause=cause, client=client),)
    bound = _fence(state, held, cause=cause, now_ms=now_ms, client=client)
    return after_reservation(state, ending(state, transaction, commit=False, now_ms=now_ms, cause=cause), bound)


def fenced(state: State, held: TransactionalId, *, cause: Cause, now_ms: int) -> tuple[Event, ...]:
    """Fence a producer by a bumped epoch."""
    return after_reservation(state, _fence(state, held, cause=cause, now_ms=now_ms, client=("", "")))


def _fence(state: State, held: TransactionalId, *, cause: Cause, now_ms: int, client: tuple[str, str]) -> ProducerBound:
    """Make the event that bumps the epoch.

    The same client may still learn the new epoch by presenting the old one (KIP-360, KIP-588).
    """
    producer_id, producer_epoch = next_pair(state, *held.pair)
    return ProducerBound(
        transactional_id=held.transactional_id,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transaction_timeout_ms=held.transaction_timeout_ms,
        at_ms=now_ms,
        previous_producer_id=held.producer_id,
        previous_producer_epoch=held.producer_epoch,
        cause=cause,
        client_id=client[0],
        client_host=client[1],
    )
