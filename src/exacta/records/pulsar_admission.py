"""The admission of a Pulsar entry: it is judged by its topic's configurations, and made a batch of the log.

Messages are not looked into, with one exception: if the topic is compacted, each message must have a key that can be
seen, since the next compaction would remove a message without one. Then a compressed batch is opened, as far as an
allowance goes; a long one on a thread. Only Pulsar's front may import this, because it loads `protobuf`.
"""

from exacta.core.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, ProducerEpoch, ProducerId
from exacta.protocol.kafka.records import with_max_timestamp
from exacta.protocol.pulsar.entries import Entry
from exacta.protocol.pulsar.errors import BrokenEntry
from exacta.records.admission import MAX_RECORDS_READ, Allowance, BatchRules
from exacta.records.pulsar_entries import enveloped
from exacta.records.pulsar_records import read_messages
from exacta.records.work import SHORT_BYTES, work_bytes

_HANDLE_EPOCH = ProducerEpoch(0)


def admit_entry(
    entry: Entry, rules: BatchRules, now_ms: int, largest: int, producer_id: ProducerId, *, has_keys: bool = False
) -> tuple[bytes, int]:
    """Return the batch of a checked entry and its time, in milliseconds; with a producer id it is a transaction's.

    `largest` bounds the payload, in bytes; metadata come on top of it, as clients reckon, and the front bounds the
    frame. `has_keys` says that `require_keys` has looked. Raises `BrokenEntry` if the topic does not take it.
    """
    if len(entry.payload) > largest:
        limit = f"{largest} (the topic's max.message.bytes, else pulsar.max.message.size)"
        raise BrokenEntry(f"a payload of {len(entry.payload)} bytes, above the limit of {limit}")
    if rules.needs_keys and not has_keys:
        require_keys(entry)
    if not rules.log_append_time:
        fault = rules.times_fault((entry.publish_time_ms,), now_ms)
        if fault is not None:
            raise BrokenEntry(fault)
    epoch = NO_PRODUCER_EPOCH if producer_id == NO_PRODUCER_ID else _HANDLE_EPOCH
    batch = enveloped(entry, producer_id, epoch)
    if rules.log_append_time:
        return bytes(with_max_timestamp(batch, now_ms, log_append_time=True)), now_ms
    return batch, entry.publish_time_ms


def is_long(entry: Entry) -> bool:
    """Return whether `require_keys` is more work than the event loop may do.

    A decompression makes no more bytes than the entry says that there are.
    """
    if not entry.is_batch:
        return False
    size = max(len(entry.payload), entry.metadata.uncompressed_size)
    return work_bytes(size, entry.message_count) > SHORT_BYTES


def require_keys(entry: Entry) -> None:
    """Raise `BrokenEntry` unless each message has a key that compaction will see.

    An entry is what a request is to Kafka's clients: the allowance is for one.
    """
    allowance = Allowance()
    if entry.is_chunk:
        raise BrokenEntry("a compacted topic takes no large message in chunks")
    if entry.is_batch and entry.is_encrypted:
        raise BrokenEntry("a compacted topic takes no encrypted batch, since its keys cannot be seen: do not batch")
    if entry.message_count > allowance.left_records:
        raise BrokenEntry(f"more than {MAX_RECORDS_READ} messages in a batch for a compacted topic")
    keys = read_messages(entry, allowance.left_bytes).keys
    keyless = entry.message_count - len(keys) + keys.count(None)
    if keyless:
        what = f"{keyless} of {len(keys)} messages have" if entry.is_batch else "the message has"
        raise BrokenEntry(f"{what} no key, in a compacted topic")
