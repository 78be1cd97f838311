"""The runner: whose turn it is, what is kept, and that one failure does not hide the rest."""

import contextlib
import os

import pytest
from benchmarks import runner
from benchmarks.brokers import Broker
from benchmarks.cases import BrokerCase, LaunchCase
from benchmarks.figures import RESULT, Figure
from benchmarks.session import Scale


class FakeLauncher:
    """Launch nothing, and keep a diary."""

    def __init__(self, name, diary, starts=True):
        self.name = name
        self.starts = starts
        self._diary = diary

    def versions(self):
        return self.name

    @contextlib.contextmanager
    def launch(self):
        self._diary.append(f"{self.name} up")
        try:
            yield Broker(bootstrap=f"{self.name}:1", process=None)
        finally:
            self._diary.append(f"{self.name} down")


@pytest.fixture
def diary(monkeypatch):
    # A fake broker has no port to wait for.
    monkeypatch.setattr(Broker, "wait_until_ready", lambda self: None)
    # Writing out the page cache of the whole machine takes seconds, and shows nothing here.
    monkeypatch.setattr(os, "sync", lambda: None)
    return []


def broker_case(name, diary, fails=lambda: False):
    def run(session, case):
        diary.append(f"{session.bootstrap.partition(':')[0]} {case}")
        yield Figure(case=case, name="x", value=1.0)
        if fails():
            raise RuntimeError("no luck")
        yield Figure(case=case, name="y", value=2.0)

    return BrokerCase(name=name, title=name, run=run)


def launch_case(name, diary):
    def run(launcher, case):
        diary.append(f"{launcher.name} {case}")
        yield Figure(case=case, name="x", value=1.0)

    return LaunchCase(name=name, title=name, run=run)


def run(cases, launchers, tmp_path, rounds=1):
    lines: list[str] = []
    plan = runner.Plan(cases=cases, rounds=rounds, scale=Scale())
    return runner.run(launchers, plan, tmp_path, lines.append), lines


def test_brokers_alternate_case_by_case_each_turn_with_a_broker_of_its_own(diary, tmp_path):
    cases = [launch_case("start", diary), broker_case("work", diary)]
    launchers = [FakeLauncher("A", diary), FakeLauncher("B", diary)]
    results, _ = run(cases, launchers, tmp_path, rounds=2)
    assert diary == ["A start", "B start", "A up", "A work", "A down", "B up", "B work", "B down"] * 2
    assert results.summary("A", ("work", "x")).rounds == 2
    assert len(results.sync_latencies_ms) == 8


def test_each_round_is_told_of_when_it_is_done(diary, tmp_path):
    told = []

    def tell(results, round_number):
        told.append((round_number, results.summary("A", ("one", "x")).rounds))

    plan = runner.Plan(cases=[broker_case("one", diary)], rounds=2, scale=Scale())
    runner.run([FakeLauncher("A", diary)], plan, tmp_path, lambda line: None, tell)
    assert told == [(1, 1), (2, 2)]


def test_a_failed_case_is_noted_and_keeps_its_figures_and_the_next_goes_on(diary, tmp_path, capsys):
    cases = [broker_case("bad", diary, fails=lambda: True), broker_case("good", diary)]
    results, lines = run(cases, [FakeLauncher("A", diary)], tmp_path)
    assert diary == ["A up", "A bad", "A down", "A up", "A good", "A down"]
    assert results.keys(RESULT) == [("bad", "x"), ("good", "x"), ("good", "y")]
    (failure,) = results.failures
    assert (failure.broker, failure.case, failure.round_number) == ("A", "bad", 1)
    assert failure.reason == "RuntimeError: no luck"
    assert "round 1: A: bad: FAILED: RuntimeError: no luck" in lines
    assert "no luck" in capsys.readouterr().err


def test_launch_cases_are_left_out_where_nothing_is_started(diary, tmp_path):
    results, lines = run([launch_case("start", diary)], [FakeLauncher("A", diary, starts=False)], tmp_path)
    assert diary == []
    assert results.failures == []
    assert lines == ["round 1: A: start: left out, the benchmark does not start it"]
