"""`format("exacta")` for PySpark: a source that reads committed records, and a sink that writes each row exactly once.

`register(spark)` and `session(...)` are the interface; both load Spark only when they are called. Everything here
speaks to brokers through `exacta.client` and never imports the broker.
"""

from __future__ import annotations

from exacta.spark.session import register, session

__all__ = ["register", "session"]
