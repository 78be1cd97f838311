"""Messages as Pulsar's clients make them, and their values as they are read: the counterpart of `batches.py`.

Owns how a value stands in a message. Where it has a key (`history.keyed`), that is the message's, as text or as bytes.
A tombstone has its value in a property. It says that it has no value, or its payload is empty: Pulsar takes both so.
"""

import base64
import random
from collections.abc import Iterator, Sequence

from exacta.ports.record_format import Buffer
from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.compression import compress, decompress
from exacta.protocol.pulsar.entries import Entry, build_batch, build_entry, partition_key, walk_batch
from exacta.records.pulsar_entries import entry_of
from simulation.history import key_of, keyed

TOMBSTONES_VALUE = b"value"
"""The name of the property, or header, of a tombstone."""
CODECS = (pb.CompressionType.NONE, pb.CompressionType.NONE, pb.CompressionType.LZ4, pb.CompressionType.ZSTD)


def entry(values: Sequence[bytes], chance: random.Random, producer: str, sequence: int, now_ms: int) -> bytes:
    """Build an entry: a batch, unless there is one value and chance wants none; compressed by chance."""
    metadata = pb.MessageMetadata(producer_name=producer, sequence_id=sequence, publish_time=now_ms)
    if len(values) == 1 and chance.random() < 0.5:
        payload = _fill(metadata, values[0], chance)
    else:
        metadata.num_messages_in_batch = len(values)
        metadata.highest_sequence_id = sequence + len(values) - 1
        messages = [pb.SingleMessageMetadata(sequence_id=sequence + index) for index in range(len(values))]
        payload = build_batch(
            [(message, _fill(message, value, chance)) for message, value in zip(messages, values, strict=True)]
        )
    codec = chance.choice(CODECS)
    if codec != pb.CompressionType.NONE:
        metadata.compression, metadata.uncompressed_size = codec, len(payload)
        payload = compress(codec, payload)
    return build_entry(metadata, payload)


def _fill(metadata: pb.MessageMetadata | pb.SingleMessageMetadata, value: bytes, chance: random.Random) -> bytes:
    """Say in a message's metadata what its value wants said; return the payload."""
    plain, key, is_tombstone = key_of(value)
    if key is not None:
        metadata.partition_key = key
        if chance.random() < 0.3:
            metadata.partition_key, metadata.partition_key_b64_encoded = base64.b64encode(key), True
    if not is_tombstone:
        return plain
    metadata.properties.append(pb.Property(key=TOMBSTONES_VALUE, value=plain))
    metadata.null_value = chance.random() < 0.5
    return b""


def value_in(metadata: pb.MessageMetadata | pb.SingleMessageMetadata, payload: Buffer) -> bytes:
    """Return the value of a message that was read."""
    said = {each.key: each.value for each in metadata.properties}.get(TOMBSTONES_VALUE)
    key, plain = partition_key(metadata), bytes(payload) if said is None else said
    return plain if key is None else keyed(plain, key, is_tombstone=said is not None)


def messages_of(found: Entry) -> Iterator[tuple[int, pb.MessageMetadata | pb.SingleMessageMetadata, bytes]]:
    """Yield index, metadata and payload of each message that compaction has left of an entry."""
    metadata, payload = found.metadata, bytes(found.payload)
    if found.is_compressed:
        payload = decompress(metadata.compression, payload, metadata.uncompressed_size)
    if not found.is_batch:
        yield 0, metadata, payload
        return
    for each in walk_batch(payload, found.message_count):
        if not each.metadata.compacted_out:
            yield each.index, each.metadata, bytes(each.payload)


def entry_values(batch: Buffer) -> Iterator[tuple[int, bytes]]:
    """Yield the offsets and values of an entry that lies in the log."""
    base = int.from_bytes(batch[:8], "big")
    for index, metadata, payload in messages_of(entry_of(batch)):
        yield base + index, value_in(metadata, payload)
