"""The times of a batch's records, against batches that aiokafka builds, and against nonsense."""

from collections.abc import Sequence

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from hypothesis import given
from hypothesis import strategies as st

from exacta.protocol.kafka.record_keys import UnreadableRecords
from exacta.protocol.kafka.record_times import RecordTime, lowest_and_highest, record_times
from exacta.protocol.kafka.record_writing import record
from exacta.protocol.kafka.records import HEADER_SIZE, assign_offset, parse_batch_header

FIRST_OFFSET = 100


def build(times: Sequence[int], compression: int = 0) -> bytes:
    """Build a batch of records of these times."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=compression,
        is_transactional=False,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 20,
    )
    for number, time_ms in enumerate(times):
        builder.append(number, timestamp=time_ms, key=b"k" * number, value=b"v" * 100 * number, headers=[("h", b"x")])
    return b"".join(assign_offset(bytes(builder.build()), FIRST_OFFSET))


@given(times=st.lists(st.integers(0, 2**41) | st.integers(2**41, 2**41 + 20_000), min_size=1, max_size=100))
def test_each_record_is_of_its_time(times: list[int]) -> None:
    batch = build(times)
    header, plain = parse_batch_header(batch), batch[HEADER_SIZE:]
    expected = [RecordTime(FIRST_OFFSET + number, time_ms) for number, time_ms in enumerate(times)]
    assert list(record_times(plain, header)) == expected
    deltas = lowest_and_highest(memoryview(plain), len(times))
    assert [header.base_timestamp + delta_ms for delta_ms in deltas] == [min(times), max(times)]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (b"\x0c\x00\x00\x0a\x01\x01\x00", "offset is outside"),  # offset delta 5, of a batch that ends at 0
        (b"\x0c\x00\x00\x01\x01\x01\x00", "offset is outside"),  # offset delta -1
        (b"\x1e\x00" + b"\xfe" + b"\xff" * 8 + b"\x01\x00\x01\x01\x00", "time is none"),  # 2**63 - 1 later
        (b"\x0e\x00\x00\x00\x01\x01\x00", "outside the batch"),
        (b"\x08\x00\x00\x00\x01", "outside the batch"),  # too short
        (b"\x0c\x00" + b"\xff" * 12, "has no end"),
    ],
)
def test_a_record_that_cannot_be_is_not_read(record: bytes, reason: str) -> None:
    header = parse_batch_header(build([1_700_000_000_000]))
    with pytest.raises(UnreadableRecords, match=reason):
        list(record_times(record, header))


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


@given(records=st.binary(max_size=200), count=st.integers(1, 20))
def test_what_is_no_records_is_not_read_or_is_by_chance(records: bytes, count: int) -> None:
    header = parse_batch_header(build([1_700_000_000_000] * count))
    for read in (lambda: lowest_and_highest(records, count), lambda: list(record_times(records, header))):
        try:
            read()
        except UnreadableRecords:
            continue
