"""One Spark session for all tests of a process that leave it as it was: a start costs as much as several queries.

Owns its settings, its start and its end. A test that needs other settings, or leaves the session harmed, ends it;
the next one who asks gets a new one, in the same Java virtual machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.spark import faults
from tests.spark.quick_java import quick_environment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER = "local[2,4]"
"""Two cores, and a task may fail thrice."""

_started: list[SparkSession] = []


def shared_session(directories: pytest.TempPathFactory) -> SparkSession:
    """Return the session; it is started where none runs."""
    if _started and _started[0].sparkContext._jsc is not None:  # a stopped one has none
        return _started[0]
    from exacta.spark import session

    _started.clear()
    faults.travel_by_value()
    with pytest.MonkeyPatch.context() as patch:
        # Spark's own Java search must not matter.
        patch.delenv("JAVA_HOME", raising=False)
        for name, value in quick_environment().items():
            patch.setenv(name, value)
        settings = {"spark.sql.shuffle.partitions": "2", "spark.local.dir": str(directories.mktemp("blocks"))}
        started = session(MASTER, quick_start=True, settings=settings)
    started.sparkContext.setLogLevel("OFF")
    started.dataSource.register(faults.FaultySource)
    _started.append(started)
    return started


def end_shared_session() -> None:
    """Stop the session, if there is one."""
    while _started:
        _started.pop().stop()
