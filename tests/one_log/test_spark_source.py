"""Spark's source on a partition of all kinds of batches, called as Spark calls it, without a virtual machine."""

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from tests.one_log.mixed import MixedTopic, Shown
from tests.spark.readers import batch_of, offsets_of, reader_of, rows_between, rows_of


def between(mixed: MixedTopic, first: int, end: int) -> list[Shown]:
    return [each for each in mixed.shown if first <= each.offset < end]


def check(mixed: MixedTopic, rows: list[dict[str, object]], first: int, end: int) -> None:
    found = [(row["offset"], row["key"], row["value"]) for row in rows]
    assert found == [each[:3] for each in between(mixed, first, end)], (first, end)


def at(stored: dict[str, dict[str, int]], offset: int) -> dict[str, dict[str, int]]:
    """Return the same place of a checkpoint with another offset."""
    return {name: {"0": offset} if "#" not in name else each for name, each in stored.items()}


@pytest.mark.parametrize("length", [1, 3, 8])
def test_ranges_begin_and_end_within_batches(mixed: MixedTopic, length: int) -> None:
    reader = reader_of(mixed.broker.bootstrap_servers, subscribe="t")
    begin = reader.initialOffset()
    for first in range(mixed.end):
        end = min(first + length, mixed.end)
        check(mixed, rows_between(reader, at(begin, first), at(begin, end)), first, end)


def test_batches_that_follow_one_another_have_each_row_once(mixed: MixedTopic) -> None:
    """Their ends lie anywhere: in batches, in gaps, at markers."""
    reader = reader_of(mixed.broker.bootstrap_servers, subscribe="t", maxOffsetsPerTrigger="7")
    stored, rows = reader.initialOffset(), []
    while (end := reader.latestOffset(stored, ReadMaxRows(7))) != stored:
        rows += rows_between(reader, stored, end)
        stored = end
    check(mixed, [row for row in rows if row["offset"] < mixed.end], 0, mixed.end)


def test_a_batch_query_is_sliced_into_tasks_and_tells_headers_and_times(mixed: MixedTopic) -> None:
    ends = {"startingOffsets": '{"t": {"0": 2}}', "endingOffsets": f'{{"t": {{"0": {mixed.end - 2}}}}}'}
    options = {"subscribe": "t", "includeHeaders": "true", "minPartitions": "16", **ends}
    reader = batch_of(mixed.broker.bootstrap_servers, **options)
    assert len(reader.partitions()) >= 16
    rows = rows_of(reader)
    check(mixed, rows, 2, mixed.end - 2)
    for row, shown in zip(rows, between(mixed, 2, mixed.end - 2), strict=True):
        headers = {each["key"]: each["value"] for each in row["headers"] or ()}
        assert headers.get("pulsar-opaque", b"") == shown.reason.encode()
        assert round(row["timestamp"].timestamp() * 1000) == shown.time_ms


def test_a_query_begins_at_a_time(mixed: MixedTopic) -> None:
    for shown in mixed.shown[::6]:
        options = {"subscribe": "t", "startingTimestamp": str(shown.publish_ms)}
        stored = reader_of(mixed.broker.bootstrap_servers, **options).initialOffset()
        [offset] = offsets_of(stored)["t"].values()
        assert between(mixed, offset, mixed.end)[0].publish_ms == shown.publish_ms


def test_a_query_of_everything_gets_the_aborted_too(mixed: MixedTopic) -> None:
    reader = reader_of(mixed.broker.bootstrap_servers, subscribe="t", kafka__isolation__level="read_uncommitted")
    begin = reader.initialOffset()
    rows = rows_between(reader, begin, reader.latestOffset(begin, ReadAllAvailable()))
    more = {row["offset"] for row in rows if row["offset"] < mixed.end} - {each.offset for each in mixed.shown}
    assert len(more) == (0 if mixed.is_compacted else 6)
