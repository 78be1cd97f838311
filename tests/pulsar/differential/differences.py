"""The list of what Exacta does otherwise than Apache Pulsar 4.2, and why. A test fails by any other difference.

The last word is Pulsar's, but where what it does is a weakness of it that no client relies on. A difference that
*parts* ends the comparison of its program: what follows must differ. `conditions.py` says when each of them applies.
"""

from __future__ import annotations

from tests.differential.machine import Difference, first_of
from tests.pulsar.differential import conditions as when
from tests.pulsar.differential.moments import Moment

DIFFERENCES = (
    Difference(
        "A cumulative acknowledgement in a Shared or Key_Shared subscription is refused. Pulsar answers with success,"
        " and ignores it. No client sends one.",
        when.acknowledges_up_to_in_a_shared_one,
    ),
    Difference(
        "A reader acknowledges nothing in a transaction: its subscription is gone with it. Pulsar takes it, and keeps a"
        " log of it.",
        when.reads_in_a_transaction,
        parts=True,
    ),
    Difference(
        "What nobody can have seen, because its transaction or one before it is open, cannot be acknowledged. A client"
        " that waits for no answer is disconnected.",
        when.acknowledges_what_nobody_has_seen,
        parts=True,
    ),
    Difference(
        "UNSUBSCRIBE beside other consumers is answered with ConsumerBusy, which says why. Pulsar says MetadataError.",
        when.unsubscribes_beside_others,
    ),
    Difference(
        "A seek closes all consumers. Pulsar leaves those of a Failover subscription connected that only wait.",
        when.closes_those_that_wait,
    ),
    Difference(
        "A message that a transaction has acknowledged with all before another one is not acknowledged by it once more."
        " Pulsar checks single and cumulative acknowledgements against their own kind only.",
        when.mixes_in_one_transaction,
        parts=True,
    ),
    Difference(
        "A single acknowledgement conflicts with another transaction's cumulative one, and the reverse (PIP-31). Pulsar"
        " takes both, and both commit.",
        when.mixes_two_transactions,
        parts=True,
    ),
    Difference(
        "An abort gives back everything that its transaction has acknowledged. Where this was done singly and"
        " cumulatively, Pulsar gives back the cumulative part, and withholds the rest.",
        when.has_aborted_both_kinds,
        parts=True,
    ),
    Difference(
        "What comes after the end of its transaction is refused for ever. Pulsar takes it: the topic stands still"
        " behind a message, and an acknowledged message is withheld.",
        when.comes_late,
        parts=True,
    ),
    Difference(
        "What an open transaction has acknowledged cumulatively is withheld, and what is behind it keeps its order: a"
        " consumer that begins again, or anew, waits for the end. Pulsar brings all of it again.",
        when.withholds_all_before,
    ),
    Difference(
        "A transaction acknowledges cumulatively what its consumer has got, and only for the active one. Pulsar takes"
        " it from every consumer, and delivers these messages afterwards.",
        when.has_not_got_it,
        parts=True,
    ),
    Difference(
        "An acknowledgement that is refused with TransactionConflict changes nothing. In a Shared or Key_Shared"
        " subscription Pulsar forgets that its consumer has a batch of which a part is acknowledged, and does not bring"
        " it again before the next consumer comes.",
        when.forgets_what_it_has_refused,
        parts=True,
    ),
    Difference(
        "An abort that gives back what a consumer has gone beyond closes the consumers, which come back and get it in"
        " order. Pulsar delivers on, and brings it once a consumer asks for everything again.",
        when.closes_for_order,
    ),
    Difference(
        "The end of a transaction that has acknowledged cumulatively lets the consumer go on that waits for it. In"
        " Pulsar none waits.",
        when.goes_on,
    ),
    Difference(
        "An abort that has nothing to give back redelivers nothing, because all of it was acknowledged at once as well,"
        " or skipped by a seek. Pulsar redelivers everything that is not acknowledged.",
        when.gives_back_nothing,
    ),
    Difference(
        "Every plain acknowledgement takes messages out of their transaction. Pulsar leaves them pending where it is"
        " cumulative, or of a part of a batch, which shows after a seek back.",
        when.takes_out_of_a_transaction,
        parts=True,
    ),
    Difference(
        "Redelivery counts are gone with the last consumer. Pulsar's are gone as well, but an abort after that counts"
        " again, up to 1.",
        when.aborts_without_a_consumer,
        parts=True,
    ),
    Difference(
        "An acknowledgement of one message of a batch that an open transaction has acknowledged as a whole is judged as"
        " others are. Pulsar closes the connection, or does not answer.",
        when.breaks,
        parts=True,
    ),
    Difference(
        "A cumulative acknowledgement that ends within a batch takes nothing back. Pulsar forgets which messages behind"
        " it in the batch were acknowledged one by one.",
        when.goes_back_in_a_batch,
        parts=True,
    ),
    Difference(
        "An aborted message, which nobody gets, may be acknowledged in a transaction. Pulsar answers with"
        " TransactionConflict.",
        when.acknowledges_what_was_aborted,
        parts=True,
    ),
    Difference(
        "An acknowledgement of a part of a batch that was answered is kept. Pulsar forgets it when the topic is loaded"
        " again, unless it has to write down acknowledged entries, too.",
        when.forgets_parts_of_batches,
        parts=True,
    ),
    Difference(
        "An acknowledgement of a part of a batch leaves its redelivery count as it is. Pulsar begins again at 0, so"
        " that a message that always fails does not get into its dead-letter topic.",
        when.counts_on,
        parts=True,
    ),
    Difference(
        "A consumer gets no more messages than it has permitted, but for the rest of an entry. Pulsar reads as many"
        " entries of a backlog as there are permits, or as it guesses from the batches before.",
        when.permits_entries,
        parts=True,
    ),
    Difference(
        "In a transaction a batch conflicts with the acknowledgement of any of its messages, as in Pulsar's"
        " Shared subscriptions. Those that deliver in order take it there.",
        when.has_acknowledged_a_part,
        parts=True,
    ),
    Difference(
        "A seek makes every message free again from there on. In a Shared or Key_Shared subscription Pulsar withholds"
        " the acknowledged part of a batch, and in others what a transaction has acknowledged of it.",
        when.keeps_parts_of_batches,
        parts=True,
    ),
    Difference(
        "A restart forgets no seek. Pulsar reads its log of what transactions have acknowledged from the beginning:"
        " what was committed before a seek is acknowledged again, and what was refused is pending.",
        when.forgets_a_seek,
        parts=True,
    ),
)


def meant(moment: Moment) -> Difference | None:
    """Return the difference that is meant here, None if there is none."""
    return first_of(DIFFERENCES, moment)
