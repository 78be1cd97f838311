"""The consumers of one connection: what each has permitted, and the entries that are pushed to it.

Owns flow control between a client and the core. A client permits messages (FLOW), and whole entries are pushed. Each
takes as many permits as it has messages that are left, since clients give no permits back for the others. The core gets
the permits while the connection can send. When it cannot, what is left of them is taken back, so that a client that
does not read holds up nobody and fills no memory; they are granted again when the client has read. An entry that the
core has given to a consumer meanwhile is pushed all the same.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, TypedDict, TypeVar
from weakref import WeakValueDictionary

from google.protobuf.message import Message
from msgspec import Struct, field

from exacta.core.commands import Command, Connect, Disconnect, Permit
from exacta.core.ids import ConsumerId, Offset, PartitionId
from exacta.core.outcome import Notice
from exacta.core.subscriptions.notices import ActiveConsumerChanged, ConsumerClosed
from exacta.core.values.runs import Run, count, missing
from exacta.core.values.subscriptions import IN_ORDER, IsolationLevel, KeyShared, SubscriptionType
from exacta.ports.log import Sent
from exacta.ports.record_format import Buffer
from exacta.protocol.pulsar.commands import NO_REQUEST
from exacta.protocol.pulsar.frames import build_entry_frame, build_frame
from exacta.protocol.pulsar.message_ids import ack_set, message_id
from exacta.protocol.pulsar.messages_pb2 import (
    BrokerEntryMetadata,
    CommandActiveConsumerChange,
    CommandCloseConsumer,
    CommandMessage,
    ServerError,
)
from exacta.protocol.pulsar.topic_names import TopicName
from exacta.pulsar.shared import PulsarShared
from exacta.pulsar.topic_names import Place
from exacta.records.pulsar_entries import on_the_wire

logger = logging.getLogger("exacta.pulsar")

MOST_CONSUMERS = 10_000
"""The consumers that one connection may have open."""

MOST_IN_PART = 1000
"""The broker remembers of this many entries which part of them a consumer has not got. It forgets the oldest ones."""

MOST_PERMITS = 2**31 - 1
"""A consumer may have permitted this many messages that it has not got; further ones do not count."""


T = TypeVar("T")


class Where(TypedDict):
    """The fields by which commands of the core name a subscription."""

    topic: str
    partition: int
    subscription: str


class Consumer(Struct, eq=False, kw_only=True):
    """One consumer of a connection. `number` is the client's."""

    number: int
    consumer_id: ConsumerId
    """The number in the core, which no other consumer has had."""
    name: str
    topic: TopicName
    place: Place
    partition_id: PartitionId
    subscription: str
    subscription_type: SubscriptionType
    needs_group: bool = False
    """True: its client needs the right to read by the subscription, too."""
    connected_ms: int = 0
    """The time at which the client has opened it, in milliseconds since 1970."""
    epoch: int | None = None
    """It grows whenever the client wants everything again: it drops messages that say an earlier epoch, the first one
    of which is 0. None: the client counts no epochs."""
    allowed: int = 0
    """The messages that the client has permitted, and that were not pushed."""
    granted: int = 0
    """The part of these that the core may give."""
    message_bytes: float = 0.0
    """The bytes of a message of those that were pushed last; 0: nothing was, or the consumer has no quota."""
    left_out: dict[Offset, list[Run]] = field(default_factory=dict)
    """The messages that an ack set left out of each entry when it was pushed last, by the entry's first message.

    The client for Java acknowledges them along with the first of the others. But they may be pending in a transaction,
    whose abort must bring them back. Apache Pulsar loses them then.
    """

    @property
    def where(self) -> Where:
        """The fields by which commands of the core name the subscription."""
        return {"topic": self.place[0], "partition": self.place[1], "subscription": self.subscription}

    @property
    def is_in_order(self) -> bool:
        """Return whether one consumer gets everything in order: then messages say their epoch."""
        return self.subscription_type in IN_ORDER

    def note_left_out(self, base: Offset, left_out: list[Run]) -> None:
        """Remember which part of an entry is not pushed."""
        self.left_out.pop(base, None)
        if len(self.left_out) == MOST_IN_PART:
            del self.left_out[next(iter(self.left_out))]
        self.left_out[base] = left_out

    def got(self, base: Offset, runs: list[Run]) -> list[Run]:
        """Return the part of these messages of an entry that the consumer has got; all if it has got none of them."""
        left_out = self.left_out.get(base)
        return runs if left_out is None else [part for run in runs for part in missing(left_out, *run)] or runs


class PushedTo(Protocol):
    """A connection, as its consumers see it."""

    peer: str

    def push(self, buffers: Sequence[Buffer]) -> None:
        """Send what answers no frame."""

    def delivered(self, consumer: Consumer, size: int) -> None:
        """Count bytes that are about to be pushed to a consumer; nothing more is pushed while they exceed a quota."""

    def most_bytes(self, consumer: Consumer) -> float | None:
        """Return how much should be pushed to a consumer at once; None: it has no quota."""

    def abort(self) -> None:
        """Close the connection at once."""


class Opening(Protocol):
    """A SUBSCRIBE that waits for its topic."""

    is_answered: bool


class Consumers:
    """The consumers of one connection, by the client's numbers."""

    def __init__(self, shared: PulsarShared, connection: PushedTo) -> None:
        self._broker = shared.broker
        self._form = shared.form
        self._connection = connection
        self._consumers: dict[int, Consumer] = {}
        self._opening: WeakValueDictionary[int, Opening] = WeakValueDictionary()
        """The SUBSCRIBEs that wait for their topics, by the client's numbers; they go when they are answered."""
        self._closed: dict[int, TopicName] = {}
        """The topics of consumers that were closed from this side, by the client's numbers, until they come back."""
        self._can_send = True
        self.takes_broker_entries = False
        """True if the client has said that it understands what the broker adds to an entry."""

    def __len__(self) -> int:
        """Return how many consumers there are, with those that are being opened."""
        return len(self._consumers) + len(self._opening)

    @property
    def numbers(self) -> Sequence[int]:
        """The numbers of those that are open."""
        return tuple(self._consumers)

    def get(self, number: int) -> Consumer | None:
        """Return a consumer by the client's number."""
        return self._consumers.get(number)

    def begin_to_open(self, number: int, request: Opening) -> bool:
        """Note that a consumer is being opened; return False where another one is, under the same number."""
        present = self._opening.get(number)
        if present is not None and not present.is_answered:
            return False
        self._opening[number] = request
        return True

    def may_open(self, number: int, request: Opening) -> bool:
        """Return whether the consumer is still to be opened: neither it nor the connection was closed meanwhile."""
        return self._opening.pop(number, None) is request

    def give_up_opening(self, number: int) -> None:
        """Let a consumer that is being opened, or opened again, not be opened any more."""
        self._opening.pop(number, None)
        self._closed.pop(number, None)

    def error_without_topic(self, number: int, topic: TopicName) -> ServerError:
        """Return the error for a consumer whose topic is not there.

        Where it was there before, the client of a consumer that was closed tries again, until the topic is created once
        more. The client for Java would let its consumer be dead after TopicNotFound, and tell nobody.
        """
        return ServerError.ServiceNotReady if self._closed.get(number) == topic else ServerError.TopicNotFound

    def is_open_again(self, number: int) -> None:
        """Forget that a consumer was closed from this side."""
        self._closed.pop(number, None)

    def connection_command(
        self,
        consumer: Consumer,
        *,
        priority: int,
        key_shared: KeyShared,
        durable: bool,
        isolation_level: IsolationLevel,
    ) -> Command:
        """Take a consumer up, and return the command by which the core does so, to be submitted in this step."""
        self._consumers[consumer.number] = consumer
        engine = self._broker.engine
        engine.dispatcher.register(consumer.consumer_id, self._guarded(consumer, self._push), self._form)
        engine.register_sink(consumer.consumer_id, self._guarded(consumer, self._hear))
        return Connect(
            **consumer.where,
            consumer_id=consumer.consumer_id,
            subscription_type=consumer.subscription_type,
            name=consumer.name,
            priority=priority,
            key_shared=key_shared,
            durable=durable,
            isolation_level=isolation_level,
        )

    def forget(self, consumer: Consumer) -> None:
        """Push nothing to a consumer any more; the core has let it go, or never took it."""
        if self._consumers.get(consumer.number) is consumer:
            del self._consumers[consumer.number]
        self._broker.engine.dispatcher.remove(consumer.consumer_id)
        self._broker.engine.remove_sink(consumer.consumer_id)

    def disconnect(self, consumers: Iterable[Consumer]) -> None:
        """Let these be gone: what they have waits for others."""
        gone = list(consumers)
        for consumer in gone:
            self.forget(consumer)
        self._submit([Disconnect(**each.where, consumer_id=each.consumer_id) for each in gone])

    def disconnect_all(self) -> None:
        """Let all be gone, because the connection is."""
        self._opening.clear()
        self._closed.clear()
        self.disconnect(list(self._consumers.values()))

    def close(self, consumer: Consumer) -> None:
        """Close a consumer from this side, and tell its client, which opens it again."""
        if self._consumers.get(consumer.number) is consumer:
            self.forget(consumer)
            if len(self._closed) == MOST_CONSUMERS:
                del self._closed[next(iter(self._closed))]
            self._closed[consumer.number] = consumer.topic
            message: Message = CommandCloseConsumer(consumer_id=consumer.number, request_id=NO_REQUEST)
            self._connection.push([build_frame(message)])

    def let_go(self, may_consume: Callable[[Consumer], bool]) -> Iterator[None]:
        """Close, in steps, the consumers that may not read any more: what they have waits for others."""
        for consumer in list(self._consumers.values()):
            if self._consumers.get(consumer.number) is consumer and not may_consume(consumer):
                self.close(consumer)
                self._submit([Disconnect(**consumer.where, consumer_id=consumer.consumer_id)])
            yield None

    # --- permits ------------------------------------------------------------------------------------------------------

    def permit(self, consumer: Consumer, messages: int) -> None:
        """Let a consumer be sent this many messages more."""
        consumer.allowed = min(consumer.allowed + messages, MOST_PERMITS)
        if self._can_send:
            self._grant([consumer])

    def set_can_send(self, can_send: bool) -> None:
        """Give the core what clients permit while the connection can send, and take it back when it cannot."""
        if can_send is not self._can_send:
            self._can_send = can_send
            self._grant(self._consumers.values())

    def _grant(self, consumers: Iterable[Consumer]) -> None:
        commands: list[Command] = []
        for consumer in consumers:
            more = self._to_grant(consumer) - consumer.granted
            if more:
                consumer.granted += more
                commands.append(Permit(**consumer.where, consumer_id=consumer.consumer_id, permits=more))
        self._submit(commands)

    def _to_grant(self, consumer: Consumer) -> int:
        """Return how many messages the core may give; to one with a quota few at a time, by the size of its last ones.

        The core gives what is permitted in one step, and does not know how large it is.
        """
        if not self._can_send:
            return min(consumer.allowed, 0)
        most_bytes = self._connection.most_bytes(consumer)
        if most_bytes is None:
            consumer.message_bytes = 0.0
            return consumer.allowed
        most = int(most_bytes / consumer.message_bytes) if consumer.message_bytes else 1
        return min(consumer.allowed, max(most, 1))

    def _submit(self, commands: list[Command]) -> None:
        if commands and not self._broker.engine.dispatcher.has_stopped:
            self._broker.engine.submit(commands, lambda answers: None)

    # --- what comes from the engine -----------------------------------------------------------------------------------

    def _guarded(self, consumer: Consumer, sink: Callable[[Consumer, T], None]) -> Callable[[T], None]:
        def guarded(what: T) -> None:
            try:
                sink(consumer, what)
            except Exception:  # a bug in one front must not end the server
                logger.exception("pushing to consumer %d of %s failed", consumer.number, self._connection.peer)
                self._connection.abort()

        return guarded

    def _push(self, consumer: Consumer, sent: list[Sent]) -> None:
        frames: list[Buffer] = []
        messages = 0
        for each in sent:
            taken = count(each.entry.free)
            messages += taken
            consumer.allowed -= taken
            consumer.granted -= taken
            frames += self._frame(consumer, each)
        size = sum(map(len, frames))
        self._connection.delivered(consumer, size)
        self._connection.push(frames)
        if self._connection.most_bytes(consumer) is not None:
            consumer.message_bytes = size / max(messages, 1)
            self._grant([consumer])

    def _frame(self, consumer: Consumer, sent: Sent) -> list[Buffer]:
        entry = sent.entry
        message = CommandMessage(
            consumer_id=consumer.number,
            message_id=message_id(consumer.partition_id, entry.base, partition=consumer.topic.partition),
            redelivery_count=entry.redeliveries,
        )
        last = Offset(entry.base + entry.count - 1)
        if entry.free != ((entry.base, last),):
            left_out = missing(list(entry.free), entry.base, last)
            acknowledged = [range(first, end + 1) for first, end in left_out]
            message.ack_set.extend(ack_set(entry.base, entry.count, acknowledged))
            consumer.note_left_out(entry.base, left_out)
        elif consumer.left_out:
            consumer.left_out.pop(entry.base, None)
        if consumer.is_in_order and consumer.epoch is not None:
            message.consumer_epoch = consumer.epoch
        broker_entry = BrokerEntryMetadata(index=last) if self.takes_broker_entries else None
        return build_entry_frame(message, *on_the_wire(sent.batch), broker_entry=broker_entry)

    def _hear(self, consumer: Consumer, notice: Notice) -> None:
        if isinstance(notice, ActiveConsumerChanged):
            message: Message = CommandActiveConsumerChange(consumer_id=consumer.number, is_active=notice.is_active)
            self._connection.push([build_frame(message)])
        elif isinstance(notice, ConsumerClosed):
            self.close(consumer)
