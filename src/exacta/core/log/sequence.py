"""Idempotence within one partition (KIP-98): which batch of a producer may come next, and which is a repeat.

Owns the arithmetic of sequences, which wrap at `sequence_modulus`, and the window of retained batches. Whether the
producer itself is current is the business of `transaction.py`.
"""

from exacta.core.ids import ProducerEpoch, TransactionVersion
from exacta.core.rejections import Rejection
from exacta.core.state.limits import Limits
from exacta.core.state.partition import ProducerState, RetainedBatch


def last_sequence(first_sequence: int, record_count: int, limits: Limits) -> int:
    """Return the sequence of the last of `record_count` records."""
    return (first_sequence + record_count - 1) % limits.sequence_modulus


def find_repeat(
    known: ProducerState | None,
    epoch: ProducerEpoch,
    first_sequence: int,
    record_count: int,
    limits: Limits,
    *,
    transactional: bool,
) -> RetainedBatch | None:
    """Return this very batch as it is in the log already, if it is one of the retained ones.

    One that is part of a transaction is no repeat of one that is not: who asks would take it for what it is not.
    """
    if known is None or known.producer_epoch != epoch:
        return None
    last = last_sequence(first_sequence, record_count, limits)
    for batch in reversed(known.batches):
        same = batch.first_sequence == first_sequence and batch.last_sequence == last
        if same and batch.transactional == transactional:
            return batch
    return None


def check_sequence(
    known: ProducerState | None,
    epoch: ProducerEpoch,
    first_sequence: int,
    limits: Limits,
    *,
    version: TransactionVersion,
) -> Rejection | None:
    """Return why a batch that is no repeat may not come next, or None.

    Without state (a new producer, or one whose state is gone) a version 1 producer may begin anywhere (invariant 1);
    one of version 2 begins each transaction at 0, so that anything else is late or has lost its beginning.
    """
    if known is None:
        late = version is TransactionVersion.V2 and first_sequence != 0
        return Rejection.OUT_OF_ORDER_SEQUENCE if late else None
    if epoch < known.producer_epoch:
        return Rejection.INVALID_PRODUCER_EPOCH
    if epoch > known.producer_epoch:
        expected = 0
    else:
        expected = (known.batches[-1].last_sequence + 1) % limits.sequence_modulus
    return None if first_sequence == expected else Rejection.OUT_OF_ORDER_SEQUENCE
