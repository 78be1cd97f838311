"""Connections that must log in: the time that each has, and how many there may be."""

from collections.abc import Callable
from typing import Any

import pytest

from exacta.front import arrivals as module
from exacta.front.arrivals import LOGIN_SECONDS, MOST_ARRIVALS, Arrivals


class Timer:
    def __init__(self, delay: float, call: Callable[..., Any], *args: Any) -> None:
        self.delay, self.call, self.args, self.is_cancelled = delay, call, args, False

    def cancel(self) -> None:
        self.is_cancelled = True


class Timers:
    def __init__(self) -> None:
        self.made: list[Timer] = []

    def call_soon(self, callback: Callable[..., Any], *args: Any) -> None:
        raise AssertionError("nothing is done soon")

    def call_later(self, delay: float, callback: Callable[..., Any], *args: Any) -> Timer:
        self.made.append(Timer(delay, callback, *args))
        return self.made[-1]


class Silent:
    def __init__(self, arrivals: Arrivals, host: str) -> None:
        self.peer_host, self.why = host, ""
        self._arrivals = arrivals

    def refuse(self, reason: str) -> None:
        self.why = reason
        self._arrivals.leaves(self)


def test_who_has_not_logged_in_in_time_is_closed() -> None:
    timers = Timers()
    arrivals = Arrivals(timers)
    silent, quick = Silent(arrivals, "10.0.0.1"), Silent(arrivals, "10.0.0.1")
    arrivals.comes(silent)
    arrivals.comes(quick)
    arrivals.leaves(quick)
    arrivals.leaves(quick)
    late, other = timers.made
    assert (late.delay, late.is_cancelled, other.is_cancelled) == (LOGIN_SECONDS, False, True)
    late.call(*late.args)
    assert silent.why == f"it has not logged in within {LOGIN_SECONDS:g} s"
    assert not arrivals._coming


def test_the_host_that_has_most_of_them_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ARRIVALS", 4)
    arrivals = Arrivals(Timers())
    hosts = ("10.0.0.1", "2001:db8::1", "2001:db8::2", "2001:db8::3", "10.0.0.2", "10.0.0.3")
    came = [Silent(arrivals, host) for host in hosts]
    for each in came:
        arrivals.comes(each)
    assert [bool(each.why) for each in came] == [False, True, True, False, False, False]
    assert len(arrivals._coming) == 4 < MOST_ARRIVALS
