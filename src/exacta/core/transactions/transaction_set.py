"""Ending a set of transactions in one step, all or none: a request of our own (docs/reference/end-transactions.md).

Every entry of the command is fenced as by EndTxn (`authorize`) and then looked up here; `wanted` is the phase that the
asked outcome leads to.

    phase \\ input                     end the set with `wanted`
    ONGOING, holds what is named      open
    ONGOING, lacks a named partition  INVALID_STATE *
    `wanted`                          ended **
    the other COMPLETE phase          INVALID_STATE
    EMPTY                             INVALID_STATE
    any, under a pair that is unused  INVALID_STATE

    the entries are    the set
    all open           every transaction ends, in one outcome
    all ended          answered as the first time: this is the repeat after a lost answer
    anything else      refused as a whole, and nothing happens

In a mixture of open and ended entries, the ended ones are what is refused: resolving that is the caller's affair.

One outcome is one step for everybody. The engine takes all events of a command before anything else, puts them into one
journal group, which is durable whole or not at all, and shows readers what came of it in one go. So every aborted list
and group offset moves at once, for 2 transactions as for one, and so does every last stable offset, up to the next
transaction that is open in its partition: one from outside of the set, if it began before, holds back what lies behind
its first record there (invariant 3).

* A transaction may be of the same epoch and yet not be the one that its owner wrote to: that one was ended from
outside, and what came last began another (version 1 of the protocol cannot tell them apart). Hence the partitions that
an entry may name: the open transaction must have written to each. Of a joint one only what lies under its owner's
producer id counts. What the other side has written does not show that it is the transaction that is meant.

An entry that is concluded has `wanted` or not like any other that has ended. Where the set is answered as ended, its
holder has heard of it (`conclusion.py`).

** A crash may have forgotten an acknowledged begin (decision 0002), so a transactional id that looks ended may have a
transaction that nobody knows of. No write to that was acknowledged, or its producer is fenced (`loss.py`). Answering
for such a one that its commit succeeded is therefore true, as it is for EndTxn. An EMPTY one is refused also after a
crash: the answer claims that all of the set is there, and of this entry nothing ever was.
"""

from collections import Counter
from collections.abc import Iterable

from exacta.core.commands import EndTransactions, TransactionToEnd
from exacta.core.ids import Cause, Offset, PartitionId
from exacta.core.outcome import Outcome
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, TransactionsRefused
from exacta.core.state.state import State
from exacta.core.state.transaction import Transaction, TransactionalId
from exacta.core.transactions.conclusion import heard
from exacta.core.transactions.ending import ending
from exacta.core.transactions.transaction import authorize


def end_all(state: State, command: EndTransactions, now_ms: int) -> Outcome:
    """Commit or abort every transaction of the set, or none (see the tables above)."""
    if len(command.transactions) > state.limits.max_transactions_ended_at_once:
        return Outcome(reply=Rejection.TOO_MANY_TRANSACTIONS)
    named = Counter(each.transactional_id for each in command.transactions)
    found = [
        _look_up(state, each, commit=command.commit)
        if named[each.transactional_id] == 1
        else Rejection.INVALID_TRANSACTIONAL_ID
        for each in command.transactions
    ]
    known = [held for held in found if not isinstance(held, Rejection)]
    if len(known) < len(found):
        return _refuse(held if isinstance(held, Rejection) else None for held in found)
    still_open = [held.open is not None for held in known]
    if not any(still_open):
        unheard = (held for held in known if held.concluded is not None)
        return Outcome(events=tuple(heard(each, commit=command.commit, now_ms=now_ms) for each in unheard), reply=DONE)
    if not all(still_open):
        return _refuse(None if each else Rejection.INVALID_TRANSACTION_STATE for each in still_open)
    transactions = [state.transactions[held.open] for held in known if held.open is not None]
    if sum(len(each.partitions) for each in transactions) > state.limits.max_partitions_ended_at_once:
        return Outcome(reply=Rejection.TOO_MANY_TRANSACTIONS)
    next_offsets: dict[PartitionId, Offset] = {}
    events = tuple(
        ending(state, each, commit=command.commit, now_ms=now_ms, next_offsets=next_offsets, cause=Cause.SET)
        for each in transactions
    )
    return Outcome(events=events, reply=DONE)


def _look_up(state: State, entry: TransactionToEnd, *, commit: bool) -> TransactionalId | Rejection:
    """Return the transactional id's entry if its transaction is open, or ended as asked; else why it is refused."""
    held = authorize(state, entry.transactional_id, entry.producer_id, entry.producer_epoch)
    if isinstance(held, Rejection):
        return held
    transaction = state.open_transaction(held)
    if transaction is not None:
        accepted = all(_wrote_to(state, transaction, topic, index) for topic, index in entry.partitions)
    else:
        accepted = not held.has_unused_pair and held.last_committed is commit
    return held if accepted else Rejection.INVALID_TRANSACTION_STATE


def _wrote_to(state: State, transaction: Transaction, topic: str, index: int) -> bool:
    partition = state.partition(topic, index)
    return partition is not None and partition.has_open(transaction.producer_ids[0])


def _refuse(rejections: Iterable[Rejection | None]) -> Outcome:
    return Outcome(reply=TransactionsRefused(rejections=tuple(rejections)))
