"""A connection of a Pulsar client: commands out, answers and pushed messages in, and an error where nothing comes.

Owns request ids, time-outs and the queue of pushed messages. A connection that fails is given up, and so is one whose
producer or consumer the broker has closed: a client that uses it opens what it needs again.
"""

import asyncio
import random
from collections import deque
from collections.abc import Sequence
from typing import Any

from google.protobuf.message import Message

from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.commands import PROTOCOL_VERSION, unwrapped
from exacta.protocol.pulsar.entries import build_batch, build_entry, parse_entry
from exacta.protocol.pulsar.frames import SIZE_BYTES, Frame, build_entry_frame, build_frame, frame_at, parse_frame
from simulation.clients.connection import BACKOFF_SECONDS, REQUEST_SECONDS, Disconnected
from simulation.clients.messages import messages_of
from simulation.network import Link, Network, Refused

CONNECT = pb.CommandConnect(client_version="simulated", protocol_version=PROTOCOL_VERSION)
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
        self._loop = loop
        self._network = network
        self._chance = chance
        self._name = name
        self._link: Link | None = None
        self._buffer = b""
        self._last_request = 0
        self._waiting: dict[object, asyncio.Future[Any]] = {}

    @property
    def is_open(self) -> bool:
        """Return whether there is a connection, with what was opened on it."""
        return self._link is not None

    async def ask(self, command: Any) -> Any:
        """Send a command with a request id, and return its answer; raise Disconnected."""
        self._last_request += 1
        command.request_id = self._last_request
        return await self._answer_to(self._last_request, build_frame(command))

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
        command = pb.CommandSend(producer_id=PRODUCER, sequence_id=sequence, num_messages=len(values))
        payload = values[0]
        if len(values) > 1:
            metadata.num_messages_in_batch = len(values)
            command.highest_sequence_id = sequence + len(values) - 1
            messages = [pb.SingleMessageMetadata(partition_key=each) for each in keys]
            payload = build_batch(zip(messages or [pb.SingleMessageMetadata() for _ in values], values, strict=True))
        elif keys:
            metadata.partition_key = keys[0]
        if part is not None:
            metadata.uuid = f"{self._name} {sequence}"
            metadata.chunk_id, metadata.num_chunks_from_msg = part
            metadata.total_chunk_msg_size = part[1] * len(payload)
        if transaction is not None:
            command.txnid_most_bits, command.txnid_least_bits = 0, transaction
        return await self._send(command, build_entry(metadata, payload))

    async def produce_entry(self, entry: bytes, count: int, sequence: int, transaction: int | None = None) -> Any:
        """Send an entry of `count` messages; return the receipt, or raise Disconnected."""
        command = pb.CommandSend(
            producer_id=PRODUCER, sequence_id=sequence, num_messages=count, highest_sequence_id=sequence + count - 1
        )
        if transaction is not None:
            command.txnid_most_bits, command.txnid_least_bits = 0, transaction
        return await self._send(command, entry)

    async def _send(self, command: pb.CommandSend, entry: bytes) -> Any:
        frame = b"".join(map(bytes, build_entry_frame(command, entry)))
        return await self._answer_to(("sent", command.sequence_id), frame)

    def tell(self, command: Message) -> None:
        """Send a command that wants no answer; nobody hears it where there is no connection."""
        if self._link is not None:
            self._link.send(build_frame(command))

    async def back_off(self) -> None:
        """Wait a little."""
        await asyncio.sleep(self._chance.uniform(*BACKOFF_SECONDS))

    async def _answer_to(self, key: object, frame: bytes) -> Any:
        try:
            link = self._connected()
        except Refused:
            raise Disconnected from None
        future: asyncio.Future[Any] = self._loop.create_future()
        self._waiting[key] = future
        link.send(frame)
        timer = self._loop.call_later(REQUEST_SECONDS, self.drop)
        answer = await future
        timer.cancel()
        if isinstance(answer, Disconnected):
            raise answer
        if getattr(answer, "error", None) in LATER and answer.HasField("error"):
            self.drop()
            raise Disconnected
        return answer

    def _connected(self) -> Link:
        if self._link is None:
            self._buffer = b""
            self._link = self._network.connect_to_pulsar(self._name, self._received, self.drop)
            self._link.send(build_frame(CONNECT))
        return self._link

    def _received(self, data: bytes) -> None:
        self._buffer += data
        while (view := frame_at(self._buffer)) is not None:
            frame = parse_frame(bytes(view))
            self._buffer = self._buffer[SIZE_BYTES + len(view) :]
            self._take(frame, unwrapped(frame.command))

    def _take(self, frame: Frame, command: Any) -> None:
        if isinstance(command, pb.CommandMessage):
            assert frame.entry is not None
            self.pushed += _messages(command, frame.entry)
        elif isinstance(command, pb.CommandSendReceipt | pb.CommandSendError):
            self._answered(("sent", command.sequence_id), command)
        elif isinstance(command, pb.CommandCloseConsumer | pb.CommandCloseProducer):
            self.drop()
        elif isinstance(command, pb.CommandPing):
            self.tell(pb.CommandPong())
        elif not isinstance(command, pb.CommandConnected | pb.CommandActiveConsumerChange):
            self._answered(command.request_id, command)

    def _answered(self, key: object, answer: Any) -> None:
        future = self._waiting.pop(key, None)
        if future is not None and not future.done():
            future.set_result(answer)

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
