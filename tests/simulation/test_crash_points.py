"""Short histories with a crash at every call to the disk: those of two commands, and some of three, in shares.

`make simulate-all` runs all of three commands.
"""

import logging

import pytest

from simulation.crash_points import ALPHABET, crash_everywhere, sequences
from simulation.crash_recovery import MODES
from tests.shares import share_of

EVERY = 67
"""Of the 2,197 histories of three commands, the whole sweep has one in this many."""
OVER_BOTH = ["dc", "da", "ddc", "dda"]
"""The ends of a transaction over marker and sidecar topics: what it has staged is held and spilled, or all spilled."""


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)  # thousands of torn tails, each worth a warning


def test_the_histories_are_all_of_up_to_three_commands() -> None:
    letters = len(ALPHABET)
    assert len(sequences(3)) == letters + letters**2 + letters**3
    assert {"lost", "prefix", "torn", "reordered"} < set(MODES)


def whole() -> list[str]:
    two, three = sequences(2), sequences(3)
    chosen = [*two, *three[len(two) :: EVERY]]
    return chosen + [each for each in OVER_BOTH if each not in chosen]


def test_the_whole_has_each_command_at_each_place() -> None:
    for length in (1, 2, 3):
        same = [each for each in whole() if len(each) == length]
        assert all({each[at] for each in same} == set(ALPHABET) for at in range(length))


@pytest.mark.timeout(0)
def test_every_crash_in_a_short_history_is_recovered_from() -> None:
    crashes, chosen = 0, share_of(whole())
    for sequence in chosen:
        count, complaints = crash_everywhere(sequence)
        assert not complaints
        crashes += count
    assert crashes > 25 * len(chosen)
