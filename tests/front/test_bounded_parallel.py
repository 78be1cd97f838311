"""Few pieces of work in flight: never more, all in the end, and no stack that grows with them."""

import sys

from exacta.front.bounded_parallel import Ended, few_at_once


def test_the_next_begins_when_one_has_ended() -> None:
    begun: list[Ended] = []
    done: list[bool] = []
    few_at_once([begun.append] * 5, 2, lambda: done.append(True))
    for ended, expected in enumerate([2, 3, 4, 5, 5]):
        assert (len(begun), done) == (expected, [])
        begun[ended]()
    assert (len(begun), done) == (5, [True])


def test_what_ends_at_once_and_nothing_at_all() -> None:
    done: list[bool] = []
    for count in (2 * sys.getrecursionlimit(), 0):
        few_at_once([lambda ended: ended()] * count, 2, lambda: done.append(True))
    assert done == [True, True]
