"""When records of a batch are from, against batches that aiokafka builds, and against nonsense."""

from collections.abc import Sequence

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from hypothesis import given
from hypothesis import strategies as st

from exacta.protocol.kafka.record_times import LATEST, RecordTime, Unseen, find_record
from exacta.protocol.kafka.records import HEADER_SIZE, assign_offset, with_max_timestamp

TIMES = [1_700_000_000_000, 1_700_000_000_900, 1_699_999_999_000, 1_700_000_000_900, 1_700_000_070_000]
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


@given(times=st.lists(st.integers(0, 2**41), min_size=1, max_size=20), data=st.data())
def test_the_first_that_is_late_enough(times: list[int], data: st.DataObject) -> None:
    wanted = data.draw(st.one_of(st.sampled_from(times), st.integers(0, 2**41)))
    start = data.draw(st.integers(0, len(times)))
    records = [RecordTime(FIRST_OFFSET + number, time_ms) for number, time_ms in enumerate(times)][start:]
    batch = build(times)
    expected = next((record for record in records if record.timestamp_ms >= wanted), None)
    assert find_record(batch, wanted, FIRST_OFFSET + start) == expected
    latest = max(records, key=lambda record: record.timestamp_ms, default=None)
    assert find_record(batch, LATEST, FIRST_OFFSET + start) == latest


def test_with_the_brokers_time_all_records_are_of_one_time() -> None:
    batch = with_max_timestamp(build(TIMES), 5, log_append_time=True)
    for wanted in (LATEST, 4, 5):
        assert find_record(batch, wanted, 0) == RecordTime(FIRST_OFFSET, 5)
        assert find_record(batch, wanted, FIRST_OFFSET + 2) == RecordTime(FIRST_OFFSET + 2, 5)
    assert find_record(batch, 6, 0) is None


def test_compressed_records_are_not_seen() -> None:
    with pytest.raises(Unseen, match="gzip"):
        find_record(build(TIMES, compression=1), 0, 0)


@pytest.mark.parametrize(
    "record",
    [
        b"\x0c\x00\x00\x0a\x01\x01\x00",  # offset delta 5, of a batch that ends at 4
        b"\x0c\x00\x00\x01\x01\x01\x00",  # offset delta -1
        b"\x1e\x00" + b"\xfe" + b"\xff" * 8 + b"\x01\x00\x01\x01\x00",  # 2**63 - 1 later than the first
    ],
)
def test_what_lies_outside_its_batch_is_not_seen(record: bytes) -> None:
    with pytest.raises(Unseen, match=r"offset is outside|time is none"):
        find_record(build(TIMES)[:HEADER_SIZE] + record, 0, 0)


@given(records=st.binary(max_size=200))
def test_what_is_no_records_is_not_seen_or_late_enough_by_chance(records: bytes) -> None:
    batch = build(TIMES)[:HEADER_SIZE] + records
    try:
        found = find_record(batch, 2**62, 0)
    except Unseen:
        return
    assert found is None or found.timestamp_ms >= 2**62
