"""The beginning of a conversion: whose batch it is, and why it goes over unopened if it does."""

from enum import StrEnum

from exacta.core.ids import Body
from exacta.protocol.kafka.records import HEADER_SIZE, MAGIC_OFFSET, BatchHeader, CorruptBatch, parse_batch_header


class Opaque(StrEnum):
    """The reason why a batch goes over unopened. Clients read these words."""

    ENCRYPTED = "encrypted"
    """Only clients with a key can read it."""
    CHUNK = "chunk"
    """It is a part of a message that was too large for one entry."""
    CODEC = "codec"
    """It is compressed by a codec that is not known here."""
    COUNT = "count"
    """It has another number of messages than offsets, or more than an entry may have."""
    SIZE = "size"
    """It is larger than is allowed, decompressed or converted."""
    DAMAGED = "damaged"
    """Its bytes are not what they say that they are."""


class Closed(Exception):
    """A batch cannot be opened."""

    def __init__(self, reason: Opaque) -> None:
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
