"""The benchmark beside Spark's own connector, without Spark: who takes turns, what stands for what, the report."""

from pathlib import Path

import pytest
from benchmarks.bounds import SPARK_BOUNDS
from benchmarks.figures import COST, Figure
from benchmarks.report import Circumstances, has_failed, missed
from benchmarks.spark import report
from benchmarks.spark.job import BULK_TITLES, BY_DRIVER, BY_TASKS, SMALL_TITLES
from benchmarks.spark.turns import CASES, SIDES, SIZES, Scale, Turns


class PretendedTurns(Turns):
    """Turns that start nothing: each side has made up figures."""

    def __init__(self, work: Path, broken: str | None = None) -> None:
        super().__init__(None, [], Scale(), work, lambda line: None)  # type: ignore[arg-type]
        self.taken: list[tuple[str, str]] = []
        self._broken = broken

    def _figures(self, case, side):
        self.taken.append((case.name, side))
        if case.name == self._broken:
            raise RuntimeError("broken")
        if not case.size:
            milliseconds = {"Spark's own": 80.0}.get(side, 240.0 if case.writer == BY_TASKS else 60.0)
            return [Figure(case=case.title, name="p50 ms", value=milliseconds)]
        rate = 100_000.0 if side == "Spark's own" else 150_000.0
        return [
            Figure(case=f"{BULK_TITLES[0]}, {case.size}", name="rows/s", value=rate),
            Figure(case=f"{BULK_TITLES[0]}, {case.size}", name="Spark CPU µs a row", value=9.0, kind=COST),
        ]


def test_every_bound_belongs_to_a_case():
    bulk = {f"{title}, {size}" for title in BULK_TITLES for size in SIZES}
    small = {SMALL_TITLES[BY_TASKS], SMALL_TITLES[BY_DRIVER]}
    assert {case for case, _ in SPARK_BOUNDS} == bulk | small


def test_sides_take_turns_and_one_small_turn_of_sparks_stands_for_both_ways_to_write(tmp_path):
    turns = PretendedTurns(tmp_path)
    results = turns.run(list(CASES.values()), rounds=2)
    ours, theirs = SIDES
    once = [
        *[("bulk-100B", ours), ("bulk-100B", theirs), ("bulk-1KB", ours), ("bulk-1KB", theirs)],
        *[("small-tasks", ours), ("small-tasks", theirs), ("small-driver", ours)],
        *[("small-collect", ours), ("small-read", ours), ("small-read", theirs)],
    ]
    assert turns.taken == once * 2
    for title in SMALL_TITLES.values():
        summary = results.summary(theirs, (title, "p50 ms"))
        assert summary is not None
        assert (summary.median, summary.rounds) == (80.0, 2)


@pytest.mark.parametrize("broken", [None, "small-driver"])
def test_the_report_has_verdicts_settings_and_what_failed(tmp_path, broken):
    results = PretendedTurns(tmp_path, broken).run(list(CASES.values()), rounds=1)
    circumstances = Circumstances(
        date="2026-11-21", command="c", versions=["v"], machine=["m"], rounds=1, scale=Scale()
    )
    text = report.markdown(results, circumstances)
    table, _, rest = text.partition("## Costs")
    rows = {line.split("|")[1].strip(): line for line in table.splitlines() if line.startswith("| ")}
    assert "| 1.50  | aim ≥ 1.3 ×, then ≥ 1.6 × | ok" in rows["topic to topic, 100 B"]
    assert "Spark CPU µs a row" in rest
    assert "| 3.00 " in rows["small batch, by tasks"]
    assert "| aim ≤ 2 × " in rows["small batch, by tasks"]
    assert "| not" in rows["small batch, by tasks"]
    assert ("small batch, by tasks", "p50 ms") in missed(results, required=False)
    assert has_failed(results) == (broken is not None), "an aim that is not reached is no failure"
    assert "`spark.sql.adaptive.streaming.stateless.enabled`" in text
    assert ("small-driver with Exacta, round 1: RuntimeError: broken" in text) == (broken is not None)
