"""Short histories with a crash at every call to the disk: a share in the quick tests, all of them in the soak."""

import logging
import os

import pytest

from simulation.crash_points import ALPHABET, crash_everywhere, sequences
from simulation.crash_recovery import MODES

ALL = os.environ.get("EXACTA_TEST_CRASH_POINTS") == "all"
EVERY = (1, 1) if ALL else (5, 67)
"""Every so-manyth of the histories of two commands, which are 169, and of three, which are 2197."""
OVER_BOTH = ["dc", "da", "ddc", "dda"]
"""The ends of a transaction over marker and sidecar topics: what it has staged is held and spilled, or all spilled."""


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)  # thousands of torn tails, each worth a warning


def test_the_histories_are_all_of_up_to_three_commands() -> None:
    letters = len(ALPHABET)
    assert len(sequences(3)) == letters + letters**2 + letters**3
    assert {"lost", "prefix", "torn", "reordered"} < set(MODES)


@pytest.mark.timeout(0)
def test_every_crash_in_a_short_history_is_recovered_from() -> None:
    one, two, three = (sequences(length) for length in (1, 2, 3))
    chosen = [*one, *two[len(one) :: EVERY[0]], *three[len(two) :: EVERY[1]]]
    chosen += [each for each in OVER_BOTH if each not in chosen]
    for length in (1, 2, 3):
        same = [each for each in chosen if len(each) == length]
        assert all({each[at] for each in same} == set(ALPHABET) for at in range(length)), "each command at each place"
    crashes = 0
    for sequence in chosen:
        count, complaints = crash_everywhere(sequence)
        assert not complaints
        crashes += count
    assert crashes > 25 * len(chosen)
