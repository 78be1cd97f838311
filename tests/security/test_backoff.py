"""The wait before a login is refused grows with each refusal of one address, and of no other."""

from exacta.security.backoff import FORGOTTEN_AFTER_S, LONGEST_S, MOST_ADDRESSES, LoginBackoff


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
