"""What the demo tells, and leaves behind, where something ended by itself."""

from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from exacta.demo import run
from exacta.demo.run import DemoSettings, telling


def test_where_a_cause_was_raised_is_told_with_it() -> None:
    """Else nobody learns which collection changed while Spark serialized a task."""
    log = [
        "26/11/28 02:00:00 ERROR MicroBatchExecution: Query enriched terminated with error",
        "org.apache.spark.SparkException: Task not serializable",
        "\tat org.apache.spark.util.SparkClosureCleaner$.clean(SparkClosureCleaner.scala:45)",
        "Caused by: java.util.ConcurrentModificationException",
        "\tat java.base/java.util.ArrayList.writeObject(Unknown Source)",
        "\tat java.base/java.io.ObjectOutputStream.writeSerialData(Unknown Source)",
    ]
    assert telling(log) == [log[0], log[1], log[3], log[4]]


@pytest.mark.parametrize("restarts", [{}, {"pipeline": 1}])
def test_the_log_of_what_ended_by_itself_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restarts: dict[str, int]
) -> None:
    work = tmp_path / "work"
    verdicts = [SimpleNamespace(exactly_once=True)] * 2
    demo = MagicMock(verdicts=verdicts, unplanned_restarts=restarts)
    monkeypatch.setattr(run, "_Demo", lambda *_: demo)
    monkeypatch.setattr("exacta.demo.run.tempfile.mkdtemp", lambda prefix: str(work))
    assert run.run(DemoSettings(seed=1, sink_format="exacta", kills={}), MagicMock())
    assert work.exists() == bool(restarts)
