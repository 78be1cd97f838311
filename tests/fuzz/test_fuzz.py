"""Random attackers of every door: a few seconds at each commit. `make test-fuzz` breeds others by what they reach."""

import random

import pytest

from tests.fuzz.choices import Choices
from tests.fuzz.targets import TARGETS
from tests.shares import share_of


@pytest.mark.parametrize("name", TARGETS)
def test_attackers_get_nowhere_and_harm_nobody(name: str) -> None:
    target = TARGETS[name]
    for seed in share_of(range(target.inputs)):
        dice = random.Random(f"{name} {seed}")
        data = dice.randbytes(dice.choice((50, 200, 600)))
        try:
            target.attack(data)
        except BaseException as error:
            error.add_note(f"{name} with random.Random('{name} {seed}')")
            raise


def test_the_same_bytes_make_the_same_choices() -> None:
    first, second = (Choices(b"\x05\x01\x02abc") for _ in range(2))
    for choices in (first, second):
        assert (choices.below(3), choices.below(1_000), choices.bytes(2)) == (2, 0x201 % 1_000, b"ab")
        assert choices.are_left
        assert (choices.pick("xyz"), choices.once_in(2), choices.are_left) == ("x", False, False)
