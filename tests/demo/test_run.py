"""How the demo ends: what it says, and what it leaves behind."""

import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from rich.console import Console

from exacta.demo import run, topics
from exacta.demo.flights import FlightsMissing
from exacta.demo.run import DemoFailed, DemoSettings, Outcome, telling
from exacta.demo.screen import Screen
from tests.signals import heard


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


class StandIn:
    """A demo as `run` sees it: it may fail, be ended, and has judged some outputs."""

    def __init__(self, verdicts: Sequence[bool], restarts: dict[str, int], ends_with: BaseException | None) -> None:
        self.verdicts = [SimpleNamespace(exactly_once=each) for each in verdicts]
        self.unplanned_restarts = restarts
        self._ends_with = ends_with

    def run(self) -> None:
        if self._ends_with is not None:
            raise self._ends_with

    def clean_up(self) -> None:
        pass

    def summary(self, _: float) -> str:
        return "summary"


@dataclass
class Ran:
    """How a demo of a stand-in ended, what was shown, and what is left of its directory."""

    outcome: Outcome | None
    shown: str
    work: Path


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    def run_it(
        verdicts: Sequence[bool] = (), restarts: Mapping[str, int] | None = None, ends_with: BaseException | None = None
    ) -> Ran:
        work = tmp_path / "work"
        monkeypatch.setattr("exacta.demo.run.tempfile.mkdtemp", lambda prefix: str(work))
        monkeypatch.setattr(run, "_Demo", lambda *_: StandIn(verdicts, dict(restarts or {}), ends_with))
        monkeypatch.setattr(Screen, "verdicts", lambda self, found: self.say(f"table of {len(found)}"))
        shown = io.StringIO()
        outcome = None
        with suppress(KeyboardInterrupt, SystemExit, FlightsMissing, ZeroDivisionError):
            outcome = run.run(
                DemoSettings(seed=1, sink_format="exacta", kills={}), Screen(Console(file=shown, width=200))
            )
        return Ran(outcome, shown.getvalue(), work)

    return run_it


@pytest.mark.parametrize("restarts", [{}, {"pipeline": 1}])
def test_the_log_of_what_ended_by_itself_is_kept(ran: Callable[..., Ran], restarts: dict[str, int]) -> None:
    demo = ran([True, True], restarts)
    assert demo.outcome is Outcome.EXACTLY_ONCE
    assert demo.work.exists() == bool(restarts)
    assert demo.shown.endswith("exactly once: yes\n")


def test_a_demo_that_could_not_run_counts_no_losses(ran: Callable[..., Ran]) -> None:
    demo = ran(ends_with=DemoFailed("the pipeline has not moved for 300 s"))
    assert demo.outcome is Outcome.COULD_NOT_RUN
    assert demo.outcome.value == 2
    assert demo.shown.endswith("could not run: the pipeline has not moved for 300 s\n")
    assert "table" not in demo.shown
    assert f"data: {demo.work}" in demo.shown
    assert (demo.work / "demo.log").read_text().endswith("could not run: the pipeline has not moved for 300 s\n")


@pytest.mark.parametrize("then", [None, topics.ReadStalled("no end")])
def test_what_was_judged_wrong_stays_wrong(ran: Callable[..., Ran], then: Exception | None) -> None:
    """Also where the other output could not be read any more."""
    demo = ran([False], ends_with=then)
    assert demo.outcome is Outcome.NOT_EXACTLY_ONCE
    assert "table of 1" in demo.shown
    assert demo.shown.endswith("exactly once: no\n")


@pytest.mark.parametrize("end", [KeyboardInterrupt(), SystemExit(143), FlightsMissing("not installed")])
def test_a_demo_that_is_ended_leaves_no_directory(ran: Callable[..., Ran], end: BaseException) -> None:
    assert not ran(ends_with=end).work.exists()


def test_a_demo_that_fails_unexpectedly_names_its_directory(ran: Callable[..., Ran]) -> None:
    demo = ran(ends_with=ZeroDivisionError())
    assert demo.work.exists()
    assert f"data: {demo.work}" in demo.shown


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_demo_and_all_of_it(tmp_path: Path, number: signal.Signals) -> None:
    with heard(number):
        demo = subprocess.Popen(
            [sys.executable, "-m", "exacta.cli", "demo", "--flights", "500", "--kills", "none"],
            env=os.environ | {"TMPDIR": str(tmp_path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    with demo:
        assert demo.stdout is not None
        assert any("the pipeline is starting" in line for line in demo.stdout)
        children = psutil.Process(demo.pid).children(recursive=True)
        assert children
        demo.send_signal(number)
        assert demo.wait(60) == 128 + number
    assert [*tmp_path.glob("exacta-demo-*")] == []
    assert not [child for child in children if child.is_running()]
