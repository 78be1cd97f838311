"""The judge of a campaign finds what is planted: a torn transaction, and looks that show a part without a reason."""

import pytest

from tests.pulsar_clients.looks import Judge, Log, Look, Lying, Seen
from tests.pulsar_clients.sidecar_looks import SidecarJudge


def record(offset: int, value: str, producer_id: int = 1) -> Lying:
    return Lying(offset, producer_id, value, False, False)


def marker(offset: int, producer_id: int = 1, *, commits: bool = True) -> Lying:
    return Lying(offset, producer_id, "", True, commits)


def judged(log: Log, *looks: Look) -> list[str]:
    judge = Judge(log)
    judge.judge(looks)
    return judge.anomalies


BOTH = {"a": [record(0, "t 1 -5"), marker(1)], "b": [record(0, "t 1 5", 2), marker(1, 2)]}
"""One transaction, of two producers."""
BEHIND = {
    "a": [record(0, "t 1 -5"), marker(1)],
    "b": [record(0, "older", 3), record(1, "t 1 5", 2), marker(2, 2), marker(3, 3, commits=False)],
}
"""The same behind an older one, which is aborted."""


def test_all_and_nothing_may_be_seen() -> None:
    looks = [{"a": Seen(0, 1), "b": Seen(0, 0)}, {"a": Seen(2, 2), "b": Seen(2, 2)}]
    assert judged(BOTH, *looks) == []


def test_a_part_may_be_seen_behind_an_older_one() -> None:
    judge = Judge(BEHIND)
    judge.judge([{"a": Seen(2, 2), "b": Seen(0, 3)}, {"a": Seen(2, 2), "b": Seen(4, 4)}])
    assert (judge.anomalies, judge.partial) == ([], 1)
    assert judge.values("b") == ["t 1 5"]


@pytest.mark.parametrize(
    ("log", "look", "why"),
    [
        (BOTH, {"a": Seen(2, 2), "b": Seen(0, 2)}, "lacks t in b, where nothing older begins at 0"),
        (BOTH, {"a": Seen(2, 2), "b": Seen(0, 0)}, "shows a part of t, which has not ended in b"),
        (BEHIND, {"a": Seen(2, 2), "b": Seen(1, 3)}, "lacks t in b, where nothing older begins at 1"),
        (BEHIND, {"a": Seen(2, 2), "b": Seen(0, 4)}, "lacks t in b because of older, which has ended"),
    ],
)
def test_a_part_may_be_seen_for_no_other_reason(log: Log, look: Look, why: str) -> None:
    assert any(why in each for each in judged(log, look))


def test_money_is_neither_lost_nor_made() -> None:
    log = {"a": [record(0, "t 1 -5"), marker(1)]}
    assert judged(log, {"a": Seen(2, 2)}) == ["look 0 shows accounts that add up to -5"]


def test_nothing_that_was_seen_goes_away() -> None:
    found = judged(BOTH, {"a": Seen(2, 2), "b": Seen(2, 2)}, {"a": Seen(2, 2), "b": Seen(0, 2)})
    assert found == ["look 1 goes back in b: Seen(stable=2, end=2), Seen(stable=0, end=2)"]


@pytest.mark.parametrize(
    ("log", "why"),
    [
        ({"a": BOTH["a"], "b": [record(0, "t 1 5", 2), marker(1, 2, commits=False)]}, "t is torn"),
        ({"a": [record(0, "t 1 0")]}, "a has no end of ['t']"),
        ({"a": [record(0, "t 1 0"), record(1, "u 2 0"), marker(2)]}, "u at a 1 is in t"),
        ({"a": [record(0, "t 1 0"), marker(1), record(2, "t 1 0"), marker(3)]}, "t at a 2 comes after its end"),
    ],
)
def test_the_log_itself_is_judged(log: Log, why: str) -> None:
    assert any(why in each for each in judged(log))


ENTERED = {"a": [record(0, "t 1 -5"), record(1, "u 2 0")], "b": [record(0, "t 1 5", 2), record(1, "u 2 0", 2)]}
"""Two transactions on sidecar topics."""


def judged_on_sidecar_topics(log: Log, *looks: Look) -> list[str]:
    judge = SidecarJudge(log)
    judge.judge(looks)
    return judge.anomalies


def test_on_sidecar_topics_a_look_shows_all_of_a_transaction_or_nothing() -> None:
    looks = [{"a": Seen(end, end), "b": Seen(end, end)} for end in range(3)]
    assert judged_on_sidecar_topics(ENTERED, *looks) == []
    [torn] = judged_on_sidecar_topics(ENTERED, {"a": Seen(1, 1), "b": Seen(0, 0)})
    assert torn == "look 0 shows a part of t"
    [held] = judged_on_sidecar_topics(ENTERED, {"a": Seen(0, 1), "b": Seen(1, 1)})
    assert held == "look 0 has an end at 1 of a, and stable is 0"
    back = judged_on_sidecar_topics(ENTERED, looks[2], looks[1])
    assert back == ["look 1 goes back in a, from 2 to 1", "look 1 goes back in b, from 2 to 1"]
    [made] = judged_on_sidecar_topics({"a": [record(0, "t 1 -5")]}, {"a": Seen(1, 1)})
    assert made == "look 0 shows accounts that add up to -5"


@pytest.mark.parametrize(
    ("log", "why"),
    [
        ({"a": [record(0, "t 1 0"), marker(1)]}, "a has markers"),
        ({"a": [record(0, "t 1 0"), record(2, "u 1 0")]}, "a has gaps"),
        ({"a": [record(0, "t 1 0"), record(1, "u 1 0"), record(2, "t 1 0")]}, "a has ['t'] in more than one place"),
        (ENTERED | {"c": [record(0, "u 2 0"), record(1, "t 1 0")]}, "a and c have transactions in different orders"),
    ],
)
def test_a_log_of_sidecar_topics_is_judged(log: Log, why: str) -> None:
    assert any(why in each for each in judged_on_sidecar_topics(log))
