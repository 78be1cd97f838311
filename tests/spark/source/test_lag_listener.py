"""The lag of a query is told from the progress that Spark reports."""

import logging
from types import SimpleNamespace

import pytest
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)

from exacta.spark.source.lag_listener import Behind, OffsetsBehindLatest, behind


def test_the_gap_of_each_partition():
    end = '{"t":{"0":5,"1":7},"t#0123456789012345678901":{}}'
    assert behind(end, '{"t":{"0":5,"1":17,"2":2},"t#0123456789012345678901":{}}') == Behind(3, 0, 10, 4.0, 12)
    assert behind(end, end) == Behind(2, 0, 0, 0.0, 0)
    # Made again, and shorter than what was read of the old one.
    assert behind(end, '{"t":{"0":1,"1":8}}') == Behind(2, 0, 1, 0.5, 1)
    # As Spark Connect of 4.2 shows them.
    assert behind("{'t': {'0': 5}}", "{'t': {'0': 6}}") == Behind(1, 1, 1, 1.0, 1)


@pytest.mark.parametrize("latest", [None, "null", "None", "", "7", '"x"', "{}", '{"t": 5}', '{"t": {"a": 5}}', "[1"])
def test_offsets_of_other_forms_are_passed_over(latest):
    assert behind('{"t":{"0":5}}', latest) is None


def progress(query, end, latest):
    source = SimpleNamespace(endOffset=end, latestOffset=latest)
    other = SimpleNamespace(endOffset="7", latestOffset="null")
    return SimpleNamespace(
        progress=SimpleNamespace(id=query, name="orders", batchId=4, sources=[source, other]), id=query
    )


def test_the_listener_keeps_and_logs_the_last_values(caplog):
    listener = OffsetsBehindLatest()
    caplog.set_level(logging.INFO, "exacta.spark")
    listener.onQueryProgress(progress("a", '{"t":{"0":5}}', '{"t":{"0":9}}'))
    listener.onQueryProgress(progress("b", '{"t":{"0":5}}', '{"t":{"0":5}}'))
    assert listener.last == {"a": (Behind(1, 4, 4, 4.0, 4), None), "b": (Behind(1, 0, 0, 0.0, 0), None)}
    assert caplog.messages[0] == (
        "query orders, batch 4, source 0: 4 offsets behind latest (min 4, max 4, avg 4.0 of 1 partitions)"
    )
    listener.onQueryTerminated(progress("a", "", ""))
    assert list(listener.last) == ["b"]


@pytest.mark.parametrize(
    "base", [DataSource, DataSourceStreamReader, DataSourceStreamWriter, DataSourceReader, DataSourceWriter]
)
def test_no_part_of_a_source_or_sink_in_python_is_asked_for_metrics(base):
    """If this fails, PySpark asks for metrics: source and sink should then report how far they are behind."""
    assert [name for name in dir(base) if "metric" in name.lower() or "progress" in name.lower()] == []
