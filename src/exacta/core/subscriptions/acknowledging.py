"""Acknowledgements: at once, or together with a transaction (PIP-31), one by one or all before an offset.

    the message is             acknowledged at once   in a transaction
    not acknowledged           acknowledged           pending
    acknowledged               nothing to do          CONFLICT
    pending in this one        -                      CONFLICT *
    pending in another one     acknowledged **        CONFLICT

    all messages before an offset that is                 acknowledged at once   in a transaction
    not beyond the position                               nothing to do          CONFLICT
    not beyond what this one has acknowledged so          -                      CONFLICT
    beyond what another one has acknowledged so           acknowledged **        CONFLICT
    beyond what others have acknowledged one by one       acknowledged **        CONFLICT ***
    beyond all of these, and the consumer is not active   acknowledged           CONFLICT ****
    beyond all of these, and beyond what it has got       acknowledged           CONFLICT ****
    beyond all of these                                   acknowledged           pending

* Apache Pulsar refuses it too. An entry of several messages conflicts only where the messages overlap. There is nothing
to do if all that a command names is pending in its transaction, and the command may be a repeat (`may_repeat`).

** PIP-31 says that such an acknowledgement is dropped. Apache Pulsar 4.2 acknowledges at once, and so does this.

*** Apache Pulsar 4.2 checks the two kinds of acknowledgement against the same kind only. Then two transactions that
both commit have acknowledged one message. Here the first one has it.

**** Only the active consumer of an Exclusive or Failover subscription acknowledges so in a transaction. Another one may
still have messages of a connection that it has lost, which the active one has got meanwhile. If it could commit them,
the active one would commit them again, since nobody can tell which messages a cumulative acknowledgement is about.
The same holds for messages that were given back, and that it has not got again. Apache Pulsar 4.2 checks neither.

A refusal changes nothing, also where only one of several messages is in the way.

A consumer that is disconnected acknowledges nothing any more (CONSUMER_NOT_FOUND). Clients group acknowledgements, so
that one of before a seek may come after it. It would take away what the seek has brought back.

Messages of a non-durable subscription are acknowledged at once only. A transaction is durable, and could not say after
a restart what became of them. Apache Pulsar takes such an acknowledgement, and a restart forgets it.
"""

from collections.abc import Iterable
from itertools import islice

from exacta.core.commands.subscriptions import Acknowledge
from exacta.core.events import MessagesAcknowledgedInTransaction
from exacta.core.ids import Offset, TransactionId
from exacta.core.outcome import Outcome
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE
from exacta.core.state import weights
from exacta.core.state.delivery import Delivery
from exacta.core.state.partition import Partition
from exacta.core.state.redeliveries import MOST_AT_ONCE, RedeliveryCount
from exacta.core.state.state import State
from exacta.core.state.subscription import Subscription
from exacta.core.state.transaction import Transaction
from exacta.core.subscriptions.durability import acknowledged
from exacta.core.subscriptions.isolation import end_of
from exacta.core.subscriptions.subscribing import find
from exacta.core.transactions.handle import extension_in_handle, open_handle
from exacta.core.values.runs import Run, add, missing, overlaps, runs_between
from exacta.core.values.usage import Table


def acknowledge(state: State, command: Acknowledge, now_ms: int) -> Outcome:
    """Acknowledge messages (see the tables above)."""
    found = find(state, command.topic, command.partition, command.subscription)
    if isinstance(found, Rejection):
        return Outcome(reply=found)
    partition, subscription, delivery = found
    if command.consumer_id is not None and (delivery is None or command.consumer_id not in delivery.consumers):
        return Outcome(reply=Rejection.CONSUMER_NOT_FOUND)
    if not _are_seen(end_of(partition, subscription), command):
        return Outcome(reply=Rejection.OFFSET_OUT_OF_RANGE)
    if command.transaction is not None:
        return _acknowledge_in_handle(state, found, command, command.transaction, now_ms)
    new = _not_acknowledged(subscription, _with_passed(delivery, command.runs))
    before = _beyond_passed(delivery, command.before or Offset(0))
    if not new and before <= subscription.position:
        return Outcome(reply=DONE)
    if new and not _has_room(state, subscription, subscription.acknowledged, new):
        return Outcome(reply=Rejection.LIMIT_REACHED)
    counts = _counts(state, delivery, len(new))
    return Outcome(events=(acknowledged(partition, subscription, tuple(new), before, counts),), reply=DONE)


def _counts(state: State, delivery: Delivery | None, runs: int) -> tuple[RedeliveryCount, ...]:
    """Return the redelivery counts to write with this many runs; for want of room for them none of these is refused."""
    if delivery is None or not delivery.unwritten:
        return ()
    room = state.limits.max_subscription_bytes // 2 - state.volatile.usage[Table.SUBSCRIPTIONS].total
    most = min(MOST_AT_ONCE, room // weights.RUN - 2 * runs)  # each run may split another one
    entries = (delivery.entries[base] for base in islice(delivery.unwritten, max(0, most)))
    return tuple((entry.base, entry.last, entry.redeliveries) for entry in entries)


def _with_passed(delivery: Delivery | None, runs: Iterable[Run]) -> list[Run]:
    """Return the runs with the offsets beside them that are for nobody, so that these fragment no cursor."""
    if delivery is None:
        return list(runs)
    wider: list[Run] = []
    for first, last in runs:
        for passed in runs_between(delivery.passed, Offset(first - 1), Offset(last + 1)):
            first, last = min(first, passed[0]), max(last, passed[1])
        wider.append((first, last))
    return wider


def _beyond_passed(delivery: Delivery | None, before: Offset) -> Offset:
    """Return the offset, or the one after what is for nobody from it on."""
    passed = [] if delivery is None or not before else runs_between(delivery.passed, before, before)
    return Offset(passed[0][1] + 1) if passed else before


def _beyond_passed_in(
    subscription: Subscription, delivery: Delivery | None, before: Offset, transaction_id: TransactionId
) -> Offset:
    """Return the same for a transaction: what is for nobody may be pending in another one, with what is beside it."""
    beyond = _beyond_passed(delivery, before)
    has_more = beyond > before and not _has_cumulative_conflict(subscription, beyond, transaction_id)
    return beyond if has_more else before


def _are_seen(end: Offset, command: Acknowledge) -> bool:
    """Return whether a consumer that gets what lies before `end` can have seen all of these messages."""
    return all(0 <= first <= last < end for first, last in command.runs) and 0 <= (command.before or 0) <= end


def _not_acknowledged(subscription: Subscription, runs: Iterable[Run]) -> list[Run]:
    new: list[Run] = []
    for first, last in runs:
        for part in missing(subscription.acknowledged, max(first, subscription.position), last):
            add(new, *part)
    return new


def _has_room(state: State, subscription: Subscription, present: list[Run], new: list[Run]) -> bool:
    """Return whether the subscription may have these runs more; one at its position is none, nor one that joins two.

    Commits may have made too many. Then what makes no more of them is taken: only so they become fewer.
    """
    most = state.limits.max_acknowledged_runs
    if len(present) + len(new) <= most or (len(present) <= most and new[0][0] == subscription.position):
        return True
    more = sum(1 - len(runs_between(present, Offset(first - 1), Offset(last + 1))) for first, last in new)
    return len(present) + more - (new[0][0] == subscription.position) <= max(most, len(present))


def _acknowledge_in_handle(
    state: State,
    found: tuple[Partition, Subscription, Delivery | None],
    command: Acknowledge,
    transaction_id: TransactionId,
    now_ms: int,
) -> Outcome:
    partition, subscription, delivery = found
    if not subscription.is_durable:
        return Outcome(reply=Rejection.INVALID_SUBSCRIPTION)
    transaction = open_handle(state, transaction_id, now_ms)
    if isinstance(transaction, Rejection):
        return Outcome(reply=transaction)
    if command.may_repeat and _is_repeat(subscription, command, transaction_id):
        return Outcome(reply=DONE)
    if _is_overtaken(delivery, command) or _has_conflict(subscription, command, transaction_id):
        return Outcome(reply=Rejection.TRANSACTION_CONFLICT)
    if not _has_room_in_transaction(state, subscription, transaction, len(command.runs)):
        return Outcome(reply=Rejection.LIMIT_REACHED)
    key = (partition.partition_id, subscription.name)
    before = extension_in_handle(state, transaction, subscription=key, now_ms=now_ms)
    if isinstance(before, Rejection):
        return Outcome(reply=before)
    runs: list[Run] = []
    for named, wider in zip(command.runs, _with_passed(delivery, command.runs), strict=True):
        for part in subscription.free(*wider) if wider != named else [named]:
            add(runs, *part)
    pending = MessagesAcknowledgedInTransaction(
        transaction_id=transaction_id,
        partition_id=partition.partition_id,
        name=subscription.name,
        runs=tuple(runs),
        before=_beyond_passed_in(subscription, delivery, command.before or Offset(0), transaction_id),
        counts=_counts(state, delivery, len(runs)),
    )
    return Outcome(events=(*before.events, pending), reply=DONE, inside_transaction=before.inside_transaction)


def _is_repeat(subscription: Subscription, command: Acknowledge, transaction_id: TransactionId) -> bool:
    """Return whether a transaction has acknowledged all of these messages one by one."""
    held = subscription.pending.get(transaction_id, [])
    return not command.before and not any(missing(held, *run) for run in command.runs)


def _is_overtaken(delivery: Delivery | None, command: Acknowledge) -> bool:
    """Return whether a consumer that is not active, or has not got as much, acknowledges all before an offset."""
    if command.before is None or command.consumer_id is None or delivery is None:
        return False
    return delivery.is_in_order and (delivery.active != command.consumer_id or command.before > delivery.read_to)


def _has_conflict(subscription: Subscription, command: Acknowledge, transaction_id: TransactionId) -> bool:
    if command.before is not None and _has_cumulative_conflict(subscription, command.before, transaction_id):
        return True
    named: list[Run] = []
    for first, last in command.runs:
        if subscription.is_acknowledged(first, last) or subscription.pending_in(first, last) is not None:
            return True
        if overlaps(named, first, last):
            return True
        add(named, first, last)
    return False


def _has_cumulative_conflict(subscription: Subscription, before: Offset, transaction_id: TransactionId) -> bool:
    if before <= subscription.position:
        return True
    present = subscription.cumulative
    if present is not None and (present.transaction_id != transaction_id or before <= present.before):
        return True
    return any(
        key != transaction_id and overlaps(runs, Offset(0), Offset(before - 1))
        for key, runs in subscription.pending.items()
    )


def _has_room_in_transaction(state: State, subscription: Subscription, transaction: Transaction, new: int) -> bool:
    """Return whether a transaction may acknowledge this many runs more, and whether all transactions together may."""
    limits = state.limits
    if transaction.acknowledged_runs + new > limits.max_acknowledged_runs_per_transaction:
        return False
    if state.volatile.pending_runs + new > limits.max_pending_runs:
        return False
    is_known = transaction.transaction_id in subscription.pending
    return is_known or len(subscription.pending) < limits.max_pending_transactions_per_subscription
