"""A local Spark session with settings that suit the source and the sink, and Java if there is none.

This module owns the settings and their reasons. A session of the user's own works as well. It only needs `register`,
and not even that if the package is installed.
"""

from __future__ import annotations

import atexit
import os
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from exacta.extras import install_extra
from exacta.spark.java import spark_runs, use_bundled_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from exacta.spark.source.lag_listener import OffsetsBehindLatest

_FOUND_BY_SPARK = "pyspark_exacta"
"""The module by which Spark's workers find the data source without `register`."""

_CHECKPOINT_FILES = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"

_UNIX_SOCKETS = "spark.python.unix.domain.socket.enabled"
"""Spark's Python workers talk to the virtual machine by Unix sockets where this is true, else by TCP."""


class Setting(NamedTuple):
    """A Spark setting, and why it is ours."""

    value: str
    why: str


SETTINGS: Mapping[str, Setting] = {
    "spark.sql.streaming.checkpointFileManagerClass": Setting(
        _CHECKPOINT_FILES,
        "checkpoint files are renamed in place; with the Unix sockets that takes a third off a small batch",
    ),
    _UNIX_SOCKETS: Setting(
        "true", "rows pass between Java and Python by Unix sockets; where their path is short enough"
    ),
    "spark.sql.adaptive.streaming.stateless.enabled": Setting("false", "a repeated batch is sliced as the first time"),
    "spark.sql.session.timeZone": Setting("UTC", "times mean the same wherever the job runs"),
    "spark.ui.enabled": Setting("false", "a local session needs no web server"),
    "spark.driver.host": Setting("127.0.0.1", "a local session listens on the loopback only"),
    "spark.driver.bindAddress": Setting("127.0.0.1", "the same"),
}


_LONGEST_SOCKET_DIRECTORY = 64
"""A Unix socket's path has 107 bytes at most; Spark puts a name of 42 behind the directory for temporary files."""

# Compiling only lightly halves the processor time of a Spark that lives for a minute; a long one wants the default.
_QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def session(
    master: str = "local[2]",
    *,
    app: str = "exacta",
    settings: Mapping[str, str] | None = None,
    quick_start: bool = False,
) -> SparkSession:
    """Start, or return, a local Spark session that knows `format("exacta")`.

    `settings` come on top of ours. With `quick_start` the virtual machine is tuned for a life of a minute or two.

    Raises ModuleNotFoundError where PySpark is not installed, and JavaMissing where there is no Java.
    """
    require_pyspark()
    if not spark_runs():
        use_bundled_java()
    # The workers must be this interpreter: Spark would take whatever `python3` is.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName(app)
    if quick_start:
        builder = builder.config("spark.driver.extraJavaOptions", _QUICK_START)
    short = len(os.fsencode(tempfile.gettempdir())) <= _LONGEST_SOCKET_DIRECTORY
    ours = {name: setting.value for name, setting in SETTINGS.items()} | {_UNIX_SOCKETS: str(short).lower()}
    for name, value in {**ours, **(settings or {})}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    if find_spec(_FOUND_BY_SPARK) is None:
        register(spark)
    stop_queries_first(spark)
    return spark


def require_pyspark() -> None:
    """Raise ModuleNotFoundError, with its remedy, where PySpark is not installed."""
    try:
        import pyspark  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "pyspark":
            raise
        raise ModuleNotFoundError(f"PySpark is not installed: {install_extra('spark')}", name="pyspark") from None


def stop_queries_first(spark: SparkSession) -> None:
    """Have a session of classic Spark stop its streaming queries before it stops itself, or before this process ends.

    A query that is stopped aborts what its batch has open. A query whose session goes away under it cannot do that: its
    transactions hold readers back until the query runs again, or until their time-out. `session` does this by itself.
    With Spark Connect queries live on in the server, and nothing is done.
    """
    if getattr(spark, "_jsparkSession", None) is None or getattr(spark.stop, "stops_queries", False):
        return
    stop = spark.stop

    def stop_all() -> None:
        atexit.unregister(stop_queries)
        stop_queries()
        stop()

    def stop_queries() -> None:
        # The session, or its virtual machine, may be gone already.
        with suppress(Exception):
            for query in spark.streams.active:
                with suppress(Exception):
                    query.stop()

    stop_all.stops_queries = True  # type: ignore[attr-defined]
    spark.stop = stop_all
    atexit.register(stop_queries)


def register(spark: SparkSession) -> None:
    """Make `format("exacta")` known to a session; not needed where Spark finds the installed package by itself."""
    require_pyspark()
    from exacta.spark.datasource import ExactaDataSource

    spark.dataSource.register(ExactaDataSource)


def watch_offsets(spark: SparkSession) -> OffsetsBehindLatest:
    """Log after each micro-batch how many offsets its sources are behind, and keep the last values."""
    from exacta.spark.source import lag_listener

    return lag_listener.watch_offsets(spark)
