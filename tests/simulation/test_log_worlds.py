"""A share of the worlds in which several brokers have nothing but a shared log: one log, for all of them, always."""

from collections import Counter

import pytest

from simulation.cluster.canaries import CANARIES
from simulation.cluster.log_world import LogWorld
from tests.shares import block_of

WORLDS = block_of(range(80))
"""The seeds of this share."""

ALL_KINDS = (1, 19)
"""These worlds meet all that is wanted of worlds. If what they draw has changed, others do."""

WANTED = {
    *("kill", "machine gone", "pause", "cut off", "slow wire", "messages lost", "store fails"),
    *("database restarts", "failover", "standby away"),
}


@pytest.mark.parametrize("seed", WORLDS)
def test_nothing_is_wrong_in_this_world(seed: int) -> None:
    verdict = LogWorld(seed).run()
    assert verdict.violations == []
    assert verdict.acknowledged > 0


def test_enough_goes_wrong_around_worlds() -> None:
    verdicts = [LogWorld(seed).run() for seed in ALL_KINDS]
    faults = sum((verdict.faults for verdict in verdicts), Counter())
    counts = sum((verdict.counts for verdict in verdicts), Counter())
    assert set(faults) >= WANTED
    assert counts["led"] > 3 * len(verdicts)
    for what in ("confirmed", "caught up", "read", "folded", "cleaned", "begun again"):
        assert counts[what], what


def test_a_seed_is_one_world() -> None:
    assert LogWorld(5).run().digest == LogWorld(5).run().digest
    assert LogWorld(5).run().digest != LogWorld(6).run().digest


@pytest.mark.parametrize("name", CANARIES)
def test_a_planted_bug_is_found(name: str) -> None:
    canary = CANARIES[name]
    with canary.plant():
        verdict = LogWorld(canary.seed).run()
    assert canary.is_seen_in(verdict.violations), verdict.violations
