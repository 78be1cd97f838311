"""Every planted bug is found, in a bounded number of worlds; or, where that says so, of short histories.

A share of them is looked for, and each whose module a recent commit has changed: the simulation may be blind there now.
"""

import inspect
import logging
import os
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from simulation.canaries import canaries
from simulation.crash_points import crash_everywhere, sequences
from simulation.runner import Totals, run_seeds, run_world
from simulation.world import Verdict
from tests.shares import ROOT, changed, share_of
from tests.simulation.canary_seeds import noted
from tests.simulation.test_worlds import WORLDS

pytestmark = pytest.mark.canary

FROM_THE_FIRST = os.environ.get("EXACTA_TEST_CANARIES") == "all"
MOST_WORLDS = int(os.environ.get("EXACTA_TEST_CANARY_WORLDS", "200" if FROM_THE_FIRST else "60"))


def files_of(modules: set[str]) -> set[Path]:
    """Return where these modules lie, but for those of others."""
    specs = [find_spec(name) for name in modules if name.partition(".")[0] in ("exacta", "simulation")]
    return {Path(spec.origin) for spec in specs if spec is not None and spec.origin is not None}


CHANGED = changed()
LOOKED_FOR = sorted(
    {*share_of(sorted(canaries()))} | {name for name, each in canaries().items() if CHANGED & files_of(each.touches())}
)
BEGIN_AT = noted()
"""Where the quick tests look first. The others: 0."""
BY_CRASH_POINTS = {
    "ack-not-awaited": "k",
    "always-unseen": "sw",
    "begin-not-awaited": "sw",
    "loss-not-aborted": "w",
    "loss-not-noticed": "ow",
    "lost-handle-commits": "h",
    "reservation-not-awaited": "h",
    "torn-tail-accepted": "ch",
    "unseen-not-fenced": "w",
}
"""What a crash within one or two calls to the disk shows, and the short history in which the quick tests look first."""


def test_there_are_enough_of_them() -> None:
    assert len(canaries()) >= 12
    assert {*BY_CRASH_POINTS, *BEGIN_AT} <= canaries().keys()


@pytest.mark.timeout(0)
@pytest.mark.parametrize("seed", sorted({BEGIN_AT[name] for name in LOOKED_FOR if name in BEGIN_AT} - {*WORLDS}))
def test_without_a_planted_bug_there_is_nothing_to_find(seed: int) -> None:
    assert not run_world(seed).violations


@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", LOOKED_FOR)
def test_the_canary_is_found(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    first = 0 if FROM_THE_FIRST else BEGIN_AT.get(name, 0)
    totals = run_seeds(first, MOST_WORLDS, canary=name)
    others = [(verdict.seed, verdict.violations[0]) for verdict in totals.others]
    assert totals.failures, f"not found in {MOST_WORLDS} worlds, of which these fail otherwise: {others}"
    seed = totals.failures[0].seed
    if seed not in BEGIN_AT.values() and seed not in WORLDS:  # those are tested without it anyway
        assert not run_world(seed).violations, "without the planted bug there is nothing to find"


def world(violations: list[str]) -> Verdict:
    return Verdict(0, violations, "", 1.0, Counter(), 1, 0, 0, 0, 0, 0, 0, Counter(), 0, [], Counter())


def test_only_the_violation_that_it_names_shows_a_canary() -> None:
    found = canaries()["torn-tail-accepted"]
    totals = Totals()
    for violations in (["a client failed: TypeError: 1"], []):
        totals.add(world(violations), found.name)
    assert len(totals.others) == 1
    assert not totals.failures


def test_a_canary_touches_its_own_file_and_what_it_replaces_in_a_table() -> None:
    touched = files_of(canaries()["topic-epoch-given-twice"].touches())
    assert {ROOT / "simulation/canaries/exclusive.py", ROOT / "src/exacta/core/log/fold.py"} <= touched


@pytest.mark.parametrize("name", sorted(canaries()))
def test_a_change_of_the_file_with_the_planted_bug_makes_the_canary_looked_for(name: str) -> None:
    canary = canaries()[name]
    touched = files_of(canary.touches())
    assert all(path.is_file() and path.is_relative_to(ROOT) for path in touched)
    for owner, attribute, _ in canary.replacements():
        original = owner[attribute] if isinstance(owner, dict) else getattr(owner, attribute, owner)
        code: Any = inspect.unwrap(original) if inspect.isfunction(original) else owner
        if not isinstance(code, dict):
            assert Path(inspect.getfile(code)) in touched, f"{original} is replaced"


@pytest.mark.parametrize(
    ("name", "history"), [(name, each) for name, each in BY_CRASH_POINTS.items() if name in LOOKED_FOR]
)
def test_the_canary_is_found_by_the_crashes_in_short_histories(
    name: str, history: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    first = [] if FROM_THE_FIRST else [history]
    with canaries()[name].plant():
        assert any(canaries()[name].is_seen_in(crash_everywhere(each)[1]) for each in [*first, *sequences(2)])
