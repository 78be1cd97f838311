"""The walk over the records of a producer's batch, beside a plain reader that reads one number after the other."""

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from exacta.protocol.kafka.record_keys import UnreadableRecords
from exacta.protocol.kafka.record_walk import lowest_and_highest
from exacta.protocol.kafka.record_writing import record
from exacta.protocol.kafka.records import HEADER_SIZE
from tests.protocol.kafka.test_record_times import build


def varint(records: bytes, at: int, most_bytes: int) -> tuple[int, int]:
    """Read a signed number; return it and where it ends. Raises IndexError and ValueError."""
    number = 0
    for place in range(most_bytes):
        byte = records[at + place]
        number |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return (-(number + 1) // 2 if number & 1 else number // 2), at + place + 1
    raise ValueError("a number has no end")


def plainly_read(records: bytes, count: int) -> tuple[int, int] | None:
    """Return the lowest and the highest timestamp delta; None: they are not so many records at successive offsets."""
    at, deltas_ms = 0, []
    try:
        for offset_delta in range(count):
            length, at = varint(records, at, 5)
            end = at + length
            delta_ms, at = varint(records, at + 1, 10)
            offset, at = varint(records, at, 5)
            if length < 6 or at > end or offset != offset_delta:
                return None
            deltas_ms.append(delta_ms)
            at = end
    except (IndexError, ValueError):
        return None
    return (min(deltas_ms), max(deltas_ms)) if at == len(records) else None


def walked(records: bytes, count: int) -> tuple[int, int] | None:
    """Return what the walk says, None where it refuses."""
    try:
        return lowest_and_highest(records, count)
    except UnreadableRecords:
        return None


def stretched(encoded: bytes) -> bytes:
    """Return a record whose length has one byte more than it needs."""
    _, behind = varint(encoded, 0, 5)
    return encoded[: behind - 1] + bytes([encoded[behind - 1] | 0x80, 0]) + encoded[behind:]


SIZES = st.sampled_from(
    [
        lambda number: 100,
        lambda number: 20,
        lambda number: 9_000 if number % 100 == 70 else 40,
        lambda number: number * 37 % 90 + 20,
        lambda number: number * 37 % 300 + 100,
        lambda number: 30 + number // 200,
        lambda number: 57 + number // 70 % 20 - 10,
    ]
)
TIMES = st.sampled_from(
    [
        lambda number: 0,
        lambda number: number // 50,
        lambda number: number // 10 - 20,
        lambda number: number,
        lambda number: 200 + number * 7 % 1_000,
        lambda number: number * 7_919 % 100_000 - 50_000,
        lambda number: (1 << 40) - number * 991,
        lambda number: 1 << number % 63,
    ]
)
COUNTS = st.integers(1, 200) | st.sampled_from([1_000, 1_100, 2_300, 8_200, 8_300, 9_300])
FEW_COUNTS = st.integers(1, 200) | st.just(1_100)


def batch(count: int, size: Callable[[int], int], time: Callable[[int], int]) -> list[bytes]:
    """Build records of these sizes and times."""
    return [record(number, time(number), None, bytes(size(number))) for number in range(count)]


@given(count=COUNTS, size=SIZES, time=TIMES)
def test_the_walk_says_what_a_plain_reader_says(
    count: int, size: Callable[[int], int], time: Callable[[int], int]
) -> None:
    plain = b"".join(batch(count, size, time))
    expected = min(map(time, range(count))), max(map(time, range(count)))
    assert walked(plain, count) == plainly_read(plain, count) == expected


@given(
    count=FEW_COUNTS,
    size=SIZES,
    time=TIMES,
    where=st.floats(0, 1, exclude_max=True),
    change=st.sampled_from(["flipped", "longer", "shorter", "twice", "stretched", "gone", "another"]),
    within=st.integers(0, 12),
    bit=st.integers(0, 7),
    claimed=st.sampled_from([0, 0, 0, -1, 1]),
)
def test_the_walk_refuses_what_a_plain_reader_refuses(
    count: int,
    size: Callable[[int], int],
    time: Callable[[int], int],
    where: float,
    change: str,
    within: int,
    bit: int,
    claimed: int,
) -> None:
    records = batch(count, size, time)
    at = int(where * count)
    flipped = bytearray(records[at])
    flipped[within % len(flipped)] ^= 1 << bit
    records[at : at + 1] = {
        "flipped": [bytes(flipped)],
        "longer": [records[at] + b"\x00"],
        "shorter": [records[at][:-1]],
        "twice": [records[at]] * 2,
        "stretched": [stretched(records[at])],
        "gone": [],
        "another": [record(at ^ 1 << bit, time(at), None, bytes(size(at)))],
    }[change]
    plain = b"".join(records)
    assert walked(plain, max(count + claimed, 1)) == plainly_read(plain, max(count + claimed, 1))


@given(records=st.binary(max_size=400), count=st.integers(1, 50))
@example(records=b"\x0c\x00\x00\x00\x01\x01\x00" * 20, count=20)
def test_what_is_no_records_is_refused_or_is_by_chance(records: bytes, count: int) -> None:
    assert walked(records, count) == plainly_read(records, count)


@pytest.mark.parametrize(
    ("count", "change"),
    [(2, slice(None)), (4, slice(None)), (3, slice(1, None)), (3, slice(-1)), (1, slice(0))],
    ids=["fewer than there are", "more than there are", "the beginning is missing", "the end is missing", "nothing"],
)
def test_other_records_than_the_header_says_are_not_read(count: int, change: slice) -> None:
    plain = build([1, 2, 3])[HEADER_SIZE:]
    assert lowest_and_highest(plain, 3) == (0, 2)
    with pytest.raises(UnreadableRecords):
        lowest_and_highest(plain[change], count)


@pytest.mark.parametrize("times", [60, 9_000], ids=["in columns", "each"])
@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 66, 8_191, 8_192, 8_193, 8_194, 16_384, 16_385, 20_000])
def test_offsets_follow_one_another_however_long_their_numbers_are(count: int, times: int) -> None:
    records = [record(delta, delta % times - 30, None, b"v") for delta in range(count)]
    found = lowest_and_highest(b"".join(records), count)
    assert found == (-30, min(count, times) - 31)
    for wrong in (
        record(count, 0, None, b"v"),
        record(count ^ 128, 0, None, b"v"),
        record(count ^ 16_384, 0, None, b"v"),
    ):
        with pytest.raises(UnreadableRecords, match="do not follow"):
            lowest_and_highest(b"".join([*records[:-1], wrong]), count)


@pytest.mark.parametrize("deltas", [(0, 2), (1, 2), (0, 0), (1, 0), (0, -1), (0, 1 << 20)])
def test_records_whose_offsets_do_not_follow_one_another_are_not_read(deltas: tuple[int, int]) -> None:
    """A reader would go on behind the last one, beyond records of others."""
    with pytest.raises(UnreadableRecords, match="do not follow"):
        lowest_and_highest(b"".join(record(delta, 0, None, b"v") for delta in deltas), 2)


def test_offsets_of_four_bytes_follow_those_of_three() -> None:
    three, four = 1 << 13, 1 << 20
    middle = bytearray(b"\x10\x00\x00\x80\x80\x00\x01\x01\x00" * (four - three))
    for place, shift, more in ((3, 0, 0x80), (4, 7, 0x80), (5, 14, 0)):
        middle[place::9] = bytes([2 * delta >> shift & 0x7F | more for delta in range(three, four)])
    begin, end = [
        [record(delta, 0, None, None) for delta in deltas] for deltas in (range(three), range(four, four + 99))
    ]
    assert lowest_and_highest(b"".join([*begin, middle, *end]), four + 99) == (0, 0)
    end[70] = end[71]
    with pytest.raises(UnreadableRecords, match="do not follow"):
        lowest_and_highest(b"".join([*begin, middle, *end]), four + 99)
