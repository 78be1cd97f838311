"""Idempotence within one partition (KIP-98): the batch of a producer that may come next, and those that are repeats.

Owns the arithmetic of sequences, which wrap at `sequence_modulus`, and the window of retained batches. `append.py`
checks that the producer itself is current.
"""

from exacta.core.ids import ProducerEpoch, TransactionVersion
from exacta.core.rejections import Rejection
from exacta.core.state.partition import ProducerState, RetainedBatch
from exacta.core.values.limits import Limits


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
    """Return the retained batch of which this one is a repeat, or None.

    A batch of a transaction is no repeat of a batch outside of one: its producer would believe that it ends with the
    transaction.
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
    """Return the reason why a batch that is no repeat may not come next, or None.

    `known` is None for a new producer, and for one whose state is gone. Then a producer of version 1 may begin anywhere
    (invariant 1). One of version 2 begins each transaction at 0, so any other batch is late, or follows a lost one.
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
