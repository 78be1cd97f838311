"""The list of what Exacta does otherwise than Apache Pulsar 4.2, and why. A test fails by any other difference.

The last word is Pulsar's, but where what it does is a weakness of it that no client relies on. A difference that
*parts* ends the comparison of its program: what follows must differ.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tests.pulsar.differential.moments import Moment
from tests.pulsar.differential.side import HANGS_UP, SILENT
from tests.pulsar.differential.steps import (
    PLENTY,
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


@dataclass(frozen=True)
class Difference:
    """A difference that is meant."""

    reason: str
    applies: Callable[[Moment], bool]
    parts: bool = False


def _acknowledges_up_to_in_a_shared_one(moment: Moment) -> bool:
    return (
        isinstance(moment.step, AckUpTo)
        and moment.answers == ("ok", "NotAllowedError")
        and moment.kind_of(moment.step.consumer) in ("Shared", "Key_Shared")
    )


def _reads_in_a_transaction(moment: Moment) -> bool:
    step = moment.step
    return (
        isinstance(step, Ack | AckUpTo)
        and bool(step.transaction)
        and moment.answers[1] == "NotAllowedError"
        and moment.kind_of(step.consumer) == "reader"
    )


def _acknowledges_what_nobody_has_seen(moment: Moment) -> bool:
    """Return whether an entry is acknowledged that is in an open transaction, or behind one."""
    step = moment.step
    return (
        isinstance(step, Ack | AckUpTo)
        and moment.answers[1] == "NotAllowedError"
        and step.entry >= first_held_back(moment.before)
    )


def _unsubscribes_beside_others(moment: Moment) -> bool:
    return isinstance(moment.step, Unsubscribe) and moment.answers == ("MetadataError", "ConsumerBusy")


def _closes_those_that_wait(moment: Moment) -> bool:
    """Return whether all that differs is that a seek has also closed those that wait in a Failover subscription."""
    if not isinstance(moment.step, Seek | SeekTime) or moment.answers[0] != moment.answers[1]:
        return False
    waiting = {f"{name} closed" for name in "xy" if moment.kind_of(name) == "Failover"}
    return moment.theirs.came == tuple(
        each for each in moment.ours.came if each in moment.theirs.came or each not in waiting
    )


def _mixes_in_one_transaction(moment: Moment) -> bool:
    step = moment.step
    return (
        isinstance(step, Ack)
        and bool(step.transaction)
        and moment.answers == ("ok", "TransactionConflict")
        and moment.acks(AckUpTo, step.transaction)
    )


def _mixes_two_transactions(moment: Moment) -> bool:
    step = moment.step
    other = Ack if isinstance(step, AckUpTo) else AckUpTo
    return (
        isinstance(step, Ack | AckUpTo)
        and bool(step.transaction)
        and moment.answers == ("ok", "TransactionConflict")
        and any(moment.acks(other, name) for name in {"t", "u"} - {step.transaction})
    )


def _aborts_both_kinds(moment: Moment) -> bool:
    step = moment.step
    return (
        isinstance(step, End)
        and not step.commit
        and moment.acks(Ack, step.transaction)
        and moment.acks(AckUpTo, step.transaction)
        and set(moment.theirs.came) < set(moment.ours.came)
    )


def _is_told_what_became_of_it(moment: Moment) -> bool:
    return moment.answers == ("registration: TransactionNotFound", "registration: InvalidTxnStatus")


def _comes_late(moment: Moment) -> bool:
    step = moment.step
    return (
        isinstance(step, Send | Ack | AckUpTo)
        and bool(step.transaction)
        and step.transaction not in moment.open_ones()
        and moment.answers[0] in ("ok", "TransactionConflict")
        and moment.answers[1] in ("NotAllowedError", "InvalidTxnStatus", "TransactionNotFound")
    )


def _withholds_all_before(moment: Moment) -> bool:
    """Return whether Pulsar brings again what an open transaction has acknowledged cumulatively."""
    theirs, ours = moment.entries
    return (
        isinstance(moment.step, Redeliver | Subscribe | Close | Seek | SeekTime | Reload)
        and moment.answers[0] == moment.answers[1]
        and any(moment.acks(AckUpTo, name) for name in moment.open_ones())
        and theirs >= ours
    )


def _gives_back_all_before(moment: Moment) -> bool:
    step = moment.step
    theirs, ours = moment.entries
    return (
        ((isinstance(step, End) and not step.commit) or isinstance(step, Expire))
        and moment.answers[0] == moment.answers[1]
        and moment.acks(AckUpTo, step.transaction)
        and theirs < ours
    )


def _gives_back_nothing(moment: Moment) -> bool:
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


def _takes_out_of_a_transaction(moment: Moment) -> bool:
    """Return whether a seek brings again what a transaction had acknowledged, and a plain cumulative one as well."""
    theirs, ours = moment.entries
    return (
        isinstance(moment.step, Seek | SeekTime)
        and moment.answers[0] == moment.answers[1]
        and moment.acks(AckUpTo, "")
        and any(moment.acks(Ack, name) for name in moment.open_ones())
        and theirs < ours
    )


def _aborts_without_a_consumer(moment: Moment) -> bool:
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


def _breaks(moment: Moment) -> bool:
    step = moment.step
    return isinstance(step, Ack) and step.index is not None and moment.answers[0] in (HANGS_UP, SILENT)


def _goes_back_in_a_batch(moment: Moment) -> bool:
    """Return whether a cumulative acknowledgement has replaced single ones of its batch."""
    both = {each.entry for each in moment.before if isinstance(each, AckUpTo) and each.index is not None} & {
        each.entry for each in moment.before if isinstance(each, Ack) and each.index is not None
    }
    theirs, ours = moment.entries
    return moment.answers[0] == moment.answers[1] and bool(both & theirs) and theirs >= ours


def _acknowledges_what_was_aborted(moment: Moment) -> bool:
    step = moment.step
    if not isinstance(step, Ack | AckUpTo) or moment.answers != ("TransactionConflict", "ok"):
        return False
    sent = [each for each in moment.before if isinstance(each, Send)]
    return step.entry < len(sent) and bool(sent[step.entry].transaction)


def _has_acknowledged_a_part(moment: Moment) -> bool:
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


def _counts_on(moment: Moment) -> bool:
    """Return whether all that differs is how often entries have come of which a part is acknowledged."""
    theirs, ours = (re.sub(r" again \d+", "", "|".join(told.came)) for told in (moment.theirs, moment.ours))
    return moment.answers[0] == moment.answers[1] and theirs == ours and moment.acks_part_of_a_batch()


def _permits_entries(moment: Moment) -> bool:
    theirs, ours = moment.entries
    steps = (*moment.before, moment.step)
    return (
        any(isinstance(step, Subscribe) and step.permits < PLENTY for step in steps)
        and any(isinstance(step, Send) and step.count > 1 for step in steps)
        and moment.answers[0] == moment.answers[1]
        and theirs > ours
    )


def _forgets_parts_of_batches(moment: Moment) -> bool:
    return isinstance(moment.step, Reload) and moment.acks_part_of_a_batch() and not moment.came_alike


def _keeps_parts_of_batches(moment: Moment) -> bool:
    step = moment.step
    return (
        isinstance(step, Seek | SeekTime)
        and moment.kind_of(step.consumer) in ("Shared", "Key_Shared")
        and moment.acks_part_of_a_batch()
        and not moment.came_alike
    )


DIFFERENCES = (
    Difference(
        "A cumulative acknowledgement in a Shared or Key_Shared subscription is refused. Pulsar answers with success,"
        " and ignores it. No client sends one.",
        _acknowledges_up_to_in_a_shared_one,
    ),
    Difference(
        "A reader acknowledges nothing in a transaction: its subscription is gone with it. Pulsar takes it, and keeps a"
        " log of it.",
        _reads_in_a_transaction,
        parts=True,
    ),
    Difference(
        "What nobody can have seen, because its transaction or one before it is open, cannot be acknowledged.",
        _acknowledges_what_nobody_has_seen,
        parts=True,
    ),
    Difference(
        "UNSUBSCRIBE beside other consumers is answered with ConsumerBusy, which says why. Pulsar says MetadataError.",
        _unsubscribes_beside_others,
    ),
    Difference(
        "A seek closes all consumers. Pulsar leaves those of a Failover subscription connected that only wait.",
        _closes_those_that_wait,
    ),
    Difference(
        "A message that a transaction has acknowledged with all before another one is not acknowledged by it once more."
        " Pulsar checks single and cumulative acknowledgements against their own kind only.",
        _mixes_in_one_transaction,
        parts=True,
    ),
    Difference(
        "A single acknowledgement conflicts with another transaction's cumulative one, and the reverse (PIP-31). Pulsar"
        " takes both, and both commit.",
        _mixes_two_transactions,
        parts=True,
    ),
    Difference(
        "An abort gives back everything that its transaction has acknowledged. Where this was done singly and"
        " cumulatively, Pulsar gives back the cumulative part, and withholds the rest.",
        _aborts_both_kinds,
        parts=True,
    ),
    Difference(
        "A registration with a transaction that has ended is answered with InvalidTxnStatus, as long as it is known."
        " Pulsar answers with TransactionNotFound.",
        _is_told_what_became_of_it,
    ),
    Difference(
        "What comes after the end of its transaction is refused for ever. Pulsar takes it: the topic stands still"
        " behind a message, and an acknowledged message is withheld.",
        _comes_late,
        parts=True,
    ),
    Difference(
        "What an open transaction has acknowledged cumulatively is withheld, as what it has acknowledged singly. Pulsar"
        " brings it again after a redelivery, a seek, and to every new consumer.",
        _withholds_all_before,
    ),
    Difference(
        "An abort brings back what its transaction has acknowledged cumulatively. Pulsar waits until the consumer asks"
        " for it.",
        _gives_back_all_before,
    ),
    Difference(
        "An abort that has nothing to give back redelivers nothing, because all of it was acknowledged at once as well,"
        " or skipped by a seek. Pulsar redelivers everything that is not acknowledged.",
        _gives_back_nothing,
    ),
    Difference(
        "A plain cumulative acknowledgement takes messages out of their transaction, as a single one does. Pulsar"
        " leaves them pending, which shows after a seek back.",
        _takes_out_of_a_transaction,
        parts=True,
    ),
    Difference(
        "Redelivery counts are gone with the last consumer. Pulsar's are gone as well, but an abort after that counts"
        " again, up to 1.",
        _aborts_without_a_consumer,
        parts=True,
    ),
    Difference(
        "An acknowledgement of one message of a batch that an open transaction has acknowledged as a whole is judged as"
        " others are. Pulsar closes the connection, or does not answer.",
        _breaks,
        parts=True,
    ),
    Difference(
        "A cumulative acknowledgement that ends within a batch takes nothing back. Pulsar forgets which messages behind"
        " it in the batch were acknowledged one by one.",
        _goes_back_in_a_batch,
        parts=True,
    ),
    Difference(
        "An aborted message, which nobody gets, may be acknowledged in a transaction. Pulsar answers with"
        " TransactionConflict.",
        _acknowledges_what_was_aborted,
        parts=True,
    ),
    Difference(
        "An acknowledgement of a part of a batch that was answered is kept. Pulsar forgets it when the topic is loaded"
        " again, unless it has to write down acknowledged entries, too.",
        _forgets_parts_of_batches,
        parts=True,
    ),
    Difference(
        "An acknowledgement of a part of a batch leaves its redelivery count as it is. Pulsar begins again at 0, so"
        " that a message that always fails does not get into its dead-letter topic.",
        _counts_on,
        parts=True,
    ),
    Difference(
        "A consumer gets no more messages than it has permitted, but for the rest of an entry. Pulsar reads as many"
        " entries of a backlog as there are permits, or as it guesses from the batches before.",
        _permits_entries,
        parts=True,
    ),
    Difference(
        "In a transaction a batch conflicts with the acknowledgement of any of its messages, as in Pulsar's"
        " Shared subscriptions. Those that deliver in order take it there.",
        _has_acknowledged_a_part,
        parts=True,
    ),
    Difference(
        "A seek makes every message free again from there on. In a Shared or Key_Shared subscription Pulsar withholds"
        " the acknowledged part of a batch.",
        _keeps_parts_of_batches,
        parts=True,
    ),
)


def meant(moment: Moment) -> Difference | None:
    """Return the difference that is meant here, None if there is none."""
    return next((each for each in DIFFERENCES if each.applies(moment)), None)
