"""The wait before a login is refused grows with each refusal of one address, and its attempts have a bound."""

from functools import partial

from exacta.security.backoff import (
    FORGIVEN_EACH_S,
    FORGOTTEN_AFTER_S,
    LONGEST_S,
    LOOK_AGAIN_S,
    MOST_ADDRESSES,
    MOST_OPEN,
    LoginBackoff,
)


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_it_doubles_up_to_a_bound_and_is_forgotten():
    clock = Clock()
    backoff = LoginBackoff(0.1, clock)
    assert [backoff.failed("a") for _ in range(8)] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, LONGEST_S, LONGEST_S]
    assert backoff.failed("b") == 0.1
    clock.now_s += FORGOTTEN_AFTER_S - 1
    assert backoff.failed("a") == LONGEST_S
    clock.now_s += FORGOTTEN_AFTER_S
    assert backoff.failed("a") == 0.1


def test_it_remembers_a_bounded_number_of_addresses():
    backoff = LoginBackoff(0.1, Clock())
    for number in range(MOST_ADDRESSES + 1):
        backoff.failed(str(number))
    assert len(backoff._failures) == MOST_ADDRESSES
    assert backoff.failed("0") == 0.1
    assert backoff.failed(str(MOST_ADDRESSES)) == 0.2


def test_thousands_of_failures_are_no_number_too_large():
    backoff = LoginBackoff(0.1, Clock())
    assert {backoff.failed("a") for _ in range(5_000)} >= {LONGEST_S}


def test_an_address_has_a_number_of_wrong_attempts_and_gets_one_back_each_second():
    clock = Clock()
    backoff = LoginBackoff(0.1, clock)
    for _ in range(MOST_OPEN):
        assert backoff.wait_s("a") == 0
        backoff.failed("a")
    assert 0 < backoff.wait_s("a") <= FORGIVEN_EACH_S
    assert backoff.wait_s("b") == 0
    clock.now_s += FORGIVEN_EACH_S + 0.01
    assert backoff.wait_s("a") == 0
    backoff.failed("a")
    assert backoff.wait_s("a") > 0
    clock.now_s += MOST_OPEN * FORGIVEN_EACH_S
    for _ in range(MOST_OPEN):
        assert backoff.wait_s("a") == 0
        backoff.failed("a")
    assert backoff.wait_s("a") > 0


def test_attempts_at_the_same_time_count_and_let_one_another_go_on():
    backoff, gone_on = LoginBackoff(0.1, Clock()), []

    def goes_on(name, *, waits):
        gone_on.append(name)
        return waits

    for _ in range(MOST_OPEN):
        backoff.begins("a")
    assert backoff.wait_s("a") == LOOK_AGAIN_S
    for name, waits in (("first", False), ("second", True), ("third", True)):  # the first one has gone meanwhile
        backoff.waits("a", partial(goes_on, name, waits=waits))
    backoff.ended("a")
    assert gone_on == ["first", "second"]
    assert backoff.wait_s("a") == 0
    for _ in range(MOST_OPEN - 1):
        backoff.ended("a")
    assert gone_on == ["first", "second", "third"]
    assert not backoff._lines
    assert not backoff._trying


def test_who_is_right_pays_nothing():
    backoff = LoginBackoff(0.1, Clock())
    for _ in range(10 * MOST_OPEN):
        assert backoff.wait_s("a") == 0
        backoff.begins("a")
        backoff.ended("a")
