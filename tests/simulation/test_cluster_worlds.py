"""A share of the worlds in which brokers with engines share one log, and anything between them may fail."""

from collections import Counter

import pytest

from simulation.cluster.planted import PLANTED
from simulation.cluster.world import ClusterWorld
from tests.shares import block_of, share_of

WORLDS = block_of(range(40))
"""The seeds of this share."""


def test_nothing_is_wrong_in_these_worlds() -> None:
    counts: Counter[str] = Counter()
    for seed in WORLDS:
        verdict = ClusterWorld(seed).run()
        assert verdict.violations == [], seed
        counts += verdict.counts
    for what in ("led", "delivered", "appended", "confirmed", "shown", "fetched", "caught up"):
        assert counts[what], what


def test_a_seed_is_one_world() -> None:
    assert ClusterWorld(WORLDS[0]).run().digest == ClusterWorld(WORLDS[0]).run().digest


@pytest.mark.parametrize("name", share_of(list(PLANTED)))
def test_a_planted_bug_is_found(name: str) -> None:
    canary = PLANTED[name]
    with canary.plant():
        verdict = ClusterWorld(canary.seed).run()
    assert canary.is_seen_in(verdict.violations), verdict.violations
