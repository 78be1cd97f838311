"""A share of the worlds: nothing in them may be wrong, and enough must have gone wrong around them."""

import pytest

from simulation.runner import run_seeds
from tests.shares import block_of

WORLDS = block_of(range(120))
"""The seeds of this share. `make simulate` runs a thousand worlds."""

ALL_KINDS = (1, 4)
"""These two worlds meet all that is wanted of worlds. If what they draw has changed, others do."""

WANTED = {"kill", "power", "late or repeated request", "client crash", "clock jump"}
STAGED = {"entered, held", "entered, in place", "dropped, held", "dropped, in place"}


@pytest.mark.timeout(0)
@pytest.mark.parametrize("seed", WORLDS)
def test_nothing_is_wrong_in_this_world(seed: int) -> None:
    totals = run_seeds(seed, 1)
    assert not totals.failures, totals.failures[0].violations
    assert totals.acknowledged > 0


@pytest.mark.timeout(0)
def test_enough_goes_wrong_around_worlds() -> None:
    both = [run_seeds(seed, 1) for seed in ALL_KINDS]
    faults = {fault for totals in both for fault in totals.faults}
    assert {fault.removesuffix(" at a call to the disk") for fault in faults} >= WANTED
    assert any(fault.endswith(" at a call to the disk") for fault in faults)
    for what in ("cleanings", "compactions", "retentions", "expiries", "options"):
        assert any(getattr(totals, what) for totals in both), what
    assert any(totals.partly for totals in both), "an older open transaction has held back a part of a committed one"
    assert sum(totals.acknowledged for totals in both) > 50 * len(both)
    assert sum(totals.lives for totals in both) > 2 * len(both)
    assert {kind for totals in both for kind in totals.staging} >= STAGED
