"""Every planted bug is found, in a bounded number of worlds; or, where that says so, of short histories."""

import logging
import os
from collections import Counter
from functools import cache

import pytest

from simulation.canaries import canaries
from simulation.crash_points import crash_everywhere, sequences
from simulation.runner import Totals, run_seeds, run_world
from simulation.world import Verdict

FROM_THE_FIRST = os.environ.get("EXACTA_TEST_CANARIES") == "all"
MOST_WORLDS = int(os.environ.get("EXACTA_TEST_CANARY_WORLDS", "200" if FROM_THE_FIRST else "60"))
BEGIN_AT = {
    "ack-not-awaited": 44,
    "always-unseen": 51,
    "answer-before-durable": 2,
    "begin-not-awaited": 46,
    "consumer-not-awaited": 113,
    "cursor-behind-the-log": 51,
    "directory-not-synced": 4,
    "key-torn": 20,
    "keys-of-two-kinds": 74,
    "late-write-begins-the-next": 10,
    "kinds-not-checked": 38,
    "offsets-not-fenced": 49,
    "pending-offsets-ignored": 250,
    "repeat-refused": 6,
    "reservation-not-awaited": 66,
    "retry-after-failed-sync": 9,
    "tail-not-written-again": 14,
    "takeover-does-not-abort": 15,
    "tombstone-before-its-time": 10,
    "unseen-not-fenced": 63,
}
"""Where the quick tests look first: the seed at which a canary was found when this was written. The others: 0."""
BY_CRASH_POINTS = (
    "ack-not-awaited",
    "always-unseen",
    "begin-not-awaited",
    "loss-not-aborted",
    "loss-not-noticed",
    "lost-handle-commits",
    "reservation-not-awaited",
    "torn-tail-accepted",
    "unseen-not-fenced",
)
"""What a crash within one or two calls to the disk shows."""


def test_there_are_enough_of_them() -> None:
    assert len(canaries()) >= 12
    assert {*BY_CRASH_POINTS, *BEGIN_AT} <= canaries().keys()


@cache
def violations_without(seed: int) -> list[str]:
    """Return what is wrong in a world without a planted bug; several canaries are found in the same one."""
    return run_world(seed).violations


@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", sorted(canaries()))
def test_the_canary_is_found(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    first = 0 if FROM_THE_FIRST else BEGIN_AT.get(name, 0)
    totals = run_seeds(first, MOST_WORLDS, canary=name)
    others = [(verdict.seed, verdict.violations[0]) for verdict in totals.others]
    assert totals.failures, f"not found in {MOST_WORLDS} worlds, of which these fail otherwise: {others}"
    seed = totals.failures[0].seed
    assert not violations_without(seed), "without the planted bug there is nothing to find"


def world(violations: list[str]) -> Verdict:
    return Verdict(0, violations, "", 1.0, Counter(), 1, 0, 0, 0, 0, 0, [])


def test_only_the_violation_that_it_names_shows_a_canary() -> None:
    found = canaries()["torn-tail-accepted"]
    totals = Totals()
    for violations in (["a client failed: TypeError: 1"], []):
        totals.add(world(violations), found.name)
    assert len(totals.others) == 1
    assert not totals.failures


@pytest.mark.parametrize("name", BY_CRASH_POINTS)
def test_the_canary_is_found_by_the_crashes_in_short_histories(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    with canaries()[name].plant():
        assert any(canaries()[name].is_seen_in(crash_everywhere(sequence)[1]) for sequence in sequences(2))
