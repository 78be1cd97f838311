"""The phases of a group of the consumer protocol (KIP-848), and what its members say and are told."""

from enum import IntEnum

TopicPartition = tuple[bytes, int]
"""Topic id and index."""

JOINING_EPOCH = 0
"""A member that joins, or joins again, says this epoch."""
LEFT_FOR_A_WHILE_EPOCH = -2
"""A static member that will be back says this: it stays in the group, with its partitions, until its session ends."""


class GroupPhase(IntEnum):
    """The phase of a group; a front has names of its own for them."""

    EMPTY = 0
    ASSIGNING = 1
    """The members have changed, and the target has not been made again."""
    RECONCILING = 2
    """Some members do not have their target yet."""
    STABLE = 3
