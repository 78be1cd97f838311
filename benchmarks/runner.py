"""Let the brokers take turns at the cases, round after round, and collect the figures.

In each round every case is run with every broker in turn, so that what is compared lies seconds apart: A B A B. The
cases that launch brokers of their own come first, while nothing else runs. For the others each broker is launched
once and serves all rounds: a broker on a virtual machine that compiles as it goes is several times slower in its
first minute, and would otherwise be measured cold in every round. For the same reason there may be warm-up rounds,
whose figures are not kept.

Before each turn the page cache is written out: a broker that syncs nothing would otherwise leave its writes to be
done during the next one's turn. A case that fails is noted and the next one goes on, with a fresh broker, because the
old one may be what failed.
"""

import contextlib
import os
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.brokers import Broker, Launcher
from benchmarks.cases import BrokerCase, Case, LaunchCase
from benchmarks.figures import COST, CaseFailure, Figure, Results
from benchmarks.machine import sync_latency
from benchmarks.session import Scale, Session

PROJECT = Path(__file__).resolve().parents[1]
Progress = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to run: the cases, how many rounds, how many more before them whose figures are not kept, and how long."""

    cases: Sequence[Case]
    rounds: int
    warm_up_rounds: int
    scale: Scale


def run(launchers: Sequence[Launcher], plan: Plan, work: Path, progress: Progress) -> Results:
    """Run the plan with all brokers; `work` is a folder on the disk that holds the brokers' data."""
    results = Results(brokers=[launcher.name for launcher in launchers])
    launch_cases = [case for case in plan.cases if isinstance(case, LaunchCase)]
    broker_cases = [case for case in plan.cases if isinstance(case, BrokerCase)]
    with contextlib.ExitStack() as stack:
        stations = [stack.enter_context(_Station(launcher, plan.scale, results, progress)) for launcher in launchers]
        for round_number in range(1, plan.rounds + 1):
            _round(launch_cases, stations, round_number, work, results)
        # Rounds up to 0 warm up.
        for round_number in range(1 - plan.warm_up_rounds, plan.rounds + 1):
            _round(broker_cases, stations, round_number, work, results)
    return results


def _round(
    cases: Sequence[Case], stations: Sequence["_Station"], round_number: int, work: Path, results: Results
) -> None:
    for case in cases:
        for station in stations:
            _settle(work, results)
            station.take(case, round_number)


def _settle(work: Path, results: Results) -> None:
    """Leave no writes of the turn before to this one, and see what the disk is like now."""
    os.sync()
    results.sync_latencies_ms.append(sync_latency(work).p50_ms)


class _Station:
    """One broker's place in the run: launches it when it is first needed, and again after a case has failed."""

    def __init__(self, launcher: Launcher, scale: Scale, results: Results, progress: Progress) -> None:
        self._launcher = launcher
        self._scale = scale
        self._results = results
        self._progress = progress
        self._running = contextlib.ExitStack()
        self._broker: Broker | None = None

    def __enter__(self) -> "_Station":
        return self

    def __exit__(self, *_: object) -> None:
        self._end_broker()

    def take(self, case: Case, round_number: int) -> None:
        """Run a case once; whatever goes wrong is noted."""
        label = f"round {round_number}" if round_number > 0 else "warm-up"
        if isinstance(case, LaunchCase) and not self._launcher.starts:
            self._progress(f"{label}: {case.name}: left out, the benchmark does not start {self._launcher.name}")
            return
        try:
            for figure in self._figures(case):
                if round_number > 0:
                    self._results.add(self._launcher.name, figure)
                if figure.kind != COST:
                    number = f"{figure.value:,.6g} {figure.name}"
                    self._progress(f"{label}: {self._launcher.name}: {figure.case}: {number}")
        except Exception as error:  # noqa: BLE001  (one failed case must not hide the others)
            self._note(case, round_number, error)
            self._progress(f"{label}: {self._launcher.name}: {case.name}: FAILED: {self._results.failures[-1].reason}")
            self._end_broker()

    def _figures(self, case: Case) -> Iterable[Figure]:
        if isinstance(case, LaunchCase):
            yield from case.run(self._launcher, case.name)
            return
        session = Session(self._running_broker(), self._scale)
        yield from case.run(session, case.name)
        session.delete_topics()

    def _running_broker(self) -> Broker:
        if self._broker is None:
            broker = self._running.enter_context(self._launcher.launch())
            broker.wait_until_ready()
            self._broker = broker
        return self._broker

    def _end_broker(self) -> None:
        self._broker = None
        self._running.close()

    def _note(self, case: Case, round_number: int, error: Exception) -> None:
        reason = f"{type(error).__name__}: {error}"
        if self._broker is not None and self._broker.server is not None and not self._broker.server.alive():
            reason += f" (the broker has ended: {self._broker.server.log_tail()})"
        # Reports are published: where this machine keeps the project is nobody's business.
        reason = reason.replace(f"{PROJECT}/", "")
        failure = CaseFailure(broker=self._launcher.name, case=case.name, round_number=round_number, reason=reason)
        self._results.failures.append(failure)
        traceback.print_exception(error)
