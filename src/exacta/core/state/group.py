"""The offsets of a consumer group: committed ones, and those that wait for their transaction."""

from msgspec import Struct, field
from msgspec.structs import replace

from exacta.core.ids import TransactionId


class CommittedOffset(Struct, frozen=True, array_like=True):
    """A group's position in a partition; `order` tells which of two commits came later, `at_ms` when it took effect."""

    offset: int
    leader_epoch: int
    metadata: str
    at_ms: int
    order: int


OffsetMap = dict[str, dict[int, CommittedOffset]]
"""Topic -> partition index -> offset."""


class Group(Struct, array_like=True):
    """A group's offsets: committed ones, and those that wait for their transaction, by its id."""

    group_id: str
    offsets: OffsetMap = field(default_factory=dict)
    pending: dict[TransactionId, OffsetMap] = field(default_factory=dict)


def merge(offsets: OffsetMap, pending: OffsetMap, at_ms: int) -> None:
    """Let the pending offsets take effect at `at_ms`, but for those that a later plain commit has overtaken.

    The topics and partitions of `offsets` are those of both afterwards.
    """
    for topic, by_partition in pending.items():
        target = offsets.setdefault(topic, {})
        for index, offset in by_partition.items():
            present = target.get(index)
            if present is None or present.order < offset.order:
                target[index] = replace(offset, at_ms=at_ms)
