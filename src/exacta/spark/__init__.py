"""`format("exacta")` for PySpark: a source that reads committed records, and a sink that writes each row exactly once.

`register(spark)`, `session(...)` and `watch_offsets(spark)` are the interface; they load Spark only when called.
Everything here speaks to brokers through `exacta.client` and never imports the broker.
"""

from __future__ import annotations

from exacta.spark.session import register, session, watch_offsets

__all__ = ["register", "session", "watch_offsets"]
