"""The streaming query that runs a function of `foreachBatch`, as far as it can be found from inside that function.

Owns the look into Spark's driver, and its limits: classic Spark only, and only from the thread in which Spark calls the
function (or a thread that inherits its local properties). A function of Spark Connect runs in a worker of the server,
to which Spark tells nothing about the query.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class RunningQuery(NamedTuple):
    """The query whose batch is being written."""

    query_id: str
    batch_id: int
    run_id: str | None  # of this start of it; None: not told
    checkpoint_location: str | None


def running_query(batch_df: DataFrame) -> RunningQuery | None:
    """Return the query that `batch_df` is a micro-batch of, or None where that cannot be told."""
    session = batch_df.sparkSession
    java_session = getattr(session, "_jsparkSession", None)
    if java_session is None:  # Spark Connect
        return None
    context = session.sparkContext
    query_id = context.getLocalProperty("sql.streaming.queryId")
    batch_id = context.getLocalProperty("streaming.sql.batchId")
    if query_id is None or batch_id is None:
        return None
    jvm = context._jvm
    assert jvm is not None
    execution = java_session.sharedState().activeStreamingQueries().get(jvm.java.util.UUID.fromString(query_id))
    if execution is None:
        return RunningQuery(query_id, int(batch_id), None, None)
    return RunningQuery(query_id, int(batch_id), execution.runId().toString(), str(execution.resolvedCheckpointRoot()))
