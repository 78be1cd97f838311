"""Which offsets a micro-batch covers. Pure.

Owns offsets as Spark stores them (`{"topic": {"0": 42}}`, next offset to read) and the division of a limit. Planning
is by last stable offsets (read_committed), so a batch never waits for an offset that it cannot read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from exacta.client.transactions import TopicPartition

Positions = dict[TopicPartition, int]

#: How a sentence about lost data ends.
REMEDY = "set option 'failOnDataLoss' to false to go on with what there is"


class Range(NamedTuple):
    """What one task reads: [start, end) of one partition."""

    topic: str
    partition: int
    start: int
    end: int


class DataLost(RuntimeError):
    """Offsets that the query still needs are gone; the message is one sentence for the user."""


def to_json(positions: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Return positions as Spark's Kafka connector writes them."""
    found: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(positions.items()):
        found.setdefault(topic, {})[str(partition)] = offset
    return found


def from_json(stored: Mapping[str, Mapping[str, int]]) -> Positions:
    """Return the positions that `to_json` wrote."""
    return {
        TopicPartition(topic, int(partition)): offset
        for topic, offsets in stored.items()
        for partition, offset in offsets.items()
    }


def limited(start: Positions, available: Positions, limit: int | None) -> Positions:
    """Return the end of a batch of at most about `limit` offsets, shared out by how much each partition has.

    Every partition that has something advances, so none starves; the limit may be exceeded by that much. An end is
    never before its start, also where a topic was made anew.
    """
    sizes = {partition: max(0, end - start.get(partition, 0)) for partition, end in available.items()}
    total = sum(sizes.values())
    ends = {}
    for partition, size in sizes.items():
        share = size if limit is None or total <= limit else min(size, max(1, limit * size // total)) if size else 0
        ends[partition] = start.get(partition, 0) + share
    return ends


def ranges(start: Positions, end: Positions, first_available: Mapping[TopicPartition, int]) -> list[Range]:
    """Return what to read between two positions; a partition that is new is read from its first available offset."""
    found = []
    for partition, last in sorted(end.items()):
        first = start.get(partition)
        if first is None:
            first = first_available.get(partition, 0)
        if first < last:
            found.append(Range(partition.topic, partition.partition, first, last))
    return found


def check_from_the_start(first_available: Mapping[TopicPartition, int]) -> None:
    """Raise `DataLost` where a partition that is new to the query has lost its first records already."""
    for partition, offset in sorted(first_available.items()):
        if offset > 0:
            raise DataLost(
                f"partition {partition.topic}-{partition.partition} is new to the query and begins at offset {offset}, "
                f"not at 0: its first records are gone; {REMEDY}"
            )


def check_not_behind(start: Positions, available: Positions) -> None:
    """Raise `DataLost` where a partition ends before the query's position, or is gone."""
    for partition, position in sorted(start.items()):
        name = f"{partition.topic}-{partition.partition}"
        if partition not in available:
            raise DataLost(f"partition {name} is gone, which the query has read up to offset {position}; {REMEDY}")
        if available[partition] < position:
            raise DataLost(
                f"partition {name} ends at offset {available[partition]}, before offset {position} that the query has "
                f"reached: was the topic deleted and made again? {REMEDY}"
            )
