"""The epochs of the log's leaders in one partition (KIP-101, KIP-320): which records were written under which leader.

A partition has the first offset of each epoch, in order. An empty tuple is the log that nobody has taken the lead of:
all of it is of `FIRST_EPOCH`. The functions are those of Kafka's `LeaderEpochFileCache`, on values that nobody changes,
so that readers may be shown them.
"""

from exacta.core.ids import Offset

FIRST_EPOCH = 0
"""The epoch of a log of which nobody has taken the lead."""

EpochStart = tuple[int, Offset]
"""An epoch, and the offset of its first record."""
LeaderEpochs = tuple[EpochStart, ...]

MOST_EPOCHS = 1_000
"""A partition remembers this many. The records of older ones are taken for those of the oldest that is known."""


def led(epochs: LeaderEpochs, epoch: int, next_offset: Offset, log_start_offset: Offset) -> LeaderEpochs:
    """Return the epochs once a leader has begun this one; of an epoch that has written nothing, nothing is left."""
    known = epochs or ((FIRST_EPOCH, log_start_offset),)
    return (*(each for each in known if each[1] < next_offset), (epoch, next_offset))[-MOST_EPOCHS:]


def trimmed(epochs: LeaderEpochs, log_start_offset: Offset) -> LeaderEpochs:
    """Return the epochs of what is left of a log that begins at this offset; the first one begins there."""
    before = sum(first <= log_start_offset for _, first in epochs)
    if not before:
        return epochs
    return ((epochs[before - 1][0], log_start_offset), *epochs[before:])


def last_epoch(epochs: LeaderEpochs) -> int:
    """Return the present leader's epoch."""
    return epochs[-1][0] if epochs else FIRST_EPOCH


def epoch_at(epochs: LeaderEpochs, offset: int) -> int:
    """Return the epoch under which the record at an offset was written, or will be."""
    for epoch, first in reversed(epochs):
        if first <= offset:
            return epoch
    return epochs[0][0] if epochs else FIRST_EPOCH


def end_of(epochs: LeaderEpochs, epoch: int, end_offset: int) -> tuple[int, int] | None:
    """Return the last epoch up to this one that has records, and the offset after its last record (KIP-101, KIP-279).

    `end_offset` is the end of the log. An epoch before all that are known ends where those begin. None: no leader has
    had such an epoch yet.
    """
    if epoch == last_epoch(epochs):
        return epoch, end_offset
    if not 0 <= epoch < last_epoch(epochs):
        return None
    following = next(number for number, each in enumerate(epochs) if each[0] > epoch)
    return (epochs[following - 1][0] if following else epoch), int(epochs[following][1])
