"""The times of a batch's records, against batches that aiokafka builds, and against nonsense."""

from collections.abc import Sequence
from contextlib import suppress

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from hypothesis import given
from hypothesis import strategies as st

from exacta.protocol.kafka.record_keys import UnreadableRecords
from exacta.protocol.kafka.record_times import RecordTime, record_times
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


@given(records=st.binary(max_size=200), count=st.integers(1, 20))
def test_what_is_no_records_is_not_read_or_is_by_chance(records: bytes, count: int) -> None:
    header = parse_batch_header(build([1_700_000_000_000] * count))
    with suppress(UnreadableRecords):
        list(record_times(records, header))
