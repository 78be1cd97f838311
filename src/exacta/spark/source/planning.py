"""Plan which offsets a micro-batch covers.

The module is pure. It owns offsets as Spark stores them and the division of a limit. Planning is by last stable offsets
(read_committed), so a batch never waits for an offset that it cannot read.

The form of offsets: `{"orders": {"0": 42, "1": 7}, "orders#kq3Xn5JcTlO9yZ7n1v0f2w": {}}`. The first entry is of
Spark's own Kafka connector: by partition, the next offset to read. The second says which topic that was (KIP-516): one
that is deleted and created again under the same name is another one. A topic's name cannot hold the sign `#`, and the
entry holds no partition, so a reader of offsets by partition passes it over: Spark's own connector (a query may move
from `format("kafka")` to this one and back with its checkpoint), older versions of ours, and tools that read a query's
progress. If a cluster gives no ids, and in older checkpoints, the second entry is not there.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from exacta.client.transactions import TopicPartition

Positions = dict[TopicPartition, int]

REMEDY = "set option 'failOnDataLoss' to false to go on with what there is"
"""The end of a sentence about lost data."""


_ID = "#"
"""The separator between a topic's name and its id."""
_ID_CHARACTERS = 22

TopicIds = Mapping[str, str]
"""The id of each topic, as Kafka's tools print it: 22 characters of URL-safe base64."""


class Range(NamedTuple):
    """The part of a partition that one task reads: [start, end). The topic's id is empty if it is not known."""

    topic: str
    partition: int
    start: int
    end: int
    topic_id: str = ""


class DataLost(RuntimeError):
    """Offsets that the query still needs are gone; the message is one sentence for the user."""


def to_json(positions: Mapping[TopicPartition, int], topic_ids: TopicIds | None = None) -> dict[str, dict[str, int]]:
    """Return positions in the form that is stored."""
    found: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(positions.items()):
        found.setdefault(topic, {})[str(partition)] = offset
    for topic in list(found):
        topic_id = (topic_ids or {}).get(topic)
        if topic_id is not None:
            found[f"{topic}{_ID}{topic_id}"] = {}
    return found


def from_json(stored: Mapping[str, Mapping[str, int]]) -> Positions:
    """Return the positions that `to_json` wrote."""
    return {
        TopicPartition(topic, int(partition)): offset
        for topic, offsets in stored.items()
        for partition, offset in offsets.items()
    }


def topic_ids_in(stored: Mapping[str, Mapping[str, int]]) -> dict[str, str]:
    """Return the topic ids that `to_json` wrote."""
    named = (key.partition(_ID) for key in stored if _ID in key)
    return {topic: topic_id for topic, _, topic_id in named}


def id_as_text(topic_id: bytes) -> str:
    """Return a topic's id as it is stored."""
    return urlsafe_b64encode(topic_id).rstrip(b"=").decode()


def id_from_text(text: str) -> bytes | None:
    """Return the id that `id_as_text` wrote; The result is None for text that is empty or no id."""
    found = urlsafe_b64decode(text + "==") if len(text) == _ID_CHARACTERS else b""
    return found or None


def replaced(before: TopicIds, now: TopicIds) -> list[str]:
    """Return the topics that were deleted and created again: those with another id."""
    return sorted(topic for topic, topic_id in before.items() if now.get(topic, topic_id) != topic_id)


def limited(start: Positions, available: Positions, limit: int | None) -> Positions:
    """Return the end of a batch of at most about `limit` offsets, shared out by how much each partition has.

    Every partition that has something advances, so none starves, and the limit may be exceeded by that much. An end is
    never before its start, even if a topic was created again.
    """
    sizes = {partition: max(0, end - start.get(partition, 0)) for partition, end in available.items()}
    total = sum(sizes.values())
    ends = {}
    for partition, size in sizes.items():
        share = size if limit is None or total <= limit else min(size, max(1, limit * size // total)) if size else 0
        ends[partition] = start.get(partition, 0) + share
    return ends


def ranges(
    start: Positions,
    end: Positions,
    first_available: Mapping[TopicPartition, int],
    topic_ids: TopicIds | None = None,
) -> list[Range]:
    """Return what to read between two positions; a partition that is new is read from its first available offset."""
    found = []
    for partition, last in sorted(end.items()):
        first = start.get(partition)
        if first is None:
            first = first_available.get(partition, 0)
        if first < last:
            topic_id = (topic_ids or {}).get(partition.topic, "")
            found.append(Range(partition.topic, partition.partition, first, last, topic_id))
    return found


def sliced(parts: Sequence[Range], *, at_least: int | None, at_most_offsets: int | None) -> list[Range]:
    """Return `parts` cut so that none has more than `at_most_offsets`, and about `at_least` of them, in order.

    The cuts are those of Spark's connector (`maxRecordsPerPartition` first, then `minPartitions`): each range is cut by
    its share of the offsets, in equal pieces. A range that is too small for a second piece is left whole and does not
    count.
    """
    if at_most_offsets is not None:
        parts = [piece for part in parts for piece in _cut(part, -(-_size(part) // at_most_offsets))]
    if at_least is None or at_least <= len(parts):
        return list(parts)
    total = sum(_size(part) for part in parts)
    whole = [part for part in parts if round(_size(part) / total * at_least) <= 1]
    left = total - sum(_size(part) for part in whole)
    pieces = max(1, at_least - len(whole))
    found: list[Range] = []
    for part in parts:
        found += [part] if part in whole else _cut(part, max(1, round(_size(part) / left * pieces)))
    return found


def _size(part: Range) -> int:
    return part.end - part.start


def _cut(part: Range, pieces: int) -> list[Range]:
    bounds = [part.start + _size(part) * index // pieces for index in range(pieces + 1)]
    return [part._replace(start=first, end=end) for first, end in pairwise(bounds) if first < end]


def check_not_replaced(topics: Sequence[str]) -> None:
    """Raise `DataLost` where topics were deleted and created again."""
    if topics:
        raise DataLost(
            f"topic '{topics[0]}' was deleted and created again since the query read it: what it had not read yet is "
            f"gone; {REMEDY} (the new topic is then read from its beginning), or option 'check.topic.ids' to "
            "false where it was moved here with its offsets"
        )


def check_from_the_start(first_available: Mapping[TopicPartition, int]) -> None:
    """Raise `DataLost` where a partition that is new to the query has lost its first records already."""
    for partition, offset in sorted(first_available.items()):
        if offset > 0:
            raise DataLost(
                f"partition {partition} is new to the query and begins at offset {offset}, "
                f"not at 0: its first records are gone; {REMEDY}"
            )


def check_not_behind(start: Positions, available: Positions) -> None:
    """Raise `DataLost` where a partition ends before the query's position, or is gone."""
    for partition, position in sorted(start.items()):
        name = str(partition)
        if partition not in available:
            raise DataLost(f"partition {name} is gone, which the query has read up to offset {position}; {REMEDY}")
        if available[partition] < position:
            raise DataLost(
                f"partition {name} ends at offset {available[partition]}, before offset {position} that the query has "
                f"reached: was the topic deleted and made again? {REMEDY}"
            )
