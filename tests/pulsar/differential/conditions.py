"""The signs by which each difference that is meant is known (`differences.py`)."""

from __future__ import annotations

import re

from tests.pulsar.differential.moments import Moment
from tests.pulsar.differential.side import HANGS_UP, SILENT
from tests.pulsar.differential.steps import (
    Ack,
    AckUpTo,
    Close,
    End,
    Expire,
    Redeliver,
    Reload,
    Seek,
    SeekTime,
    Send,
    Subscribe,
    Unsubscribe,
    first_held_back,
)


def acknowledges_up_to_in_a_shared_one(moment: Moment) -> bool:
    return (
        isinstance(moment.step, AckUpTo)
        and moment.answers == ("ok", "NotAllowedError")
        and moment.kind_of(moment.step.consumer) in ("Shared", "Key_Shared")
    )


def reads_in_a_transaction(moment: Moment) -> bool:
    step = moment.step
    return (
        isinstance(step, Ack | AckUpTo)
        and bool(step.transaction)
        and moment.answers[1] == "NotAllowedError"
        and moment.kind_of(step.consumer) == "reader"
    )


def acknowledges_what_nobody_has_seen(moment: Moment) -> bool:
    """Return whether an entry is acknowledged that is in an open transaction, or behind one."""
    step = moment.step
    return (
        isinstance(step, Ack | AckUpTo)
        and moment.answers[1] == ("NotAllowedError" if step.answered or step.transaction else HANGS_UP)
        and step.entry >= first_held_back(moment.before)
    )


def unsubscribes_beside_others(moment: Moment) -> bool:
    return isinstance(moment.step, Unsubscribe) and moment.answers == ("MetadataError", "ConsumerBusy")


def closes_those_that_wait(moment: Moment) -> bool:
    """Return whether all that differs is that a seek has also closed those that wait in a Failover subscription."""
    if not isinstance(moment.step, Seek | SeekTime) or moment.answers[0] != moment.answers[1]:
        return False
    waiting = {f"{name} closed" for name in "xy" if moment.kind_of(name) == "Failover"}
    return moment.theirs.came == tuple(
        each for each in moment.ours.came if each in moment.theirs.came or each not in waiting
    )


def mixes_in_one_transaction(moment: Moment) -> bool:
    step = moment.step
    return (
        isinstance(step, Ack)
        and bool(step.transaction)
        and moment.answers == ("ok", "TransactionConflict")
        and moment.acks(AckUpTo, step.transaction)
    )


def mixes_two_transactions(moment: Moment) -> bool:
    step = moment.step
    other = Ack if isinstance(step, AckUpTo) else AckUpTo
    return (
        isinstance(step, Ack | AckUpTo)
        and bool(step.transaction)
        and moment.answers == ("ok", "TransactionConflict")
        and any(moment.acks(other, name) for name in {"t", "u"} - {step.transaction})
    )


def has_aborted_both_kinds(moment: Moment) -> bool:
    """Return whether the consumer asks for everything after an abort of single and cumulative acknowledgements."""
    ended = {each.transaction for each in moment.before if isinstance(each, End | Expire)}
    return (
        isinstance(moment.step, Redeliver)
        and any(moment.acks(Ack, each) and moment.acks(AckUpTo, each) for each in ended)
        and set(moment.theirs.came) < set(moment.ours.came)
    )


def comes_late(moment: Moment) -> bool:
    step = moment.step
    return (
        isinstance(step, Send | Ack | AckUpTo)
        and bool(step.transaction)
        and step.transaction not in moment.open_ones()
        and moment.answers[0] in ("ok", "TransactionConflict")
        and moment.answers[1] in ("NotAllowedError", "InvalidTxnStatus", "TransactionNotFound")
    )


def withholds_all_before(moment: Moment) -> bool:
    """Return whether Pulsar brings again what an open transaction has acknowledged cumulatively."""
    theirs, ours = moment.entries
    return (
        isinstance(moment.step, Redeliver | Subscribe | Close | Seek | SeekTime | Reload)
        and moment.answers[0] == moment.answers[1]
        and any(moment.acks(AckUpTo, name) for name in moment.open_ones())
        and (theirs >= ours or (moment.has_few_permits() and bool(theirs - ours)))
    )


def goes_on(moment: Moment) -> bool:
    """Return whether a consumer gets what had to wait for the end of a cumulative acknowledgement."""
    step = moment.step
    theirs, ours = moment.entries
    return (
        isinstance(step, End | Expire)
        and moment.answers[0] == moment.answers[1]
        and moment.acks(AckUpTo, step.transaction)
        and any(isinstance(each, Redeliver | Subscribe | Close | Seek | SeekTime | Reload) for each in moment.before)
        and theirs < ours
    )


def closes_for_order(moment: Moment) -> bool:
    """Return whether consumers are closed by the abort of a cumulative acknowledgement, and get everything again."""
    step = moment.step
    theirs, ours = moment.entries
    return (
        ((isinstance(step, End) and not step.commit) or isinstance(step, Expire))
        and moment.answers[0] == moment.answers[1]
        and moment.acks(AckUpTo, step.transaction)
        and any(each.endswith(" closed") for each in moment.ours.came)
        and theirs <= ours
    )


def gives_back_nothing(moment: Moment) -> bool:
    """Return whether all that a transaction had acknowledged was acknowledged at once as well, or skipped."""
    step = moment.step
    theirs, ours = moment.entries
    return (
        ((isinstance(step, End) and not step.commit) or isinstance(step, Expire))
        and moment.answers[0] == moment.answers[1]
        and (moment.acks(Ack, "") or moment.acks(AckUpTo, "") or moment.has_sought())
        and not ours
        and bool(theirs)
    )


def takes_out_of_a_transaction(moment: Moment) -> bool:
    """Return whether a seek brings again what a transaction had acknowledged, and a plain one as well."""
    theirs, ours = moment.entries
    parts = (each for each in moment.before if isinstance(each, Ack) and each.index is not None)
    acks_a_part = any(not each.transaction for each in parts)
    return (
        isinstance(moment.step, Seek | SeekTime)
        and moment.answers[0] == moment.answers[1]
        and (moment.acks(AckUpTo, "") or acks_a_part)
        and any(moment.acks(Ack, name) for name in moment.open_ones())
        and theirs < ours
    )


def aborts_without_a_consumer(moment: Moment) -> bool:
    """Return whether all that differs is that Pulsar has counted an abort while no consumer was connected."""
    without_counts = [re.sub(r" again \d+", "", "|".join(told.came)) for told in (moment.theirs, moment.ours)]
    places = [place for place, step in enumerate(moment.before) if isinstance(step, Close)]
    since_closed = moment.before[places[-1] :] if places else ()
    return (
        isinstance(moment.step, Subscribe)
        and moment.answers[0] == moment.answers[1]
        and without_counts[0] == without_counts[1]
        and any(isinstance(step, End | Expire) for step in since_closed)
    )


def breaks(moment: Moment) -> bool:
    step = moment.step
    return isinstance(step, Ack) and step.index is not None and moment.answers[0] in (HANGS_UP, SILENT)


def goes_back_in_a_batch(moment: Moment) -> bool:
    """Return whether a cumulative acknowledgement has replaced single ones of its batch."""
    both = {each.entry for each in moment.before if isinstance(each, AckUpTo) and each.index is not None} & {
        each.entry for each in moment.before if isinstance(each, Ack) and each.index is not None
    }
    theirs, ours = moment.entries
    return moment.answers[0] == moment.answers[1] and bool(both & theirs) and theirs >= ours


def acknowledges_what_was_aborted(moment: Moment) -> bool:
    step = moment.step
    if not isinstance(step, Ack | AckUpTo) or moment.answers != ("TransactionConflict", "ok"):
        return False
    sent = [each for each in moment.before if isinstance(each, Send)]
    return step.entry < len(sent) and bool(sent[step.entry].transaction)


def has_acknowledged_a_part(moment: Moment) -> bool:
    step = moment.step
    return (
        isinstance(step, Ack | AckUpTo)
        and bool(step.transaction)
        and moment.answers == ("ok", "TransactionConflict")
        and any(
            isinstance(each, Ack | AckUpTo) and each.entry == step.entry and each.index is not None
            for each in moment.before
        )
    )


def counts_on(moment: Moment) -> bool:
    """Return whether all that differs is how often entries have come of which a part is acknowledged."""
    theirs, ours = (re.sub(r" again \d+", "", "|".join(told.came)) for told in (moment.theirs, moment.ours))
    return moment.answers[0] == moment.answers[1] and theirs == ours and moment.acks_part_of_a_batch()


def permits_entries(moment: Moment) -> bool:
    theirs, ours = moment.entries
    steps = (*moment.before, moment.step)
    return (
        moment.has_few_permits()
        and any(isinstance(step, Send) and step.count > 1 for step in steps)
        and moment.answers[0] == moment.answers[1]
        and theirs > ours
    )


def _comes_after_a_restart(moment: Moment) -> bool:
    """Return whether a step shows what a restart has made of a subscription, to its consumers or to the next one."""
    has_restarted = any(isinstance(step, Reload) for step in (*moment.before, moment.step))
    return isinstance(moment.step, Reload | Subscribe) and has_restarted


def forgets_a_seek(moment: Moment) -> bool:
    """Return whether Pulsar counts what transactions had acknowledged before a seek again after a restart."""
    theirs, ours = moment.entries
    return (
        _comes_after_a_restart(moment)
        and moment.answers[0] == moment.answers[1]
        and moment.has_sought()
        and any(moment.acks(kind, name) for kind in (Ack, AckUpTo) for name in "tu")
        and theirs < ours
    )


def forgets_parts_of_batches(moment: Moment) -> bool:
    """Return whether a part of a batch comes again after a restart, to those who were there or to the next one."""
    return (
        _comes_after_a_restart(moment)
        and moment.acks_part_of_a_batch()
        and moment.answers[0] == moment.answers[1]
        and not moment.came_alike
    )


def forgets_what_it_has_refused(moment: Moment) -> bool:
    """Return whether Pulsar does not bring again what a transaction has tried to acknowledge beside a part of it."""
    theirs, ours = moment.entries
    steps = [step for step in moment.before if isinstance(step, Ack)]
    tried = {step.entry for step in steps if step.transaction and step.index is None}
    in_parts = {step.entry for step in steps if step.index is not None}
    return (
        isinstance(moment.step, Redeliver | Close)
        and moment.answers[0] == moment.answers[1]
        and moment.kind_of(moment.step.consumer) in ("Shared", "Key_Shared")
        and theirs < ours
        and ours - theirs <= tried & in_parts
    )


def has_not_got_it(moment: Moment) -> bool:
    """Return whether a transaction acknowledges all before a message that its consumer has not got, or not again.

    A consumer without many permits has not got everything; one that waits for the end of a transaction has got less.
    """
    step = moment.step
    return (
        isinstance(step, AckUpTo)
        and bool(step.transaction)
        and moment.answers == ("ok", "TransactionConflict")
        and moment.kind_of(step.consumer) in ("Exclusive", "Failover")
    )


def keeps_parts_of_batches(moment: Moment) -> bool:
    step = moment.step
    return (
        isinstance(step, Seek | SeekTime)
        and (moment.kind_of(step.consumer) in ("Shared", "Key_Shared") or moment.acks_part_of_a_batch("tu"))
        and moment.acks_part_of_a_batch()
        and not moment.came_alike
    )
