"""Short histories with a crash at every call to the disk: a share in the quick tests, all of them in the soak."""

import logging
import os

import pytest

from simulation.crash_points import ALPHABET, MODES, crash_everywhere, sequences

ALL = os.environ.get("EXACTA_TEST_CRASH_POINTS") == "all"
SHORT = 2
EVERY = 1 if ALL else 48
"""Of the histories of three commands, which are 512."""


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)  # thousands of torn tails, each worth a warning


def test_the_histories_are_all_of_up_to_three_commands() -> None:
    letters = len(ALPHABET)
    assert len(sequences(3)) == letters + letters**2 + letters**3
    assert {"lost", "prefix", "torn", "reordered"} < set(MODES)


@pytest.mark.timeout(0)
def test_every_crash_in_a_short_history_is_recovered_from() -> None:
    short = sequences(SHORT)
    chosen = [*short, *sequences(3)[len(short) :: EVERY]]
    crashes = 0
    for sequence in chosen:
        count, complaints = crash_everywhere(sequence)
        assert not complaints
        crashes += count
    assert crashes > 25 * len(chosen)
