"""Epochs and generations of groups: none is given out twice, over restarts and deletions too (decision 0012).

All groups draw on one store. A durable event reserves a thousand epochs at a time, before any client learns of one of
them. After a restart every group goes on above all that were reserved. So the epoch that a client holds from before is
never taken for the present one, although a crash may have forgotten a rebalance that had not ended.
"""

from exacta.core.state.state import State

EPOCHS_AT_ONCE = 1000
"""The epochs that one durable event reserves; a restart skips the rest of them. There are two thousand million."""


def next_epoch(state: State, epoch: int) -> int:
    """Return the epoch that follows this one of a group."""
    return max(epoch + 1, state.volatile.least_group_epoch)


def reserve(reserved: int, epoch: int) -> int:
    """Return the end (exclusive) of the epochs that must be reserved before a group may have this one."""
    return epoch + EPOCHS_AT_ONCE if epoch >= reserved else reserved
