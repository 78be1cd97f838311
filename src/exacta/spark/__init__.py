"""`format("exacta")` for PySpark: a source that reads committed records, and a sink that writes each row exactly once.

`write(batch_df, batch_id, ...)`, `check(df, ...)`, `one_task_per_partition(df, ...)`, `register(spark)`,
`session(...)`, `stop_queries_first(spark)`, `use_bundled_java()` and `watch_offsets(spark)` are the interface; they
load Spark only when they are called. Everything here speaks to brokers through `exacta.client` and never imports the
broker.
"""

from exacta.spark.check import CheckFailed, CheckReport, check
from exacta.spark.foreach_batch import WrittenBatch, write
from exacta.spark.java import use_bundled_java
from exacta.spark.session import register, session, stop_queries_first, watch_offsets
from exacta.spark.sink.one_task_per_partition import one_task_per_partition

__all__ = [
    "CheckFailed",
    "CheckReport",
    "WrittenBatch",
    "check",
    "one_task_per_partition",
    "register",
    "session",
    "stop_queries_first",
    "use_bundled_java",
    "watch_offsets",
    "write",
]
