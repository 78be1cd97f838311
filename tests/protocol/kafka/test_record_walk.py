"""The walk over the records of a producer's batch, beside a plain reader that reads one number after the other."""

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from exacta.protocol.kafka import record_walk
from exacta.protocol.kafka.record_keys import UnreadableRecords
from exacta.protocol.kafka.record_walk import lowest_and_highest
from exacta.protocol.kafka.record_writing import VARINTS, record
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
    """Return the lowest and the highest timestamp delta; None unless `count` records have successive offsets."""
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


def swallowing(encoded: bytes, others: bytes) -> bytes:
    """Return a record whose length says that others behind it are its own."""
    length, behind = varint(encoded, 0, 5)
    return VARINTS[length + len(others)] + encoded[behind:] + others


def stretched(encoded: bytes) -> bytes:
    """Return a record whose length has one byte more than it needs."""
    _, behind = varint(encoded, 0, 5)
    return encoded[: behind - 1] + bytes([encoded[behind - 1] | 0x80, 0]) + encoded[behind:]


SIZES: dict[str, Callable[[int], int]] = {
    "equal": lambda number: 100,
    "equal and short": lambda number: 20,
    "some are long": lambda number: 9_000 if number % 100 == 70 else 40,
    "around 64": lambda number: number * 37 % 90 + 20,
    "above 64": lambda number: number * 37 % 300 + 100,
    "growing": lambda number: 30 + number // 200,
    "growing slowly around 64": lambda number: 47 + number // 70 % 20,
}
"""The sizes of values, by the number of their record."""

TIMES: dict[str, Callable[[int], int]] = {
    "equal": lambda number: 0,
    "close": lambda number: number // 50 % 60,
    "from below zero": lambda number: number // 10 - 20,
    "growing": lambda number: number // 3,
    "of one byte": lambda number: (number // 100 * 7 + 2) % 128 - 64,
    "of two bytes": lambda number: 200 + number * 7 % 1_000,
    "of three": lambda number: number * 7_919 % 100_000 - 50_000,
    "falling": lambda number: (1 << 40) - number * 991,
    "of every size": lambda number: 1 << number % 63,
}


def batch(count: int, size: str, time: str) -> list[bytes]:
    """Build records of these sizes and times."""
    return [record(number, TIMES[time](number), None, bytes(SIZES[size](number))) for number in range(count)]


@given(
    count=st.integers(1, 200) | st.sampled_from([1_000, 1_100, 2_300, 8_200, 8_300, 9_300]),
    size=st.sampled_from(list(SIZES)),
    time=st.sampled_from(list(TIMES)),
)
@example(count=71, size="some are long", time="equal")
def test_the_walk_says_what_a_plain_reader_says(count: int, size: str, time: str) -> None:
    plain = b"".join(batch(count, size, time))
    times_ms = [TIMES[time](number) for number in range(count)]
    assert walked(plain, count) == plainly_read(plain, count) == (min(times_ms), max(times_ms))


@pytest.mark.parametrize(
    ("size", "time", "most"),
    [
        ("equal", "close", 0),
        ("equal", "of one byte", 0),
        ("equal", "growing", 0),
        ("growing", "growing", 1 << 10),  # a part of them, where the numbers of their times get longer
        ("equal and short", "of two bytes", 0),
        ("growing", "close", 0),
        ("around 64", "equal", 64),
        ("above 64", "of two bytes", 0),
        ("above 64", "growing", 1 << 10),
    ],
)
@pytest.mark.parametrize("count", [17, 160, 8_000, 17_000])
def test_hardly_any_record_of_a_long_batch_is_read_by_itself(
    size: str, time: str, most: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_themselves = 0
    one_by_one = record_walk._one_by_one

    def counted(records: memoryview, at: int, index: int, end: int, times: set[int]) -> tuple[int, int]:
        nonlocal by_themselves
        by_themselves += end - index
        return one_by_one(records, at, index, end, times)

    monkeypatch.setattr(record_walk, "_one_by_one", counted)
    times_ms = [TIMES[time](number) for number in range(count)]
    assert lowest_and_highest(b"".join(batch(count, size, time)), count) == (min(times_ms), max(times_ms))
    assert by_themselves <= most


@pytest.mark.parametrize("count", [1, 20, 40])
def test_a_time_has_one_to_ten_bytes(count: int) -> None:
    for bits in range(63):
        for time_ms in (1 << bits, (1 << bits) + 1, -1 << bits, -(1 << bits) - 1):
            plain = b"".join(record(delta, time_ms, None, bytes(100 + delta)) for delta in range(count))
            assert lowest_and_highest(plain, count) == (time_ms, time_ms)


@given(
    count=st.integers(1, 200) | st.just(1_100),
    size=st.sampled_from(list(SIZES)),
    time=st.sampled_from(list(TIMES)),
    where=st.floats(0, 1, exclude_max=True),
    change=st.sampled_from(["longer", "shorter", "twice", "stretched", "gone", "another", "swallows"]),
    bit=st.integers(0, 20),
    claimed=st.sampled_from([0, 0, 0, -1, 1]),
)
def test_the_walk_refuses_what_a_plain_reader_refuses(
    count: int, size: str, time: str, where: float, change: str, bit: int, claimed: int
) -> None:
    records = batch(count, size, time)
    at = int(where * count)
    records[at : at + 1] = {
        "longer": [records[at] + b"\x00"],
        "shorter": [records[at][:-1]],
        "twice": [records[at]] * 2,
        "stretched": [stretched(records[at])],
        "gone": [],
        "another": [record(at ^ 1 << bit, TIMES[time](at), None, bytes(SIZES[size](at)))],
        "swallows": [swallowing(records[at], b"".join(records[at + 1 : at + 2]))],
    }[change]
    plain, count = b"".join(records), max(count + claimed, 1)
    assert walked(plain, count) == plainly_read(plain, count)


@pytest.mark.parametrize("size", ["equal", "equal and short", "around 64", "above 64"])
@pytest.mark.parametrize("at", [0, 1, 30, 70, 98, 99])
def test_a_bit_in_a_record_is_seen_where_a_plain_reader_sees_it(size: str, at: int) -> None:
    records = batch(100, size, "from below zero")
    before, after = b"".join(records[:at]), b"".join(records[at + 1 :])
    for place in range(8):
        for bit in range(8):
            flipped = bytearray(records[at])
            flipped[place] ^= 1 << bit
            plain = b"".join([before, flipped, after])
            assert walked(plain, 100) == plainly_read(plain, 100)
    for wrong in (swallowing(records[at], b"".join(records[at + 1 : at + 2])), stretched(records[at])):
        plain = b"".join([before, wrong, after])
        assert walked(plain, 100) == plainly_read(plain, 100)


@pytest.mark.parametrize(
    "mimic",
    [
        lambda delta: record(
            delta, -3, b"k" * delta, b"v"
        ),  # the key's length, for an offset behind a time of two bytes
        lambda delta: record(delta, delta << 14 | 1_234, b"k", b"v"),  # the third byte of a time
        lambda delta: b"\x8a\x00\x00\x00" + bytes([2 * delta, 1, 1]),  # a length of 5, in two bytes
        lambda delta: b"\x0a\x00\x00" + bytes([2 * delta, 1, 1]),
        lambda delta: b"\x0d\x00\x00" + bytes([2 * delta, 1, 1, 0]),  # a length below zero
        lambda delta: b"\x0c\x00\x81\x80\x80\x80\x00" if delta == 6 else record(delta, 0, None, None),  # no offset
    ],
    ids=["one byte", "three bytes", "short in two bytes", "short", "negative", "the next one's length"],
)
@pytest.mark.parametrize("time_ms", [3, 300])
@pytest.mark.parametrize("size", [0, 100])
def test_what_looks_like_a_record_in_columns_is_none(mimic: Callable[[int], bytes], time_ms: int, size: int) -> None:
    others = [record(delta, time_ms, None, bytes(size + delta)) for delta in range(40)]
    for those in ({6}, {20}, {6, 20}, set(range(40))):
        records = [mimic(delta) if delta in those else others[delta] for delta in range(40)]
        plain = b"".join(records)
        assert walked(plain, 40) == plainly_read(plain, 40)


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
        record(count - 1 + 8_192, (count - 1) % times - 30, None, b"v"),
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
    for wrong in (end[71], record(2 * four + 70, 0, None, None)):
        with pytest.raises(UnreadableRecords, match="do not follow"):
            lowest_and_highest(b"".join([*begin, middle, *end[:70], wrong, *end[71:]]), four + 99)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("extreme_at", [0, 5_000, 19_999])
def test_of_many_different_times_the_extremes_are_kept(
    extreme_at: int, sign: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_walk, "_MOST_TIMES", 1_000)
    times = [sign * (1 << 20 | index) for index in range(20_000)]
    times[extreme_at] = -sign << 40
    records = b"".join(record(index, time, None, None) for index, time in enumerate(times))
    assert lowest_and_highest(records, len(times)) == (min(times), max(times))
