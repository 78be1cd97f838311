"""The arithmetic of quotas, beside a judge that knows no bucket: it looks at all that was taken."""

import random
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exacta.core.quotas.rates import TokenBucket
from tests.shares import examples


def owed(taken: list[tuple[float, float]], limit: float, burst_s: float, now_ms: float) -> float:
    """Return what is owed: the most that any span until now has taken beyond what came in, and beyond the burst."""
    return max(
        (
            sum(amount for at, amount in taken[first:]) - limit * (now_ms - begin) / 1000 - limit * burst_s
            for first, (begin, _) in enumerate(taken)
        ),
        default=-limit * burst_s,
    )


STEPS = st.lists(st.tuples(st.integers(0, 3_000), st.floats(0.1, 5_000)), max_size=40)


@given(STEPS, st.sampled_from([1.0, 250.0, 1e6]), st.sampled_from([1.0, 11.0]))
def test_a_throttle_time_is_what_some_span_has_taken_beyond_its_due(
    steps: list[tuple[int, float]], limit: float, burst_s: float
) -> None:
    now_ms, taken = 1_000.0, list[tuple[float, float]]()
    bucket = TokenBucket(burst_s, now_ms)
    for passed, amount in steps:
        now_ms += passed
        taken.append((now_ms, amount))
        throttle_ms = bucket.take(amount, limit, now_ms)
        expected_ms = max(0.0, owed(taken, limit, burst_s, now_ms) / limit * 1000)
        assert expected_ms - 1e-3 <= throttle_ms <= expected_ms + 1.001


@pytest.mark.parametrize("seed", range(examples(60)))
def test_who_keeps_to_throttle_times_has_within_any_span_what_is_due_and_no_more(seed: int) -> None:
    chance = random.Random(seed)
    limit, now_ms = chance.choice([10.0, 1_000.0, 1e6]), 0.0
    bucket = TokenBucket(1.0, now_ms)
    largest = limit * chance.choice([0.001, 0.1, 1.0])
    pause_ms = chance.choice([0.0, 1.0, largest / limit * 500])
    sent: deque[tuple[float, float]] = deque()
    total = recent = 0.0
    while now_ms < 40_000:
        amount = chance.uniform(0.1, 1.0) * largest
        sent.append((now_ms, amount))
        total, recent = total + amount, recent + amount
        while sent[0][0] <= now_ms - 10_000:
            recent -= sent.popleft()[1]
        wait_ms = bucket.take(amount, limit, now_ms)
        assert recent <= limit * 11 + largest + 1e-3, (now_ms, recent)
        now_ms += max(wait_ms, chance.choice([0.0, pause_ms]))
    assert total <= limit * (now_ms / 1000 + 1) + largest
    assert total >= limit * now_ms / 1000 * 0.9, "and it gets what it is due"


def test_a_bucket_begins_full_owes_what_goes_beyond_and_is_paid_in_time() -> None:
    bucket = TokenBucket(11.0, 5_000)
    assert bucket.tokens(2.0, 5_000) == 22
    assert bucket.take(22, 2.0, 5_000) == 0
    assert bucket.take(40, 2.0, 5_000) == 20_000
    assert bucket.throttle_ms(2.0, 24_990) == 10
    assert bucket.throttle_ms(2.0, 25_000) == 0
    assert bucket.take(-100, 2.0, 25_000) == 0
    assert bucket.tokens(2.0, 25_000) == 22, "what is given back does not make it more than full"


def test_another_limit_counts_from_now_on() -> None:
    bucket = TokenBucket(1.0, 0)
    assert bucket.take(3_000, 1_000, 0) == 2_000
    assert bucket.throttle_ms(2_000, 0) == 500
