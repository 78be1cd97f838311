"""`format("exacta")` for PySpark: a source that reads committed records, and a sink that writes each row exactly once.

`register(spark)`, `session(...)` and `one_task_per_partition(df, ...)` are the interface; they load Spark only when
they are called. Everything here speaks to brokers through `exacta.client` and never imports the broker.
"""

from __future__ import annotations

from exacta.spark.one_task_per_partition import one_task_per_partition
from exacta.spark.session import register, session

__all__ = ["one_task_per_partition", "register", "session"]
