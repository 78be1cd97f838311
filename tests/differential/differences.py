"""What Exacta answers otherwise than Apache Kafka 4.4, and why: short, argued, complete. Whatever else differs fails.

(And the high watermark that readers of committed records are told is one of a moment before: `reads.py` asks again.)

The last word is always Kafka's, but where what it does is a weakness of it that no client relies on.
"""

from __future__ import annotations

from tests.differential.answered import Answered, History
from tests.differential.calls import Answer, Place
from tests.differential.group_differences import GROUP_DIFFERENCES
from tests.differential.machine import Difference, first_of
from tests.differential.odd_differences import ODD_DIFFERENCES
from tests.differential.reads import AddPartitionsOfSeveral
from tests.differential.steps import AddGroup, AddPartitions, CommitOffsets, End, Init, Produce


def _aborts_nothing(found: Answered, history: History) -> bool:
    step = found.step
    aborts = isinstance(step, End) and not step.commit and step.version < 5
    return aborts and found.codes == ("INVALID_TXN_STATE", "NONE")


def _writes_outside(found: Answered, history: History) -> bool:
    return isinstance(found.step, Produce) and found.codes == ("INVALID_TXN_STATE", "TRANSACTION_ABORTABLE")


def _commits_offsets_outside(found: Answered, history: History) -> bool:
    return isinstance(found.step, CommitOffsets) and found.codes == ("INVALID_TXN_STATE", "ILLEGAL_GENERATION")


def _is_fenced_outside_transactions(found: Answered, history: History) -> bool:
    kafkas, ours = found.codes
    return (
        isinstance(found.step, Produce)
        and not found.step.transactional
        and ours in ("INVALID_PRODUCER_EPOCH", "UNKNOWN_PRODUCER_ID")
        and kafkas in ("NONE", "OUT_OF_ORDER_SEQUENCE_NUMBER", "INVALID_TXN_STATE")
    )


def _presents_while_open(found: Answered, history: History) -> bool:
    step = found.step
    either = ("NONE", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")
    at_the_last_epoch = "UNKNOWN_SERVER_ERROR"
    return (
        isinstance(step, Init)
        and step.presents
        and found.codes[0] in (*either, at_the_last_epoch)
        and found.codes[1] in either
        and _is_open(step.client, history)
    )


def _is_open(client: str, history: History) -> bool:
    """Return whether the client has a transaction open, by what both brokers said."""
    is_open = False
    for each in history:
        if isinstance(each.step, AddPartitionsOfSeveral):
            is_open = is_open or _is_added_to(each, client)
        if each.step.client != client or each.codes != ("NONE", "NONE"):
            continue
        if isinstance(each.step, AddPartitions | AddGroup | CommitOffsets):
            is_open = True
        elif isinstance(each.step, Produce):
            is_open = is_open or each.step.transactional
        elif isinstance(each.step, Init | End):
            is_open = False
    return is_open


def _is_added_to(found: Answered, client: str) -> bool:
    """Return whether partitions were added to the client's transaction, in a request of several clients'."""
    assert isinstance(found.step, AddPartitionsOfSeveral)
    adds = any(who == client and not verify_only for who, _, verify_only in found.step.others)
    return (
        adds
        and found.kafkas == found.ours
        and any(
            transactional_id.endswith(f"-{client}") and all(code == "NONE" for _, code in partitions)
            for transactional_id, *partitions in found.ours[1:]
        )
    )


def _begins_where_kafka_knows_more(found: Answered, history: History) -> bool:
    step = found.step
    return (
        isinstance(step, Produce)
        and found.codes == ("OUT_OF_ORDER_SEQUENCE_NUMBER", "NONE")
        and any(_leaves_a_trace(each, step.client, step.partition) for each in history)
    )


def _repeats_after_the_end(found: Answered, history: History) -> bool:
    step = found.step
    refused = ("INVALID_TXN_STATE", "TRANSACTION_ABORTABLE")
    repeats = isinstance(step, Produce) and (step.repeat or step.skip < 0)
    return repeats and found.codes[0] in refused and found.codes[1] == "NONE"


def _repeats_what_was_of_the_other_kind(found: Answered, history: History) -> bool:
    """Whether Kafka answers with the place of a batch that is in a transaction while this one is not, or vice versa."""
    step = found.step
    refused = ("OUT_OF_ORDER_SEQUENCE_NUMBER", "INVALID_TXN_STATE", "TRANSACTION_ABORTABLE")
    return (
        isinstance(step, Produce)
        and found.codes[0] == "NONE"
        and found.codes[1] in refused
        and any(
            isinstance(each.step, Produce)
            and (each.step.client, each.step.partition) == (step.client, step.partition)
            and each.step.transactional is not step.transactional
            and each.codes == ("NONE", "NONE")
            and _may_be_in_one_place(each.kafkas, found.kafkas)
            for each in history
        )
    )


def _may_be_in_one_place(one: Answer, other: Answer) -> bool:
    """Return whether two answers name the same place; of a spoilt frame, or faulty batch, none is told."""
    place, another = ([part for part in answer if isinstance(part, Place)] for answer in (one, other))
    return not place or not another or place == another


def _repeats_an_end_that_was_none(found: Answered, history: History) -> bool:
    step = found.step
    if not (isinstance(step, End) and step.version >= 5 and step.age > 0 and found.codes[1] == "PRODUCER_FENCED"):
        return False
    pairs_from = [
        type(each.step)
        for each in history
        if each.step.client == step.client
        and each.codes == ("NONE", "NONE")
        and (isinstance(each.step, Init) or (isinstance(each.step, End) and each.step.version >= 5))
    ]
    return pairs_from[-1:] != [End] and found.codes[0] in ("NONE", "INVALID_TXN_STATE")


def _goes_on_under_a_used_pair(found: Answered, history: History) -> bool:
    step = found.step
    in_version_2 = (
        (isinstance(step, Produce) and step.version >= 12 and step.transactional)
        or (isinstance(step, CommitOffsets) and step.version >= 5)
        or (isinstance(step, End) and step.version >= 5)
    )
    return in_version_2 and not _is_open(step.client, history) and _has_used_its_pair(step.client, history)


def _has_used_its_pair(client: str, history: History) -> bool:
    """Return whether version 1 has ended a transaction of the client, which kept its pair."""
    used = False
    for each in history:
        if each.step.client == client and each.codes == ("NONE", "NONE") and isinstance(each.step, Init | End):
            used = isinstance(each.step, End) and each.step.version < 5
    return used


def _begins_late_in_version_2(found: Answered, history: History) -> bool:
    step = found.step
    return (
        isinstance(step, Produce)
        and step.version >= 12
        and found.codes == ("NONE", "OUT_OF_ORDER_SEQUENCE_NUMBER")
        and any(_leaves_a_trace(each, step.client, step.partition) for each in history)
    )


def _leaves_a_trace(earlier: Answered, client: str, partition: int) -> bool:
    """Return whether a step made Kafka know a producer in a partition without storing a batch of it."""
    step = earlier.step
    if step.client != client:
        return False
    if isinstance(step, AddPartitions):
        return partition in step.partitions and earlier.kafkas[0] == "NONE"
    return isinstance(step, Produce) and step.partition == partition and earlier.kafkas[0] != "NONE"


def _refuses_what_kafka_has_registered(found: Answered, history: History) -> bool:
    step = found.step
    if found.codes[0] != found.codes[1]:
        return False
    if isinstance(step, Produce):
        return step.version >= 12 and step.transactional and found.codes[0] in _REFUSED_BY_THE_PARTITION
    return isinstance(step, CommitOffsets) and step.version >= 5 and found.codes[0] in _STALE_MEMBER


def _presents_the_pair_before_the_last_epoch(found: Answered, history: History) -> bool:
    step = found.step
    return (
        isinstance(step, Init)
        and step.presents
        and found.codes[0] == "UNKNOWN_SERVER_ERROR"
        and found.ours in (("PRODUCER_FENCED",), ("INVALID_PRODUCER_EPOCH",), ("NONE", "known"))
    )


def _presents_the_pair_before_a_used_one(found: Answered, history: History) -> bool:
    step = found.step
    return (
        isinstance(step, Init)
        and step.presents
        and found.codes[0] == "NONE"
        and found.codes[1] in ("PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")
        and _has_used_its_pair(step.client, history)
    )


def _rotates_sooner(found: Answered, history: History) -> bool:
    client = found.step.client
    so_far = [*history, found]
    return (found.kafkas, found.ours) == (("NONE", "of a new id"), ("NONE", "new")) and any(
        isinstance(each.step, Init) and each.step.client == client and _is_open(client, so_far[:number])
        for number, each in enumerate(so_far)
    )


def _writes_under_an_id_that_has_rotated(found: Answered, history: History) -> bool:
    step = found.step
    return (
        isinstance(step, Produce | End)
        and step.age > 0
        and found.codes[0] in ("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED")
        and found.codes[1] == "INVALID_PRODUCER_ID_MAPPING"
        and any(each.step.client == step.client and "of a new id" in each.ours for each in history)
    )


_REFUSED_BY_THE_PARTITION = {"OUT_OF_ORDER_SEQUENCE_NUMBER", "CORRUPT_MESSAGE", "INVALID_RECORD", "INVALID_TIMESTAMP"}
_STALE_MEMBER = ("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID")

DIFFERENCES = (
    Difference(
        "An abort of nothing succeeds in version 1 too: a client that was told to abort must be able to",
        _aborts_nothing,
    ),
    Difference(
        "A write outside any transaction: the client must abort, and kafka-python takes Kafka's code for fatal",
        _writes_outside,
    ),
    Difference(
        "The same for offsets, where Java and kafka-python take Kafka's code for fatal, and abort after ours",
        _commits_offsets_outside,
    ),
    Difference(
        "Outside transactions, too, a producer is fenced everywhere at once, and a pair that was never given out is "
        "nobody's (decision 0003); Kafka's partitions go by the epochs that they have seen themselves",
        _is_fenced_outside_transactions,
        parts=True,
    ),
    Difference(
        "With a transaction open, who presents the present pair is bound, and nobody else touches it; Kafka aborts it, "
        "whoever asks, and compares epochs then: it fences the owner, and binds who guesses the next one (0006)",
        _presents_while_open,
        parts=True,
    ),
    Difference(
        "A batch sent again gets its offset also after its transaction has ended, in version 1: its first answer "
        "was lost, and it is there",
        _repeats_after_the_end,
    ),
    Difference(
        "After an end of version 1, which keeps the pair, version 2 begins nothing under it, and its EndTxn repeats "
        "that end: its owner must not take two transactions for one. Kafka begins another",
        _goes_on_under_a_used_pair,
        parts=True,
    ),
    Difference(
        "The pair before is taken for a repeat only where EndTxn made the present one; Kafka goes by the epoch being "
        "one less, and tells a zombie that another's transaction ended as it wished",
        _repeats_an_end_that_was_none,
    ),
    Difference(
        "In version 2 a producer of which nothing is known begins at sequence 0; Kafka forgets that where an older "
        "version of Produce was refused before",
        _begins_late_in_version_2,
        parts=True,
    ),
    Difference(
        "In version 2 a write that is refused registers nothing; Kafka has registered it before it looks, and then has "
        "a transaction open that its client, which must abort, cannot tell from none",
        _refuses_what_kafka_has_registered,
        parts=True,
    ),
    Difference(
        "The pair before is good for the present one while that is unused; Kafka gives it out again after a "
        "transaction of version 1 under it, and a late request lets a second one be taken for that (decision 0011)",
        _presents_the_pair_before_a_used_one,
        parts=True,
    ),
    Difference(
        "Who takes an id over with a transaction open gets the next epoch; Kafka aborts with that, and gives the one "
        "behind it, so that its producer ids rotate a step sooner",
        _rotates_sooner,
        parts=True,
    ),
    Difference(
        "A late write, or end, under a producer id that has rotated away is told that it is no more; Kafka's "
        "partitions too, but those with a marker of its last epoch call it fenced, as EndTxn does; either is final",
        _writes_under_an_id_that_has_rotated,
    ),
    Difference(
        "Who presents the pair before is fenced, or repeats what made the present one, also where that has the last "
        "epoch; Kafka fails with an unknown error, in the attempt to count on",
        _presents_the_pair_before_the_last_epoch,
    ),
    Difference(
        "In version 1 a producer may begin at any sequence where nothing is known of it; Kafka knows something if it "
        "has refused a batch, or put a marker of nothing into a partition that was registered only",
        _begins_where_kafka_knows_more,
        parts=True,
    ),
    Difference(
        "A batch of a transaction is no repeat of one outside, nor the other way round: who asks would take it for "
        "what it is not. Kafka compares sequences only",
        _repeats_what_was_of_the_other_kind,
    ),
)


def meant(found: Answered, history: History) -> Difference | None:
    """Return the difference that is meant here, or None where it is a defect."""
    return first_of((*DIFFERENCES, *GROUP_DIFFERENCES, *ODD_DIFFERENCES), found, history)
