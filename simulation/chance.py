"""Dice by name: each part of a world has its own, so that a throw more in one part leaves the others alone."""

import random


def dice(seed: int, *names: object) -> random.Random:
    """Return the dice of one part of the world of this seed: the same in every process."""
    return random.Random("/".join(map(str, (seed, *names))))  # of a text: by its SHA-512, not by its hash
