"""The judge can say no: each kind of fault is planted, once, and found."""

import msgspec
import pytest

from exacta.demo.raw_log import BatchRange, TransactionsOfPartition, TransactionsOfTopic
from exacta.demo.verify import Output, SeenRow, judge


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    number: int
    text: str


KEYS = (b"a", b"b", b"c")


def key_of(number):
    return KEYS[number % len(KEYS)]


def output(*, ordered=True):
    expected = {number: (key_of(number), Row(number=number, text=f"row {number}")) for number in range(12)}
    return Output(
        name="numbers",
        row_type=Row,
        identity=lambda row: row.number,
        expected=expected,
        position=(lambda row: row.number) if ordered else None,
    )


@pytest.fixture
def rows():
    """All rows, each key in a partition of its own, in order."""
    offsets = dict.fromkeys(range(len(KEYS)), 0)
    seen = []
    for number in range(12):
        partition = number % len(KEYS)
        seen.append(seen_row(number, partition, offsets[partition]))
        offsets[partition] += 1
    return seen


def seen_row(number, partition, offset, text=None):
    value = msgspec.json.encode(Row(number=number, text=text or f"row {number}"))
    return SeenRow(partition, offset, key_of(number), value)


NO_TRANSACTIONS = TransactionsOfTopic({})


def faults(verdict):
    counts = {
        "lost": verdict.lost,
        "twice": verdict.twice,
        "wrong": verdict.wrong,
        "disordered": verdict.disordered,
        "aborted": verdict.aborted_seen,
    }
    return {name: count for name, count in counts.items() if count}


def test_nothing_wrong(rows):
    verdict = judge(output(), rows, NO_TRANSACTIONS)
    assert verdict.exactly_once
    assert faults(verdict) == {}
    assert (verdict.expected, verdict.seen) == (12, 12)


def test_one_lost(rows):
    del rows[5]
    verdict = judge(output(), rows, NO_TRANSACTIONS)
    assert faults(verdict) == {"lost": 1}
    assert not verdict.exactly_once
    assert verdict.examples == ("lost: 5",)


def test_one_doubled(rows):
    rows.append(seen_row(5, 2, 4))
    verdict = judge(output(), rows, NO_TRANSACTIONS)
    assert faults(verdict) == {"twice": 1}
    assert not verdict.exactly_once


def test_one_lost_and_another_doubled_do_not_cancel_out(rows):
    rows[3] = seen_row(6, 0, 1)
    verdict = judge(output(), rows, NO_TRANSACTIONS)
    assert verdict.seen == verdict.expected
    assert faults(verdict) == {"lost": 1, "twice": 1}
    assert not verdict.exactly_once


def test_one_reordered(rows):
    rows[5], rows[8] = seen_row(8, 2, 1), seen_row(5, 2, 2)
    verdict = judge(output(), rows, NO_TRANSACTIONS)
    assert faults(verdict) == {"disordered": 1}
    assert not verdict.exactly_once


def test_order_counts_only_where_it_is_promised(rows):
    rows[5], rows[8] = seen_row(8, 2, 1), seen_row(5, 2, 2)
    verdict = judge(output(ordered=False), rows, NO_TRANSACTIONS)
    assert verdict.disordered is None
    assert verdict.exactly_once


def test_keys_may_be_interleaved_within_a_partition(rows):
    one_partition = [SeenRow(0, offset, row.key, row.value) for offset, row in enumerate(reversed(rows))]
    in_order_of_keys = sorted(one_partition, key=lambda row: (row.key, -row.offset))
    assert judge(output(), in_order_of_keys, NO_TRANSACTIONS).exactly_once


def test_a_key_that_strays_to_another_partition_is_out_of_order(rows):
    rows[11] = seen_row(11, 0, 4)
    assert faults(judge(output(), rows, NO_TRANSACTIONS)) == {"disordered": 1}


def test_one_aborted_row_seen(rows):
    partition = TransactionsOfPartition()
    partition.data(7, BatchRange(first_offset=4, last_offset=4, records=1))
    partition.end(7, committed=False)
    transactions = TransactionsOfTopic({2: partition})
    assert judge(output(), rows, transactions).exactly_once

    rows.append(seen_row(5, 2, 4))
    verdict = judge(output(), rows, transactions)
    assert faults(verdict) == {"aborted": 1, "twice": 1}
    assert not verdict.exactly_once
    assert verdict.aborted_in_log == 1


def test_an_aborted_row_is_found_even_where_its_contents_are_right(rows):
    partition = TransactionsOfPartition()
    partition.data(7, BatchRange(first_offset=1, last_offset=1, records=1))
    partition.end(7, committed=False)
    verdict = judge(output(), rows, TransactionsOfTopic({2: partition}))
    assert faults(verdict) == {"aborted": 1}
    assert not verdict.exactly_once


def test_a_row_of_an_open_transaction_counts_as_aborted(rows):
    partition = TransactionsOfPartition()
    partition.data(7, BatchRange(first_offset=0, last_offset=0, records=1))
    verdict = judge(output(), rows, TransactionsOfTopic({0: partition}))
    assert faults(verdict) == {"aborted": 1}
    assert verdict.undecided_in_log == 1


@pytest.mark.parametrize(
    "wrong",
    [
        seen_row(5, 2, 1, text="altered"),
        SeenRow(2, 1, b"another key", seen_row(5, 2, 1).value),
        SeenRow(2, 1, key_of(5), b"{"),
        SeenRow(2, 1, key_of(5), None),
        SeenRow(2, 1, key_of(5), b'{"number":5,"text":"row 5","more":1}'),
    ],
    ids=["contents", "key", "not JSON", "no value", "another field"],
)
def test_a_wrong_row_does_not_stand_for_the_right_one(rows, wrong):
    rows[5] = wrong
    verdict = judge(output(), rows, NO_TRANSACTIONS)
    assert faults(verdict) == {"wrong": 1, "lost": 1}
    assert not verdict.exactly_once


def test_a_row_that_nobody_expects_is_wrong(rows):
    rows.append(seen_row(99, 0, 4))
    assert faults(judge(output(), rows, NO_TRANSACTIONS)) == {"wrong": 1}
