"""Entries of Pulsar as batches of the log: Kafka's header of 61 bytes, and the entry's body behind it, bit for bit.

Owns the way there and back (decision 0030). Only Pulsar's front may import it, because it loads `protobuf`. The header
says what the log has to know: how many messages there are, the time (the publish time, not the event time, by which
retention would go wrong), and the transaction. What the entry's metadata says of a transaction counts for nothing,
because clients leave it out or write another one there.
"""

import mmh3

from exacta.core.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, Body, ProducerEpoch, ProducerId
from exacta.ports.record_format import Buffer
from exacta.protocol.kafka.batch_building import foreign_batch
from exacta.protocol.kafka.records import HEADER_SIZE, MAGIC_OFFSET
from exacta.protocol.pulsar.entries import Entry, checksum_head, parse_body, sticky_key
from exacta.protocol.pulsar.errors import BrokenEntry


def enveloped(
    entry: Entry, producer_id: ProducerId = NO_PRODUCER_ID, producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH
) -> bytes:
    """Return the batch of an entry that was checked (`check_entry`); with a producer id it belongs to its transaction.

    The offset is written later, as for any batch (`RecordFormat.place`).
    """
    return foreign_batch(
        Body.PULSAR,
        (entry.body,),
        entry.message_count,
        timestamp_ms=entry.publish_time_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )


def entry_of(batch: Buffer) -> Entry:
    """Return the entry in a whole batch of Pulsar's body; views of the batch. Raises `BrokenEntry` where there is none.

    A batch that compaction has emptied has none: its header says that it has no records.
    """
    return parse_body(memoryview(batch)[HEADER_SIZE:])


def on_the_wire(batch: Buffer) -> tuple[bytes, memoryview]:
    """Return an entry as its producer sent it, in two parts: the checksum, which is computed again, and the body."""
    body = memoryview(batch)[HEADER_SIZE:]
    return checksum_head(body), body


def is_entry(batch: Buffer) -> bool:
    """Return whether a batch of the log is a Pulsar entry."""
    return memoryview(batch)[MAGIC_OFFSET] == Body.PULSAR


def delivery_facts(batch: Buffer) -> tuple[int, int]:
    """Return the hash by which a Key_Shared subscription chooses a consumer, and the time before which to hold back.

    The hash is the one that Apache Pulsar computes. A message without a key counts as one of its own, and the time is 0
    where there is none. Any other bytes have the hash 0. A Kafka batch is converted before anybody asks for it.
    """
    if not is_entry(batch):
        return 0, 0
    try:
        entry = entry_of(batch)
    except BrokenEntry:
        return 0, 0
    key = sticky_key(entry.metadata)
    if key is None:
        key = f"{entry.metadata.producer_name}-{entry.metadata.sequence_id}".encode()
    return mmh3.hash(key, 0, signed=False) & 0x7FFF_FFFF, max(entry.deliver_at_ms or 0, 0)
