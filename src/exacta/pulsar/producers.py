"""The producers that are open: who writes to a partition under which name, and who may join them.

Owns the rules of names and of exclusive access. Connections are volatile, and so is this: after a restart every client
opens its producers again. The epoch by which a producer learns that another one has had the partition is durable
(`core.log.exclusive`); it is given here as it is in this step.

    there are \\ asks for         Shared   Exclusive   WaitForExclusive   ExclusiveWithFencing
    nobody                       opens    takes       takes              takes
    shared producers             opens    FENCED      waits              takes, and closes them
    an exclusive one             BUSY     FENCED      waits              takes, and closes it
    others who wait              BUSY     FENCED      waits              takes, and refuses them by FENCED
    a later epoch than its own   -        FENCED      FENCED             FENCED

The first who waits takes the partition when its last producer is gone. Two shared producers of one name are not open
at once: the second is BUSY.

A client may have lost its connection and be back before that is known here. Its producer replaces the older one without
a question if nobody else can be that producer: it has the same number on the same connection, or the same name that the
broker made up, or the epoch of the exclusive one.

Apache Pulsar 4.2 differs where a client comes back: it answers FENCED while it knows the older connection, it closes
the others before it finds the epoch of the new one behind, and it lets one whose epoch is behind wait.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from msgspec import Struct, field

from exacta.core.ids import NO_WRITER_ID, PartitionId, WriterId
from exacta.core.log.exclusive import is_behind
from exacta.core.values.usage import Usage
from exacta.ports.record_format import Buffer
from exacta.protocol.pulsar.messages_pb2 import ProducerAccessMode, ServerError
from exacta.protocol.pulsar.topic_names import TopicName
from exacta.pulsar.topic_names import Place

MOST_PRODUCERS = 10_000
"""The producers that one connection may have open."""

MOST_PRODUCERS_IN_ALL = 200_000
"""The producers that all connections together may have open, and that wait. Each takes about a kilobyte, and a name."""

LONGEST_NAME_BYTES = 512
_NUMBER_BYTES = 8


class ProducerOwner(Protocol):
    """A connection, as its producers see it."""

    peer_host: str
    producers: dict[int, "Producer"]
    closed_producers: set[int]

    def push(self, buffers: Sequence[Buffer]) -> None:
        """Send what answers no frame."""


class Producer(Struct, eq=False, kw_only=True):
    """One producer of a connection. `number` is the client's."""

    owner: ProducerOwner
    """The connection."""
    number: int
    name: str
    is_named: bool
    """True if its user has named it: then its repeats are dropped by their sequence ids."""
    is_back: bool = False
    """True if it has a name that a broker made up: its client had opened it over another connection before."""
    writer_id: WriterId = NO_WRITER_ID
    """The number by which the core knows it if its user has not named it (`nameless_number`)."""
    epoch: int
    """The number of times that its client has opened it again."""
    mode: ProducerAccessMode
    topic_epoch: int | None
    """The epoch of an exclusive producer; None: it had none before, and has not got one yet."""
    topic: TopicName
    place: Place
    partition_id: PartitionId
    closings: int
    """The number of times that the partition had closed its writers when this one was opened (`core.log.closing`)."""
    is_waiting: bool = False
    """True until it has the partition for itself."""
    take_turn: Callable[["Producer"], None]
    """It is called when the producer need not wait any more."""
    refuse: Callable[[ServerError, str], None]
    """It tells the client why the producer is closed that it has asked for and may not use yet."""

    @property
    def is_exclusive(self) -> bool:
        """Return whether it wants the partition for itself."""
        return self.mode != ProducerAccessMode.Shared


class Busy(Struct, frozen=True):
    """The reason why a producer cannot be opened now."""

    error: ServerError
    text: str


class Opened(Struct, frozen=True):
    """The producers that are not open any more because this one is, and those that wait no longer."""

    replaced: tuple[Producer, ...] = ()
    refused: tuple[Producer, ...] = ()


class _Writers(Struct):
    """The producers of one partition."""

    open: dict[str, Producer] = field(default_factory=dict)
    """They are found by their names."""
    waiting: OrderedDict[Producer, None] = field(default_factory=OrderedDict)
    """The first is the next one."""

    @property
    def holder(self) -> Producer | None:
        """The one that has the partition for itself; it is the only one that is open."""
        first = next(iter(self.open.values()), None)
        return first if first is not None and first.is_exclusive else None


class Producers:
    """All producers of all connections. `owner_of` returns to whose share those of a host count (`Usage`)."""

    def __init__(self, owner_of: Callable[[str], str]) -> None:
        self._by_place: dict[Place, _Writers] = {}
        self._owner_of = owner_of
        self._usage = Usage()
        """The number of producers, by their hosts."""

    def has_room(self, host: str) -> bool:
        """Return whether a further producer of this host may be opened."""
        return self._usage.has_room(MOST_PRODUCERS_IN_ALL, 1, host, 1, self._owner_of(host))

    def _count(self, producers: Iterable[Producer], by: int) -> None:
        for each in producers:
            host = each.owner.peer_host
            if owner := self._owner_of(host):
                self._usage.own(host, owner)
            self._usage.change(host, by)

    def open(self, producer: Producer, last_epoch: int) -> Busy | Opened | None:
        """Open a producer as the table says; `last_epoch` is the partition's, and None means that it waits."""
        writers = self._by_place.get(producer.place) or _Writers()
        older = writers.open.get(producer.name)
        if older is not None and not _is_successor(producer, older):
            older = None
        if producer.is_exclusive and is_behind(producer.topic_epoch, last_epoch):
            text = f"another producer has had {producer.topic} for itself: the epoch is {last_epoch}"
            return Busy(ServerError.ProducerFenced, f"{text}, and this one has {producer.topic_epoch}")
        found = _judge(producer, writers, older)
        if isinstance(found, Busy):
            return found
        self._by_place[producer.place] = writers
        if found is None:
            producer.is_waiting = True
            writers.waiting[producer] = None
            self._count((producer,), 1)
            return None
        self._count((producer,), 1)
        self._count((*found.replaced, *found.refused, *(() if older is None else (older,))), -1)
        if found.replaced:
            writers.open.clear()
            writers.waiting.clear()
        writers.open[producer.name] = producer
        return found if older is None else Opened((*found.replaced, older), found.refused)

    def has(self, place: Place) -> bool:
        """Return whether a producer is open on a partition."""
        return place in self._by_place

    def close(self, producer: Producer) -> None:
        """Forget a producer, unless it was replaced, and let the first take its turn who waits for that."""
        writers = self._by_place.get(producer.place)
        if writers is None:
            return
        if producer in writers.waiting:
            del writers.waiting[producer]
            self._count((producer,), -1)
        elif writers.open.get(producer.name) is producer:
            del writers.open[producer.name]
            self._count((producer,), -1)
        if writers.open:
            return
        if not writers.waiting:
            del self._by_place[producer.place]
            return
        following, _ = writers.waiting.popitem(last=False)
        following.is_waiting = False
        writers.open[following.name] = following
        following.take_turn(following)


def nameless_number(name: str) -> WriterId:
    """Return the number by which the core knows a producer whose name was made up by a broker."""
    digest = hashlib.blake2b(name.encode(), digest_size=_NUMBER_BYTES).digest()
    return WriterId(NO_WRITER_ID - 1 - (int.from_bytes(digest, "big") >> 2))


def _judge(producer: Producer, writers: _Writers, older: Producer | None) -> Busy | Opened | None:
    """Look the answer up in the table; `older` is the one that this replaces without a question."""
    topic = producer.topic
    has_others = len(writers.open) > (older is not None)
    holder = writers.holder if has_others else None
    taken = f"the producer {holder.name!r} has {topic} for itself" if holder else f"others wait to have {topic}"
    match producer.mode:
        case ProducerAccessMode.Shared:
            if holder is not None or writers.waiting:
                return Busy(ServerError.ProducerBusy, taken)
            if older is None and producer.name in writers.open:
                text = f"a producer named {producer.name!r} is connected to {topic} already"
                return Busy(ServerError.ProducerBusy, text)
        case ProducerAccessMode.Exclusive:
            if holder is not None or writers.waiting:
                return Busy(ServerError.ProducerFenced, taken)
            if has_others:
                return Busy(ServerError.ProducerFenced, f"{topic} has other producers")
        case ProducerAccessMode.WaitForExclusive:
            if has_others:
                return None
        case _:
            if has_others:
                others = tuple(each for each in writers.open.values() if each is not older)
                return Opened(others, tuple(writers.waiting))
    return Opened()


def _is_successor(producer: Producer, older: Producer) -> bool:
    if producer.owner is older.owner:
        return producer.number == older.number
    if producer.is_exclusive and older.is_exclusive and producer.topic_epoch is not None:
        return producer.topic_epoch == older.topic_epoch
    return not producer.is_named and not older.is_named and producer.epoch > older.epoch
