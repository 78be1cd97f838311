"""A share of the worlds: nothing in them may be wrong, and enough must have gone wrong around them."""

import os

import pytest

from simulation.runner import run_seeds

WORLDS = int(os.environ.get("EXACTA_TEST_WORLDS", "12"))
BLOCK = max(12, WORLDS // 4)
"""So many are run one after another, and what they come to is looked at together."""
WANTED = {"kill", "power", "late or repeated request", "client crash", "clock jump"}
STAGED = {"entered, held", "entered, in place", "dropped, held", "dropped, in place"}


@pytest.mark.timeout(0)
@pytest.mark.parametrize("first", range(0, WORLDS, BLOCK))
def test_nothing_is_wrong_in_these_worlds(first: int) -> None:
    count = min(BLOCK, WORLDS - first)
    totals = run_seeds(first, count)
    assert not totals.failures, (totals.failures[0].seed, totals.failures[0].violations)
    assert totals.seeds == count
    assert totals.acknowledged > 50 * count
    assert {fault.removesuffix(" at a call to the disk") for fault in totals.faults} >= WANTED
    assert any(fault.endswith(" at a call to the disk") for fault in totals.faults)
    assert totals.cleanings
    assert totals.compactions
    assert totals.retentions
    assert totals.expiries
    assert totals.options
    assert totals.partly, "an older open transaction has held back a part of a committed one"
    assert totals.lives > 2 * count
    assert {*totals.staging} >= STAGED
