"""Epochs and generations of groups: none is given out twice, over restarts and deletions too (decision 0012).

All groups draw on one store. A durable event reserves a thousand epochs at a time, before anybody is told of one of
them; after a restart every group goes on above all that were reserved. What a client holds from before is therefore
never taken for the present, although a crash may have forgotten a rebalance that had not ended.
"""

from exacta.core.state.state import State

EPOCHS_AT_ONCE = 1000
"""How many epochs one durable event reserves; a restart skips what is left of them. There are two thousand million."""


def next_epoch(state: State, epoch: int) -> int:
    """Return the epoch that follows this one of a group."""
    return max(epoch + 1, state.volatile.least_group_epoch)


def reserve(reserved: int, epoch: int) -> int:
    """Return up to where (exclusive) epochs must be reserved for a group to have this one; as they are, if they do."""
    return epoch + EPOCHS_AT_ONCE if epoch >= reserved else reserved
