"""Staged streams: what open transactions have written to a sidecar topic, and where what they committed has entered."""

from operator import attrgetter

from msgspec import Struct, field

from exacta.core.ids import Offset, PartitionId

HELD = PartitionId(-1)
"""This stands in the place of a stream of the journal: the batches are held in the state."""


class HeldBatch(Struct, frozen=True, array_like=True):
    """A staged batch whose bytes are held in the state."""

    record_count: int
    max_timestamp_ms: int
    batch: bytes
    takes_append_time: bool = False


class StagedStream(Struct, array_like=True):
    """The batches of one producer id of an open transaction in one partition. Records are numbered from 0 without gaps.

    Its batches are held in the state, or *spilled*: then they lie in a stream of the journal's own (decision 0041).
    """

    record_count: int = 0
    size: int = 0
    """The bytes of all batches."""
    max_timestamp_ms: int = -1
    """The latest of the batches whose timestamps are their producers'."""
    stream: PartitionId = HELD
    held: list[HeldBatch] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    """The runs of places that its writers were told: the first place and the number of records of each.

    Nobody asks for the places of Kafka's records. A run of those may have gaps, and its first place is inverted (`~`).
    """
    takes_append_time: bool = False
    """True: there is a batch whose timestamps are the log's. They become the time of the commit."""


class EnteredStream(Struct, frozen=True, array_like=True):
    """A spilled stream that entered the partition when its transaction committed. `end_offset` is exclusive."""

    first_offset: Offset
    end_offset: Offset
    stream: PartitionId
    size: int
    max_timestamp_ms: int
    """No batch in it has a later timestamp."""
    append_time_ms: int = -1
    """The time of the commit, where batches have the log's timestamps; -1: none has."""


BEGINS = attrgetter("first_offset")
"""The key by which entered streams are looked up by where they begin; `ENDS`: by where they end."""
ENDS = attrgetter("end_offset")


class Receipt(Struct, frozen=True, array_like=True):
    """A run of places that a Pulsar producer was told, and the offsets at which the messages have entered."""

    first_place: int
    first_offset: Offset
    count: int


FIRST_PLACE = attrgetter("first_place")
"""The key by which receipts are looked up."""
