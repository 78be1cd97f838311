"""Every planted bug is found, in a bounded number of worlds; or, where that says so, of short histories."""

import logging
import os

import pytest

from simulation.canaries import canaries
from simulation.crash_points import crash_everywhere, sequences
from simulation.runner import run_seeds, run_world

MOST_WORLDS = int(os.environ.get("EXACTA_TEST_CANARY_WORLDS", "60"))
BY_CRASH_POINTS = {"begin-not-awaited", "loss-not-noticed", "torn-tail-accepted"}
"""These need a crash within one or two calls to the disk: all such crashes are tried."""
BEGIN_AT = {
    "loss-not-aborted": 4,
    "pending-offsets-ignored": 18,
    "offsets-not-fenced": 18,
    "offsets-apart-from-data": 4,
    "directory-not-synced": 5,
    "takeover-does-not-abort": 4,
    "late-end-ends-the-next": 4,
}
"""Where to look first, to save time: the seed at which a canary was found when this was written. The others: 0."""


def test_there_are_enough_of_them() -> None:
    assert len(canaries()) >= 12
    assert BY_CRASH_POINTS | BEGIN_AT.keys() <= canaries().keys()


@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", sorted(canaries()))
def test_the_canary_is_found(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    if name in BY_CRASH_POINTS:
        assert _found_by_crash_points(name), "in all histories of two commands"
        return
    totals = run_seeds(BEGIN_AT.get(name, 0), MOST_WORLDS, canary=name)
    assert totals.failures, f"not found in {MOST_WORLDS} worlds"
    seed = totals.failures[0].seed
    assert not run_world(seed).violations, "without the planted bug there is nothing to find"


def _found_by_crash_points(name: str) -> bool:
    with canaries()[name].plant():
        return any(crash_everywhere(sequence)[1] for sequence in sequences(2))
