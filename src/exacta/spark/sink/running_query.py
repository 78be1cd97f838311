"""Find, from inside a function of `foreachBatch`, the streaming query that runs it.

This module owns the look into Spark's driver, and its limits. It works in classic Spark only. Only the thread in which
Spark calls the function (or a thread that inherits its local properties) tells which query it is. A function of Spark
Connect runs in a worker of the server, to which Spark tells nothing about the query.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class RunningQuery(NamedTuple):
    """The query whose batch is being written."""

    query_id: str
    batch_id: int
    checkpoint_location: str | None
    run_id: str | None  # of this start of the query
    name: str = ""  # that the user gave it


_found: dict[tuple[str, str], tuple[str, str]] = {}
"""The last run that was found, as (query id, run id) -> the location of its checkpoint, and its name. Asking Spark's
driver takes a dozen round trips between Python and Java, in every batch."""


def running_query(batch_df: DataFrame) -> RunningQuery | None:
    """Return the query that `batch_df` is a micro-batch of, or None where that cannot be told."""
    if _java_session(batch_df) is None:
        return None
    context = batch_df.sparkSession.sparkContext
    query_id = context.getLocalProperty("sql.streaming.queryId")
    batch_id = context.getLocalProperty("streaming.sql.batchId")
    if query_id is None or batch_id is None:
        return None
    # A query's jobs are a group of the name of its run, unless the user has named them otherwise.
    run_id = context.getLocalProperty("spark.jobGroup.id")
    found = _found.get((query_id, run_id))
    if found is None:
        execution = _execution(batch_df, query_id)
        if execution is None:
            return RunningQuery(query_id, int(batch_id), None, None)
        run_id, found = str(execution.runId().toString()), _place_and_name(execution)
        _found.clear()
        _found[query_id, run_id] = found
    return RunningQuery(query_id, int(batch_id), found[0], run_id, found[1])


def _place_and_name(execution: Any) -> tuple[str, str]:
    return str(execution.resolvedCheckpointRoot()), str(execution.name() or "")


def application_of(batch_df: DataFrame) -> str:
    """Return what Spark calls the application."""
    return str(batch_df.sparkSession.conf.get("spark.app.name", "") or "")


def run_id(batch_df: DataFrame, query_id: str) -> str | None:
    """Return the id of this start of a query, from any thread; None in Spark Connect.

    There each start has a process of its own.
    """
    execution = None if _java_session(batch_df) is None else _execution(batch_df, query_id)
    return None if execution is None else str(execution.runId().toString())


def partitions_of(batch_df: DataFrame) -> int:
    """Return how many partitions a micro-batch has, or how many a shuffle makes if Spark Connect does not tell.

    If the rows are ordered, Spark takes a sample of them to find out.
    """
    if _java_session(batch_df) is None:
        return int(batch_df.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    return int(batch_df._jdf.queryExecution().toRdd().getNumPartitions())


def _java_session(batch_df: DataFrame) -> Any:
    """Return the session of classic Spark's driver, or None in Spark Connect."""
    return getattr(batch_df.sparkSession, "_jsparkSession", None)


def _execution(batch_df: DataFrame, query_id: str) -> Any:
    jvm = batch_df.sparkSession.sparkContext._jvm
    assert jvm is not None
    active = _java_session(batch_df).sharedState().activeStreamingQueries()
    return active.get(jvm.java.util.UUID.fromString(query_id))
