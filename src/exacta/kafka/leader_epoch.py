"""Leader epochs (KIP-320): with one broker there is one leader, and its epoch never changes."""

from exacta.protocol.kafka.errors import ErrorCode

LEADER_EPOCH = 0
"""One broker leads every partition for ever."""

UNSAID = -1


def leader_epoch_error(current_leader_epoch: int) -> ErrorCode:
    """Return how to answer a client that believes in this leader epoch; -1: it did not say."""
    if current_leader_epoch > LEADER_EPOCH:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if current_leader_epoch != UNSAID and current_leader_epoch < LEADER_EPOCH:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.NONE
