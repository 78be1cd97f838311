"""The phases of a group of the classic protocol."""

from enum import IntEnum


class Phase(IntEnum):
    """The phase of a group. The numbers are written to the journal; a front has names of its own for them."""

    EMPTY = 0
    PREPARING_REBALANCE = 1
    """Members are to join again."""
    COMPLETING_REBALANCE = 2
    """All have joined, and the leader has not sent the assignment yet."""
    STABLE = 3
