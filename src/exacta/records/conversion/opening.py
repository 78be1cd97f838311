"""The beginning of a conversion: whose batch it is, and the reasons why a batch is converted without being opened."""

from enum import StrEnum

from exacta.core.ids import Body
from exacta.protocol.kafka.records import HEADER_SIZE, MAGIC_OFFSET, BatchHeader, CorruptBatch, parse_batch_header


class OpaqueReason(StrEnum):
    """The reason why a batch is converted to one opaque message. Clients read these words."""

    ENCRYPTED = "encrypted"
    """Only clients with a key can read it."""
    CHUNK = "chunk"
    """It is a part of a message that was too large for one entry."""
    CODEC = "codec"
    """It is compressed by a codec that is not known here."""
    COUNT = "count"
    """The number of its messages is not the number of its offsets, or is more than an entry may have."""
    SIZE = "size"
    """It is larger than is allowed, decompressed or converted."""
    DAMAGED = "damaged"
    """Its bytes are not what they say that they are."""


class Unopenable(Exception):
    """A batch cannot be opened."""

    def __init__(self, reason: OpaqueReason) -> None:
        super().__init__(reason)
        self.reason = reason


def header_of(batch: memoryview, body: Body) -> BatchHeader | None:
    """Return the header of a batch of this body; None for any other bytes."""
    if len(batch) < HEADER_SIZE or batch[MAGIC_OFFSET] != body:
        return None
    try:
        return parse_batch_header(batch)
    except CorruptBatch:
        return None
