"""A campaign draws its kills and their points, and a fault strikes where it is armed, once."""

from collections import Counter

import pytest

from tests.shares import SHARES, share_of
from tests.spark import faults
from tests.spark.kill_plan import OF_ANY_SINK, ON_A_CLUSTER, POINTS, Victim, plan


@pytest.mark.parametrize("points", [POINTS, ON_A_CLUSTER])
def test_a_hundred_kills_meet_every_point_of_every_victim(points):
    kills = plan(1, 100, points)
    assert len(kills) == 100
    assert {(kill.victim, kill.point) for kill in kills} == {(v, point) for v in points for point in points[v]}


@pytest.mark.parametrize("number", [0, 1, 7, 13])
def test_as_many_kills_as_were_asked_for(number):
    assert len(plan(1, number)) == number
    assert len(plan(1, number, {Victim.SPARK: OF_ANY_SINK})) == number


def test_the_same_seed_draws_the_same_plan():
    assert plan(3, 50) == plan(3, 50) != plan(4, 50)


def test_ten_shares_are_the_whole_plan_and_each_costs_about_the_same(monkeypatch):
    whole, dealt = plan(1, 104), []
    for share in range(SHARES):
        monkeypatch.setenv("SHARE", str(share))
        kills = plan(1, 104, chosen=share_of)
        assert 10 <= len(kills) <= 11
        assert 2 <= sum(kill.ends_life for kill in kills) <= 3
        assert set(POINTS) <= {kill.victim for kill in kills} | {Victim.DRIVER}
        dealt += kills
    assert Counter(dealt) == Counter(whole)


def test_a_fault_strikes_once_where_it_is_armed(tmp_path):
    faults.arm(tmp_path, faults.DECIDED, faults.RAISE)
    faults.reach(str(tmp_path), faults.COMMITTED)
    with pytest.raises(RuntimeError, match="because a test wants it to"):
        faults.reach(str(tmp_path), faults.DECIDED)
    faults.reach(str(tmp_path), faults.DECIDED)
    assert [strike.point for strike in faults.struck(tmp_path)] == [faults.DECIDED]


def test_a_fault_lets_so_many_pass(tmp_path):
    for _ in range(2):  # the count begins again
        faults.arm(tmp_path, faults.A_REQUEST, faults.RAISE, skip=3)
        for _ in range(3):
            faults.reach(str(tmp_path), faults.A_REQUEST)
        with pytest.raises(RuntimeError):
            faults.reach(str(tmp_path), faults.A_REQUEST)


def test_what_is_disarmed_does_not_strike(tmp_path):
    faults.arm(tmp_path, faults.DECIDED, faults.RAISE)
    assert faults.disarm(tmp_path)
    faults.reach(str(tmp_path), faults.DECIDED)
    assert not faults.disarm(tmp_path)
