"""The words that consumers exchange through a group of the classic protocol, as far as a broker reads or writes them.

Owns Kafka's embedded consumer protocol: a member's subscription and its assignment. They are no requests, but values
that the state holds of a group's members. A group that changes its protocol is made of them (`groups.migration`).
"""

import struct
from collections.abc import Iterable, Sequence

from msgspec import Struct

from exacta.core.state.classic_membership import CONSUMERS

MOST_ELEMENTS = 300_000
"""Words with more topics and partitions are not read: everybody else would wait meanwhile."""
_OWNED_SINCE, _RACK_SINCE, _LAST_VERSION = 1, 3, 3

Named = tuple[str, int]
"""Topic name and index."""


class ConsumerProtocolSubscription(Struct, frozen=True, kw_only=True):
    """The words of a member that joins; `owned` are the partitions that it has not given up (KIP-429)."""

    topics: frozenset[str]
    owned: tuple[Named, ...] = ()
    rack_id: str | None = None


class _Reader:
    """Reads big-endian values one after the other; raises ValueError or struct.error where they are none."""

    def __init__(self, words: bytes, most: int = MOST_ELEMENTS) -> None:
        self._words, self._at, self.left = words, 0, most

    def number(self, kind: str) -> int:
        (value,) = struct.unpack_from(f">{kind}", self._words, self._at)
        self._at += struct.calcsize(kind)
        return int(value)

    def count(self) -> int:
        count = self.number("i")
        self.left -= max(count, 0)
        if count < 0 or self.left < 0:
            raise ValueError(count)
        return count

    def take(self, length: int) -> bytes:
        found = bytes(self._words[self._at : self._at + length])
        if length < 0 or len(found) < length:
            raise ValueError(length)
        self._at += length
        return found

    def text(self) -> str:
        return self.take(self.number("h")).decode()

    def null_or(self, kind: str) -> bytes | None:
        length = self.number(kind)
        return None if length < 0 else self.take(length)

    def topics(self) -> frozenset[str]:
        return frozenset(self.text() for _ in range(self.count()))

    def partitions(self) -> tuple[Named, ...]:
        found: list[Named] = []
        for _ in range(self.count()):
            topic = self.text()
            found += [(topic, self.number("i")) for _ in range(self.count())]
        return tuple(found)


def read_subscription(words: bytes) -> ConsumerProtocolSubscription | None:
    """Return what a member subscribes to and owns; None where the words are none of the consumer protocol."""
    reader = _Reader(words)
    try:
        version = reader.number("h")
        if version < 0:
            return None
        topics = reader.topics()
        reader.null_or("i")  # an assignor's own data
        owned = reader.partitions() if version >= _OWNED_SINCE else ()
        rack_id = None
        if version >= _RACK_SINCE:
            reader.number("i")  # the generation in which these partitions were assigned (KIP-792)
            said = reader.null_or("h")
            rack_id = None if said is None else said.decode()
    except (struct.error, ValueError):
        return None
    return ConsumerProtocolSubscription(topics=topics, owned=owned, rack_id=rack_id)


def version_of(words: bytes) -> int:
    """Return the version of a subscription that has been read before."""
    return min(_Reader(words).number("h"), _LAST_VERSION)


def read_assignment(words: bytes) -> tuple[Named, ...] | None:
    """Return the partitions that an assignment names; no words name none.

    None: they cannot be read, or an assignor of the application's own has put data of its own beside the partitions.
    """
    if not words:
        return ()
    reader = _Reader(words)
    try:
        if reader.number("h") < 0:
            return None
        partitions = reader.partitions()
        return None if reader.null_or("i") else partitions
    except (struct.error, ValueError):
        return None


def write_assignment(version: int, partitions: Iterable[Named]) -> bytes:
    """Return an assignment of these partitions in the version of the member's subscription."""
    by_topic: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        by_topic.setdefault(topic, []).append(index)
    words = [struct.pack(">hi", version, len(by_topic))]
    for topic, indexes in by_topic.items():
        name = topic.encode()
        words.append(struct.pack(f">h{len(name)}si{len(indexes)}i", len(name), name, len(indexes), *indexes))
    return b"".join((*words, struct.pack(">i", -1)))


def subscribed_topics(protocol_type: str, protocols: Sequence[bytes]) -> frozenset[str] | None:
    """Return the topics that a member subscribes to; None where it is no consumer, or what it says cannot be read.

    `protocols` are the subscriptions, one for each assignor: a version and the topics come first in every version, and
    no more is read. All of them together may have `MOST_ELEMENTS`.
    """
    if protocol_type != CONSUMERS:
        return None
    topics: frozenset[str] = frozenset()
    left = MOST_ELEMENTS
    try:
        for subscription in protocols:
            reader = _Reader(subscription, left)
            reader.number("h")
            topics |= reader.topics()
            left = reader.left
    except (struct.error, ValueError):
        return None
    return topics
