"""The producers that are open: who writes to a partition under which name, and who may join them.

Owns the rules of names and of exclusive access, which hold for the life of the process: a restart closes all
connections, and every client opens its producers again.
"""

from typing import Any, TypeAlias

from msgspec import Struct

from exacta.core.ids import PartitionId
from exacta.protocol.pulsar.messages_pb2 import ProducerAccessMode, ServerError
from exacta.protocol.pulsar.topic_names import TopicName

MOST_PRODUCERS = 10_000
"""The producers that one connection may have open."""

LONGEST_NAME_BYTES = 512

Place: TypeAlias = tuple[str, int]
"""A partition: the topic's name in the log, and the index."""


class Producer(Struct, eq=False, kw_only=True):
    """One producer of a connection. `number` is the client's."""

    owner: Any
    """The connection."""
    number: int
    name: str
    is_named: bool
    """True if its user has named it: then its repeats are dropped by their sequence ids."""
    epoch: int
    """The number of times that its client has opened it again."""
    is_exclusive: bool
    topic: TopicName
    place: Place
    partition_id: PartitionId

    @property
    def index(self) -> int:
        """The partition in message ids: -1 where the topic is named as a whole."""
        return -1 if self.topic.partition is None else self.topic.partition


class Busy(Struct, frozen=True):
    """The reason why a producer cannot be opened now."""

    error: ServerError
    text: str


class Producers:
    """All producers of all connections."""

    def __init__(self) -> None:
        self._by_place: dict[Place, dict[str, Producer]] = {}

    def open(self, producer: Producer, mode: ProducerAccessMode) -> Busy | Producer | None:
        """Open a producer; return the older one of the same client that it replaces, or why it cannot be opened.

        A client that has lost its connection opens a producer whose name the broker made up again, with a higher epoch,
        maybe before the loss is known here. One that its user has named waits for the end of the other one, which may
        be somebody else's.
        """
        others = self._by_place.get(producer.place, {})
        older = others.get(producer.name)
        if older is not None and not _is_successor(producer, older):
            text = f"a producer named {producer.name!r} is connected to {producer.topic} already"
            return Busy(ServerError.ProducerBusy, text)
        rest = [each for each in others.values() if each is not older]
        if any(each.is_exclusive for each in rest):
            return Busy(ServerError.ProducerBusy, f"another producer has {producer.topic} for itself")
        if mode == ProducerAccessMode.Exclusive and rest:
            return Busy(ServerError.ProducerFenced, f"{producer.topic} has other producers")
        self._by_place.setdefault(producer.place, {})[producer.name] = producer
        return older

    def has(self, place: Place) -> bool:
        """Return whether a producer is open on a partition."""
        return place in self._by_place

    def close(self, producer: Producer) -> None:
        """Forget a producer, unless it was replaced."""
        others = self._by_place.get(producer.place, {})
        if others.get(producer.name) is producer:
            del others[producer.name]
            if not others:
                del self._by_place[producer.place]


def _is_successor(producer: Producer, older: Producer) -> bool:
    if producer.owner is older.owner:
        return producer.number == older.number
    return not producer.is_named and not older.is_named and producer.epoch > older.epoch
