"""The record of a time in a batch of the log, compressed or not, against a list."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exacta.protocol.kafka.compression import LEVELS
from exacta.protocol.kafka.record_times import RecordTime
from exacta.protocol.kafka.records import HEADER_SIZE, recompressed, with_max_timestamp
from exacta.records import record_search
from exacta.records.record_search import LATEST, Unseen, find_record, search_bytes
from tests.protocol.kafka.test_record_times import FIRST_OFFSET, build

TIMES = [1_700_000_000_000, 1_700_000_000_900, 1_699_999_999_000, 1_700_000_000_900, 1_700_000_070_000]


def in_codec(times: list[int], codec: int) -> bytes:
    plain = build(times)
    return recompressed(plain, plain[HEADER_SIZE:], codec, LEVELS.get(codec, 0))


@given(times=st.lists(st.integers(0, 2**41), min_size=1, max_size=20), codec=st.integers(0, 4), data=st.data())
def test_the_first_that_is_late_enough(times: list[int], codec: int, data: st.DataObject) -> None:
    wanted = data.draw(st.one_of(st.sampled_from(times), st.integers(0, 2**41)))
    start = data.draw(st.integers(0, len(times)))
    records = [RecordTime(FIRST_OFFSET + number, time_ms) for number, time_ms in enumerate(times)][start:]
    batch = in_codec(times, codec)
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


@pytest.mark.parametrize(("times", "latest"), [([-5, -7], None), ([-5, -1], RecordTime(FIRST_OFFSET + 1, -1))])
def test_a_time_before_1970_is_never_the_latest(times: list[int], latest: RecordTime | None) -> None:
    assert find_record(in_codec(times, 0), LATEST, 0) == latest


def test_the_work_is_known_but_where_the_batch_is_compressed() -> None:
    assert search_bytes(with_max_timestamp(in_codec(TIMES, 1), 5, log_append_time=True)) == 0
    assert search_bytes(in_codec(TIMES, 1)) is None
    assert (search_bytes(build(TIMES)) or 0) > len(build(TIMES))


def test_what_was_admitted_unread_may_be_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Unseen, match="outside the batch"):
        find_record(build(TIMES)[:-1], 1_700_000_000_901, 0)
    with pytest.raises(Unseen, match="cannot be decompressed"):
        find_record(in_codec(TIMES, 4)[:-9], 0, 0)
    monkeypatch.setattr(record_search, "MAX_DECOMPRESSED_BYTES", 100)
    with pytest.raises(Unseen, match="cannot be decompressed"):
        find_record(in_codec(TIMES, 3), 0, 0)
