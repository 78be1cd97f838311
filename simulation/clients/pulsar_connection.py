"""A connection of a Pulsar client: commands out, answers and pushed messages in, and an error where nothing comes.

Owns time-outs and the queue of pushed messages. A connection that fails is given up, and so is one whose producer or
consumer the broker has closed: a client that uses it opens what it needs again.
"""

import asyncio
import random
from collections import deque
from collections.abc import Sequence
from typing import Any

from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.entries import build_batch, build_entry, parse_entry
from exacta.protocol.pulsar.session import Incoming, Key, Outgoing, Session, error_of
from simulation.clients.connection import BACKOFF_SECONDS, REQUEST_SECONDS, Disconnected
from simulation.clients.messages import messages_of
from simulation.network import Link, Network, Refused

LATER = frozenset({pb.ServerError.ServiceNotReady, pb.ServerError.ProducerBlockedQuotaExceededError})
"""A Pulsar client asks once more then: the disk is full. For ours it is as good as no answer."""
PRODUCER, CONSUMER = 1, 2
"""The numbers of the one producer and of the one consumer that a connection has."""


class Pushed:
    """One message that was pushed, with its place in its entry."""

    def __init__(
        self,
        entry_id: pb.MessageIdData,
        index: int,
        count: int,
        metadata: pb.MessageMetadata | pb.SingleMessageMetadata,
        payload: bytes,
        redeliveries: int,
    ) -> None:
        self.id = entry_id
        self.index = index
        self.count = count
        self.metadata = metadata
        self.value = payload
        self.redeliveries = redeliveries

    @property
    def to_acknowledge(self) -> pb.MessageIdData:
        """Return the id that acknowledges this message alone."""
        found = pb.MessageIdData()
        found.CopyFrom(self.id)
        if self.count > 1:
            found.ack_set.append(((1 << self.count) - 1) & ~(1 << self.index))
        return found

    @property
    def to_acknowledge_all_up_to(self) -> pb.MessageIdData:
        """Return the id that acknowledges this message and all before it."""
        found = pb.MessageIdData()
        found.CopyFrom(self.id)
        if self.index + 1 < self.count:
            found.ack_set.append(((1 << self.count) - 1) & ~((1 << (self.index + 1)) - 1))
        return found


class PulsarLink:
    """One client's way to the broker's other door."""

    def __init__(self, loop: asyncio.AbstractEventLoop, network: Network, chance: random.Random, name: str) -> None:
        self.pushed: deque[Pushed] = deque()
        self.session = Session("simulated")
        self._loop = loop
        self._network = network
        self._chance = chance
        self._name = name
        self._link: Link | None = None
        self._waiting: dict[Key | None, asyncio.Future[Any]] = {}

    @property
    def is_open(self) -> bool:
        """Return whether there is a connection, with what was opened on it."""
        return self._link is not None

    async def produce(
        self,
        values: list[bytes],
        sequence: int,
        now_ms: int,
        transaction: int | None = None,
        keys: Sequence[bytes] = (),
        part: tuple[int, int] | None = None,
    ) -> Any:
        """Send one entry, a batch where there are several values; return the receipt, or raise Disconnected.

        `keys` are those of the messages, if they have any. `part` is the place of a part of a large message, and
        how many parts there are.
        """
        metadata = pb.MessageMetadata(producer_name=self._name, sequence_id=sequence, publish_time=now_ms)
        payload = values[0]
        if len(values) > 1:
            metadata.num_messages_in_batch = len(values)
            messages = [pb.SingleMessageMetadata(partition_key=each) for each in keys]
            payload = build_batch(zip(messages or [pb.SingleMessageMetadata() for _ in values], values, strict=True))
        elif keys:
            metadata.partition_key = keys[0]
        if part is not None:
            metadata.uuid = f"{self._name} {sequence}"
            metadata.chunk_id, metadata.num_chunks_from_msg = part
            metadata.total_chunk_msg_size = part[1] * len(payload)
        sent = build_entry(metadata, payload), sequence, len(values)
        return await self.ask(self.session.send(*sent, producer_id=PRODUCER, transaction=transaction))

    async def produce_entry(self, entry: bytes, count: int, sequence: int, transaction: int | None = None) -> Any:
        """Send an entry of `count` messages; return the receipt, or raise Disconnected."""
        ids = {"producer_id": PRODUCER, "highest_sequence_id": sequence + count - 1}
        return await self.ask(self.session.send(entry, sequence, count, transaction=transaction, **ids))

    async def open(self, asked: Outgoing) -> Any:
        """Open a producer or a consumer; return the answer, or raise Disconnected.

        A broker refuses it that takes nothing now, or does not know yet that the connection before is gone.
        """
        answer = await self.ask(asked)
        if isinstance(answer, pb.CommandError):
            self.drop()
            raise Disconnected
        return answer

    async def last_message_id(self) -> pb.MessageIdData:
        """Ask what the last message is that the consumer's partition has; raise Disconnected."""
        asked = self.session.request(pb.CommandGetLastMessageId(consumer_id=CONSUMER))
        found: pb.MessageIdData = (await self.ask(asked)).last_message_id
        return found

    def tell(self, told: Outgoing) -> None:
        """Send what wants no answer; nobody hears it where there is no connection."""
        if self._link is not None:
            self._link.send(told.data)

    async def back_off(self) -> None:
        """Wait a little."""
        await asyncio.sleep(self._chance.uniform(*BACKOFF_SECONDS))

    async def ask(self, asked: Outgoing) -> Any:
        """Send something, and return its answer; raise Disconnected."""
        try:
            link = self._connected()
        except Refused:
            raise Disconnected from None
        future: asyncio.Future[Any] = self._loop.create_future()
        self._waiting[asked.key] = future
        link.send(asked.data)
        timer = self._loop.call_later(REQUEST_SECONDS, self.drop)
        answer = await future
        timer.cancel()
        if isinstance(answer, Disconnected):
            raise answer
        if error_of(answer) in LATER:
            self.drop()
            raise Disconnected
        return answer

    def _connected(self) -> Link:
        if self._link is None:
            self._link = self._network.connect_to_pulsar(self._name, self._received, self.drop)
            self._link.send(self.session.connect().data)
        return self._link

    def _received(self, data: bytes) -> None:
        for each in self.session.receive_data(data):
            self._take(each)

    def _take(self, received: Incoming) -> None:
        if isinstance(received.command, pb.CommandMessage):
            assert received.entry is not None
            self.pushed += _messages(received.command, received.entry)
        elif isinstance(received.command, pb.CommandCloseConsumer | pb.CommandCloseProducer):
            self.drop()
        elif received.reply:
            self.tell(Outgoing(received.reply))
        elif (future := self._waiting.pop(received.key, None)) is not None and not future.done():
            future.set_result(received.command)

    def drop(self) -> None:
        """Give the connection up, and what was pushed over it."""
        link, self._link = self._link, None
        if link is not None:
            link.close()
        self.pushed.clear()
        waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            if not future.done():
                future.set_result(Disconnected())


def _messages(command: pb.CommandMessage, entry: memoryview) -> list[Pushed]:
    """Return the messages of an entry that its ack set leaves."""
    parsed = parse_entry(entry)
    left = command.ack_set[0] if command.ack_set else -1
    return [
        Pushed(command.message_id, index, parsed.message_count, metadata, payload, command.redelivery_count)
        for index, metadata, payload in messages_of(parsed)
        if left >> index & 1
    ]
