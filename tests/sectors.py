"""Which sectors of a simulated disk a crash keeps: the rules that several tests crash by."""

import random
from collections.abc import Callable


def all_or_none(keep: bool) -> Callable[[int], bool]:
    """Keep all, or none."""
    return lambda _: keep


def of_bits(bits: int) -> Callable[[int], bool]:
    """Keep those whose bits are set."""
    return lambda sector: bool(bits >> sector & 1)


def by_chance(chance: random.Random, share: float) -> Callable[[int], bool]:
    """Keep about this share."""
    return lambda _: chance.random() < share


def all_but(lost: set[int]) -> Callable[[int], bool]:
    """Keep all others."""
    return lambda sector: sector not in lost
