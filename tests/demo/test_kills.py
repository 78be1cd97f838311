"""The plan of kills comes from the seed and from nothing else."""

import pytest

from exacta.demo.kills import DEFAULT_COUNTS, KillsSyntaxError, Target, parse_counts, plan


def test_the_default_is_what_the_demo_promises():
    assert parse_counts(DEFAULT_COUNTS) == {Target.DRIVER: 2, Target.BROKER: 2, Target.WORKER: 1}


def test_counts_may_be_left_out():
    assert parse_counts("broker=3") == {Target.DRIVER: 0, Target.BROKER: 3, Target.WORKER: 0}
    assert parse_counts("none") == dict.fromkeys(Target, 0)


@pytest.mark.parametrize("text", ["", "driver", "driver=x", "king=1", "driver=-1"])
def test_other_text_is_refused(text):
    with pytest.raises(KillsSyntaxError):
        parse_counts(text)


def test_a_seed_repeats_its_plan_and_another_draws_another():
    counts = parse_counts(DEFAULT_COUNTS)
    assert plan(7, counts) == plan(7, counts)
    assert plan(7, counts) != plan(8, counts)


@pytest.mark.parametrize("seed", range(50))
def test_a_plan_holds_what_was_asked_for_in_order_of_progress(seed):
    counts = parse_counts(DEFAULT_COUNTS)
    kills = plan(seed, counts)
    assert {target: sum(kill.target is target for kill in kills) for target in Target} == counts
    points = [kill.at_fraction for kill in kills]
    assert points == sorted(points)
    assert points[0] > 0
    assert points[-1] < 1
    assert sum(kill.frozen for kill in kills) == 1  # of two drivers, one leaves frozen workers behind
    for target in (Target.DRIVER, Target.BROKER):  # of two, one is aimed
        assert sum(kill.aimed for kill in kills if kill.target is target) == 1
    assert all(kill.target is Target.DRIVER for kill in kills if kill.frozen)
