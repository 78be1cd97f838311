"""The admission of an entry of Pulsar's: it is judged by its topic's configurations, and made a batch of the log.

Messages are not looked into. So a compacted topic takes no entries: some are compressed or encrypted as a whole, and
their keys could not be compared. Only Pulsar's front may import this, because it loads `protobuf`.
"""

from exacta.core.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, ProducerEpoch, ProducerId
from exacta.protocol.kafka.records import with_max_timestamp
from exacta.protocol.pulsar.entries import Entry
from exacta.protocol.pulsar.errors import BrokenEntry
from exacta.records.admission import BatchRules
from exacta.records.pulsar_entries import enveloped

_HANDLE_EPOCH = ProducerEpoch(0)


def admit_entry(
    entry: Entry, rules: BatchRules, now_ms: int, largest: int, producer_id: ProducerId
) -> tuple[bytes, int]:
    """Return the batch of a checked entry and its time, in milliseconds; with a producer id it is a transaction's.

    `largest` bounds the payload, in bytes; metadata come on top of it, as clients reckon, and the front bounds the
    frame. Raises `BrokenEntry` if the topic does not take it.
    """
    if len(entry.payload) > largest:
        raise BrokenEntry(f"a payload of {len(entry.payload)} bytes, above the limit of {largest}")
    if rules.needs_keys:
        raise BrokenEntry("the topic is compacted, and does not take the messages of Pulsar's producers yet")
    if not rules.log_append_time:
        fault = rules.times_fault((entry.publish_time_ms,), now_ms)
        if fault is not None:
            raise BrokenEntry(fault)
    epoch = NO_PRODUCER_EPOCH if producer_id == NO_PRODUCER_ID else _HANDLE_EPOCH
    batch = enveloped(entry, producer_id, epoch)
    if rules.log_append_time:
        return bytes(with_max_timestamp(batch, now_ms, log_append_time=True)), now_ms
    return batch, entry.publish_time_ms
