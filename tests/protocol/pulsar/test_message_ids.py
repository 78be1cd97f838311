"""Ids and offsets, ack sets and ranges: there and back."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.message_ids import (
    ack_set,
    acknowledged,
    earliest,
    entry_offset_of,
    is_earliest,
    is_latest,
    latest,
    least_count,
    message_id,
    offset_of,
)

COUNTS = st.integers(1, 200)


def test_an_id_names_an_offset() -> None:
    assert offset_of(message_id(7, 40)) == 40
    assert offset_of(message_id(7, 40, batch_index=0)) == 40
    assert offset_of(message_id(7, 40, partition=2, batch_index=9)) == 49


def test_what_an_id_does_not_say_is_not_on_the_wire() -> None:
    assert message_id(7, 40).SerializeToString() == b"\x08\x07\x10\x28"
    assert (message_id(7, 40).partition, message_id(7, 40).batch_index) == (-1, -1)


def test_the_ends_are_those_of_pulsars_clients() -> None:
    """They have signed numbers: -1 has ten bytes on the wire, 2**63 - 1 has nine."""
    minus_one, most = b"\xff" * 9 + b"\x01", b"\xff" * 8 + b"\x7f"
    assert earliest().SerializeToString() == b"\x08" + minus_one + b"\x10" + minus_one
    assert latest().SerializeToString() == b"\x08" + most + b"\x10" + most
    ids = (earliest(), message_id(7, 0), latest())
    assert [is_earliest(each) for each in ids] == [True, False, False]
    assert [is_latest(each) for each in ids] == [False, False, True]
    assert is_earliest(message_id(7, 2**64 - 1))  # the one before the first of its ledger


@pytest.mark.parametrize(
    ("count", "words", "ranges"),
    [
        (3, [], [range(40, 43)]),
        (3, [0], [range(40, 43)]),
        (3, [0b111], []),
        (3, [-1], []),  # bits beyond the count
        (3, [0b101], [range(41, 42)]),
        (3, [0b010], [range(40, 41), range(42, 43)]),
        (70, [-1], [range(104, 110)]),  # a word is missing: its bits are 0
        (70, [2**62 - 1, 0b11_1110], [range(102, 105)]),  # across words
        (64, [-(2**63)], [range(40, 103)]),
        (130, [-1, 0, -1], [range(104, 168)]),
        (130, [-1, 0, -1, 5], [range(104, 168)]),
    ],
)
def test_a_bit_that_is_set_is_not_acknowledged(count: int, words: list[int], ranges: list[range]) -> None:
    assert acknowledged(40, count, words) == ranges


def test_the_words_of_a_message() -> None:
    assert ack_set(40, 3, []) == []
    assert ack_set(40, 3, [range(40), range(43, 50), range(41, 41)]) == []
    assert ack_set(40, 3, [range(100)]) == [0]
    assert ack_set(40, 3, [range(41, 42)]) == [0b101]
    assert ack_set(40, 70, [range(41)]) == [-2, 0b11_1111]
    assert ack_set(40, 128, [range(104, 1000)]) == [-1]  # the last word is 0, and left out
    assert pb.CommandMessage(consumer_id=0, message_id=message_id(0, 0), ack_set=ack_set(40, 70, [range(41)]))


@given(COUNTS, st.lists(st.tuples(st.integers(0, 260), st.integers(0, 70))))
def test_words_and_ranges_go_there_and_back(count: int, pairs: list[tuple[int, int]]) -> None:
    ranges = [range(first, first + length) for first, length in pairs]
    expected = {offset for each in ranges for offset in each} & set(range(40, 40 + count))
    words = ack_set(40, count, ranges)
    found = acknowledged(40, count, words) if words else []
    assert [offset for each in found for offset in each] == sorted(expected)
    assert all(one.stop < other.start for one, other in itertools.pairwise(found))  # none touches the next
    assert bool(words) == bool(expected)


@given(COUNTS, st.lists(st.integers(-(2**63), 2**63 - 1), max_size=5))
def test_any_words_are_read(count: int, words: list[int]) -> None:
    bits = sum((word & (2**64 - 1)) << 64 * number for number, word in enumerate(words))
    expected = [40 + index for index in range(count) if not bits >> index & 1]
    assert [offset for each in acknowledged(40, count, words) for offset in each] == expected


@pytest.mark.parametrize("count", [1, 2, 3, 64, 65, 130])
def test_an_ack_set_tells_the_least_count_of_its_entry(count: int) -> None:
    """It is enough to find the message that is acknowledged, and no other entry's."""
    for index in range(count):
        words = ack_set(0, count, [range(index, index + 1)])
        least = least_count(words)
        assert index < least <= count
        assert acknowledged(0, least, words) == [range(index, index + 1)]
    assert least_count([]) == 1


def test_a_million_messages_cost_no_more_than_their_words() -> None:
    """A shift of all bits for each range would take minutes."""
    words = [0x5555_5555_5555_5555] * (1_000_000 // 64)
    found = acknowledged(0, 1_000_000, words)
    assert len(found) == 500_000
    assert ack_set(0, 1_000_000, found) == words


@pytest.mark.parametrize("entry_offset", [0, 7, 2**63 - 1, -1, -(2**62), -(2**63)])
def test_an_entry_id_is_signed_for_clients_and_unsigned_on_the_wire(entry_offset: int) -> None:
    found = message_id(7, entry_offset)
    assert found.entry_id == entry_offset % 2**64
    assert entry_offset_of(pb.MessageIdData.FromString(found.SerializeToString())) == entry_offset
