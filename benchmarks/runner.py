"""Let the brokers take turns at the cases, round after round, and collect the figures.

In each round every case is run with every broker in turn, so that what is compared lies seconds apart: A B A B. Each
turn has a broker of its own, started for it on empty data and warmed up by the case's own load for a fixed time, so
that rounds are alike: a broker on a virtual machine that compiles as it goes becomes faster for more than a minute
(decision 0005), and rounds on one broker would measure its age.

Before each turn the page cache is written out: a broker that syncs nothing would otherwise leave its writes to be
done during the next one's turn. A case that fails is noted and the next one goes on.
"""

import os
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.brokers import Launcher
from benchmarks.cases import Case, LaunchCase
from benchmarks.figures import COST, CaseFailure, Figure, Results
from benchmarks.machine import sync_latency
from benchmarks.session import Scale, Session

PROJECT = Path(__file__).resolve().parents[1]
Progress = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The plan of a run: the cases, how many rounds, and how long."""

    cases: Sequence[Case]
    rounds: int
    scale: Scale


def run(
    launchers: Sequence[Launcher],
    plan: Plan,
    work: Path,
    progress: Progress,
    round_done: Callable[[Results, int], None] = lambda results, round_number: None,
) -> Results:
    """Run the plan with all brokers; `work` is a folder on the disk that holds the brokers' data.

    `round_done` gets what there is after each round, for a run that may be ended before its last one.
    """
    results = Results(brokers=[launcher.name for launcher in launchers])
    turns = [_Turns(launcher, plan.scale, results, progress) for launcher in launchers]
    for round_number in range(1, plan.rounds + 1):
        for case in plan.cases:
            for each in turns:
                _settle(work, results)
                each.take(case, round_number)
        round_done(results, round_number)
    return results


def _settle(work: Path, results: Results) -> None:
    """Leave no writes of the turn before to this one, and see what the disk is like now."""
    os.sync()
    results.sync_latencies_ms.append(sync_latency(work).p50_ms)


class _Turns:
    """One broker's turns."""

    def __init__(self, launcher: Launcher, scale: Scale, results: Results, progress: Progress) -> None:
        self._launcher = launcher
        self._scale = scale
        self._results = results
        self._progress = progress

    def take(self, case: Case, round_number: int) -> None:
        """Run a case once; whatever goes wrong is noted."""
        label = f"round {round_number}: {self._launcher.name}"
        if isinstance(case, LaunchCase) and not self._launcher.starts:
            self._progress(f"{label}: {case.name}: left out, the benchmark does not start it")
            return
        try:
            for figure in self._figures(case):
                self._results.add(self._launcher.name, figure)
                if figure.kind != COST:
                    self._progress(f"{label}: {figure.case}: {figure.value:,.6g} {figure.name}")
        except Exception as error:  # noqa: BLE001  (one failed case must not hide the others)
            reason = self._note(case, round_number, error)
            self._progress(f"{label}: {case.name}: FAILED: {reason}")

    def _figures(self, case: Case) -> Iterable[Figure]:
        if isinstance(case, LaunchCase):
            yield from case.run(self._launcher, case.name)
            return
        with self._launcher.launch() as broker:
            try:
                broker.wait_until_ready()
                session = Session(broker, self._scale)
                yield from case.run(session, case.name)
                session.delete_topics()
            except Exception as error:
                if broker.server is not None and not broker.server.alive():
                    error.add_note(f"the broker has ended: {broker.server.log_tail()}")
                raise

    def _note(self, case: Case, round_number: int, error: Exception) -> str:
        notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
        # Reports are published: where this machine keeps the project is nobody's business.
        reason = f"{type(error).__name__}: {error}{notes}".replace(f"{PROJECT}/", "")
        self._results.failures.append(
            CaseFailure(broker=self._launcher.name, case=case.name, round_number=round_number, reason=reason)
        )
        traceback.print_exception(error)
        return reason
