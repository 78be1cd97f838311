"""Record batches for those who speak without a client: to the engine, or over a socket of their own."""

import os

from aiokafka.record.default_records import DefaultRecordBatchBuilder

from exacta.core.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

NO_SEQUENCE = -1


def batch(
    timestamp_ms: int,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    *,
    base_sequence: int = NO_SEQUENCE,
    size: int,
) -> bytes:
    """Return a batch of one record of random bytes; with a sequence, a transaction's."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=base_sequence != NO_SEQUENCE,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        batch_size=2 * size + 1_000,
    )
    builder.append(offset=0, timestamp=timestamp_ms, key=None, value=os.urandom(size), headers=[])
    return bytes(builder.build())
