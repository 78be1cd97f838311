"""Entries: what a producer sends for a topic, one message or a batch of them, and what a log keeps of it.

Owns reading an entry, judging it as far as that can be done without decompressing it, walking over its messages, and
building one. Nothing here changes the bytes of an entry: `num_messages_in_batch` says by its *presence* that an entry
is a batch, so metadata that is encoded again could tell consumers something else.

    entry = [0x0e01 u16 | CRC-32C u32] body          body = metadata size u32 | MessageMetadata | payload
    payload of a batch, before compression and encryption: (size u32 | SingleMessageMetadata | message) for each message

The checksum is over the body. A log keeps the body; the checksum is computed again for a consumer.
"""

import base64
import binascii
import struct
from collections.abc import Iterable, Iterator
from typing import Final

import crc32c
from google.protobuf.message import DecodeError
from msgspec import Struct

from exacta.protocol.pulsar.decoding import Buffer, decoded, lacking
from exacta.protocol.pulsar.errors import BrokenEntry, LargeMetadata
from exacta.protocol.pulsar.frames import LARGEST_COMMAND, LARGEST_MESSAGE
from exacta.protocol.pulsar.messages_pb2 import (
    CommandSend,
    CompressionType,
    MessageMetadata,
    ServerError,
    SingleMessageMetadata,
)

CHECKSUM_MAGIC: Final = 0x0E01

MOST_MESSAGES: Final = 1_000_000
"""The most messages of an entry. That many fill five megabytes with nothing but their sizes, and an ack set of 125 KB.
A compressed entry could claim two billion, and a reader that believed it would make room for their bits."""

_CHECKSUM: Final = struct.Struct(">HI")
_SIZE: Final = struct.Struct(">I")
_PROPERTY_TAGS: Final = (0x0A, 0x8A)
"""The byte that begins a property, and the one that begins it where its number is written longer than it need be."""

_SMALLEST_MESSAGE: Final = 6
"""The bytes of a batch's message without a payload: the size of its metadata, and the payload's size in that."""

_MOST: Final = 2**63 - 1
"""The highest sequence id and the latest time: other clients, and the log, read them as signed numbers."""


class Entry(Struct, frozen=True, gc=False):
    """An entry that was read; `body` and `payload` are views of the bytes that were given."""

    body: memoryview
    """The bytes that a log keeps: from the size of the metadata on."""
    metadata: MessageMetadata
    payload: memoryview
    """The bytes behind the metadata, as they are: compressed, encrypted, or neither."""

    @property
    def written_metadata(self) -> memoryview:
        """The bytes of the metadata, as they were written."""
        return self.body[_SIZE.size : len(self.body) - len(self.payload)]

    @property
    def is_batch(self) -> bool:
        """Return whether consumers take the payload for a batch, be it one of a single message."""
        return self.metadata.HasField("num_messages_in_batch")

    @property
    def message_count(self) -> int:
        """The number of messages, hence of offsets. A chunk of a large message counts as one."""
        return self.metadata.num_messages_in_batch

    @property
    def is_chunk(self) -> bool:
        """Return whether this is a part of a message that was too large for one entry."""
        return self.metadata.num_chunks_from_msg > 1 or self.metadata.HasField("chunk_id")

    @property
    def is_encrypted(self) -> bool:
        """Return whether only clients with a key can read the payload."""
        return len(self.metadata.encryption_keys) > 0

    @property
    def is_compressed(self) -> bool:
        """Return whether the payload is compressed, as a whole."""
        return self.metadata.compression != CompressionType.NONE

    @property
    def publish_time_ms(self) -> int:
        """The time at which its producer sent it; that is the entry's time in the log."""
        return self.metadata.publish_time

    @property
    def deliver_at_ms(self) -> int | None:
        """The time before which a shared subscription does not deliver it; None: at once."""
        return self.metadata.deliver_at_time if self.metadata.HasField("deliver_at_time") else None

    @property
    def schema_version(self) -> bytes | None:
        """The version of the topic's schema by which the payload is written, in the broker's own bytes."""
        return self.metadata.schema_version if self.metadata.HasField("schema_version") else None


class BatchedMessage(Struct, frozen=True, gc=False):
    """One message of a batch; `payload` is a view."""

    index: int
    metadata: SingleMessageMetadata
    payload: memoryview


# --- reading ----------------------------------------------------------------------------------------------------------


def parse_entry(entry: Buffer) -> Entry:
    """Read an entry as it comes with a SEND, and compare its checksum, if it has one.

    Raises `BrokenEntry`, and nothing else, whatever the bytes are.
    """
    body = memoryview(entry)
    if len(body) >= _CHECKSUM.size:
        magic, checksum = _CHECKSUM.unpack_from(body)
        if magic == CHECKSUM_MAGIC:
            body = body[_CHECKSUM.size :]
            if crc32c.crc32c(body) != checksum:
                raise BrokenEntry("the entry fails its checksum", ServerError.ChecksumError)
    return parse_body(body)


def parse_body(body: Buffer) -> Entry:
    """Read an entry without its checksum, as a log keeps it. Raises `BrokenEntry`."""
    view = memoryview(body)
    if len(view) < _SIZE.size:
        raise BrokenEntry(f"an entry of {len(view)} bytes")
    (size,) = _SIZE.unpack_from(view)
    end = _SIZE.size + size
    if not 0 < size <= min(len(view) - _SIZE.size, LARGEST_COMMAND):
        raise BrokenEntry(
            f"metadata of {size} bytes, in an entry of {len(view)}; at most {LARGEST_COMMAND} are allowed"
        )
    try:
        metadata = decoded(MessageMetadata, view[_SIZE.size : end])
    except DecodeError as error:
        raise BrokenEntry(f"not the metadata of an entry: {error}") from error
    return Entry(view, metadata, view[end:])


def walk_batch(payload: Buffer, count: int) -> Iterator[BatchedMessage]:
    """Yield the messages of a batch whose payload is neither compressed nor encrypted (any more).

    Raises `BrokenEntry` where they are not exactly this many, or do not fill the payload.
    """
    view = memoryview(payload)
    for index, (metadata, _, start, end) in enumerate(walked(view, count)):
        yield BatchedMessage(index, metadata, view[start:end])


def walked(view: memoryview | bytes, count: int) -> Iterator[tuple[SingleMessageMetadata, bytes, int, int]]:
    """Yield what `walk_batch` yields, with the metadata as they stand, and where each payload begins and ends.

    Raises `BrokenEntry` as that does, and for metadata that are larger than an entry may be: few bytes, compressed, can
    say properties by the million. This is most of what plain messages of a hundred bytes cost, so that
    it makes no object that it need not, and asks for required fields only where one may be missing.
    """
    parse, size_at, head = SingleMessageMetadata.FromString, _SIZE.unpack_from, _SIZE.size
    tag, long_tag = _PROPERTY_TAGS
    at, whole, most = 0, len(view), LARGEST_MESSAGE + head
    for index in range(count):
        if whole - at < head:
            raise BrokenEntry(f"a batch of {count} messages ends in message {index}")
        start = at + head + size_at(view, at)[0]
        if start > whole:
            raise BrokenEntry(f"a batch of {count} messages ends in the metadata of message {index}")
        if start - at > most:
            raise LargeMetadata(f"message {index} of a batch has more than {LARGEST_MESSAGE} bytes of metadata")
        written = bytes(view[at + head : start])
        try:
            metadata = parse(written)
        except DecodeError as error:
            raise BrokenEntry(f"message {index} of a batch: {error}") from error
        size = metadata.payload_size
        if (not size or tag in written or long_tag in written) and not metadata.IsInitialized():
            raise BrokenEntry(f"message {index} of a batch: {lacking(metadata)}")
        at = start + size
        if size < 0 or at > whole:
            raise BrokenEntry(f"message {index} of a batch has {size} bytes, it says")
        yield metadata, written, start, at
    if at != whole:
        raise BrokenEntry(f"{whole - at} bytes behind the {count} messages of a batch")


# --- judging ----------------------------------------------------------------------------------------------------------


def check_entry(entry: Entry, send: CommandSend | None = None) -> None:
    """Raise `BrokenEntry` if something about an entry cannot be true, as far as it can be seen from outside.

    A batch that is neither compressed nor encrypted is walked over. With the command that brought it the counts are
    compared; a command that says no count is believed whatever the entry says.
    """
    fault = _fault(entry)
    if fault is None and send is not None:
        fault = _fault_of_command(entry, send)
    if fault is not None:
        raise BrokenEntry(fault)
    if entry.is_batch and not entry.is_compressed and not entry.is_encrypted:
        for _ in walked(entry.payload, entry.message_count):
            pass


def _fault(entry: Entry) -> str | None:
    metadata = entry.metadata
    if metadata.HasField("marker_type"):
        return "markers are written by brokers only"
    if max(metadata.publish_time, metadata.sequence_id, metadata.highest_sequence_id, metadata.event_time) > _MOST:
        return "a time or a sequence id beyond 2**63 - 1"
    if not 1 <= entry.message_count <= MOST_MESSAGES:
        return f"a batch of {entry.message_count} messages"
    if entry.is_batch and not _may_hold(entry):
        return f"a batch of {entry.message_count} messages has no room for them"
    return _fault_of_chunk(entry) if entry.is_chunk else None


def _may_hold(entry: Entry) -> bool:
    """Return whether this many messages can be in the payload, by its size or by what it says of its size."""
    room = entry.metadata.uncompressed_size if entry.is_compressed else len(entry.payload)
    return entry.message_count * _SMALLEST_MESSAGE <= room


def _fault_of_chunk(entry: Entry) -> str | None:
    metadata = entry.metadata
    if entry.is_batch:
        return "a chunk that is a batch"
    if not (metadata.uuid and metadata.HasField("chunk_id") and metadata.HasField("total_chunk_msg_size")):
        return "a chunk without the id of its message, its own number, or the message's size"
    if not 0 <= metadata.chunk_id < metadata.num_chunks_from_msg:
        return f"chunk {metadata.chunk_id} of {metadata.num_chunks_from_msg}"
    if not entry.is_encrypted and len(entry.payload) > metadata.total_chunk_msg_size:
        return f"a chunk of {len(entry.payload)} bytes, of a message of {metadata.total_chunk_msg_size}"
    return None


def _fault_of_command(entry: Entry, send: CommandSend) -> str | None:
    if send.HasField("num_messages") and send.num_messages != entry.message_count:
        return f"the command says {send.num_messages} messages, the entry {entry.message_count}"
    if send.marker:
        return "markers are written by brokers only"
    return None


# --- keys -------------------------------------------------------------------------------------------------------------


def partition_key(metadata: MessageMetadata | SingleMessageMetadata) -> bytes | None:
    """Return a message's key, None if it has none. Keys that are bytes travel as base64, which is undone here."""
    if metadata.null_partition_key or not metadata.HasField("partition_key"):
        return None
    key = metadata.partition_key
    if metadata.partition_key_b64_encoded:
        try:
            return base64.b64decode(key, validate=True)
        except binascii.Error:
            return key  # it says what is not true; its bytes are still a key
    return key


def sticky_key(metadata: MessageMetadata | SingleMessageMetadata) -> bytes | None:
    """Return the key that decides which consumer of a Key_Shared subscription gets it: the ordering key comes first.

    All messages of a batch go to one consumer, so that the entry's metadata decides for them.
    """
    return metadata.ordering_key if metadata.HasField("ordering_key") else partition_key(metadata)


# --- building ---------------------------------------------------------------------------------------------------------


def checksum_head(body: Buffer) -> bytes:
    """Return the six bytes that stand before a body on the wire."""
    return _CHECKSUM.pack(CHECKSUM_MAGIC, crc32c.crc32c(body))


def build_body(metadata: MessageMetadata, payload: Buffer) -> bytes:
    """Build the body of an entry."""
    data = metadata.SerializeToString()
    return b"".join((_SIZE.pack(len(data)), data, payload))


def build_entry(metadata: MessageMetadata, payload: Buffer) -> bytes:
    """Build an entry, as a producer sends it."""
    body = build_body(metadata, payload)
    return checksum_head(body) + body


def build_batch(messages: Iterable[tuple[SingleMessageMetadata, Buffer]]) -> bytes:
    """Build the payload of a batch; the size of each payload is written into its metadata."""
    parts: list[Buffer] = []
    for metadata, payload in messages:
        metadata.payload_size = len(payload)
        data = metadata.SerializeToString()
        parts += [_SIZE.pack(len(data)), data, payload]
    return b"".join(parts)


HOLE: Final = build_batch([(SingleMessageMetadata(compacted_out=True), b"")])
"""A message that compaction has removed, in the payload of a batch: the others keep their places."""
