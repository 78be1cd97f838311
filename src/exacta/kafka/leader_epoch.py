"""The leader epoch that a client believes in (KIP-320), beside the log's (`core.values.leader_epochs`).

The batches of the log say epoch 0 under every leader. The state knows which are of which, and a reader is told that.
"""

from exacta.core.values.leader_epochs import LeaderEpochs, epoch_at
from exacta.ports.record_format import Buffer
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.records import iter_batches, say_leader_epoch

UNSAID = -1


def leader_epoch_error(believed: int, leader_epoch: int) -> ErrorCode:
    """Return how to answer a client that believes in this leader epoch; -1: it did not say."""
    if believed > leader_epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if believed != UNSAID and believed < leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.NONE


def with_leader_epochs(records: list[Buffer], epochs: LeaderEpochs) -> list[Buffer]:
    """Return whole batches that say under which leaders they were written; where nobody took the lead, the same."""
    if not epochs:
        return records
    return [_with_epochs(buffer, epochs) for buffer in records]


def _with_epochs(batches: Buffer, epochs: LeaderEpochs) -> Buffer:
    copied = bytearray(batches)
    at = 0
    for header, _ in iter_batches(batches):
        say_leader_epoch(copied, at, epoch_at(epochs, header.base_offset))
        at += header.size
    return copied
