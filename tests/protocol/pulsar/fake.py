"""A broker in memory that is just enough for a real client to produce and to consume.

It is built on the package under test, so that a client judges the bytes that the package makes, and the package reads
bytes that the client has made.
"""

import asyncio

from google.protobuf.message import Message

from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.commands import PROTOCOL_VERSION, unwrapped
from exacta.protocol.pulsar.entries import Entry, check_entry, checksum_head, parse_entry
from exacta.protocol.pulsar.frames import (
    LARGEST_MESSAGE,
    SIZE_BYTES,
    Frame,
    build_entry_frame,
    build_frame,
    frame_at,
    parse_frame,
)
from exacta.protocol.pulsar.message_ids import message_id
from exacta.protocol.pulsar.topic_names import TopicName, parse_topic_name

LEDGER_ID = 7


class Fake:
    """One topic for each name, and one consumer at a time on each."""

    def __init__(self, largest_message: int = LARGEST_MESSAGE) -> None:
        self.largest_message = largest_message
        self.entries: dict[TopicName, list[tuple[int, Entry]]] = {}
        self.acks: list[pb.CommandAck] = []
        self.frames: list[bytes] = []
        """All that clients have sent, without the total sizes."""

    async def __aenter__(self) -> str:
        """Listen; return the service's URL."""
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.url = f"pulsar://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"
        return self.url

    async def __aexit__(self, *_: object) -> None:
        """Listen no more."""
        self.server.close()
        await self.server.wait_closed()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        connection = Connection(self, writer)
        received = b""
        while data := await reader.read(1 << 16):
            received += data
            while (frame := frame_at(received)) is not None:
                self.frames.append(bytes(frame))
                connection.receive(parse_frame(frame))
                received = received[SIZE_BYTES + len(frame) :]
        writer.close()


class Connection:
    """The producers and consumers that one client has opened, by its own numbers."""

    def __init__(self, fake: Fake, writer: asyncio.StreamWriter) -> None:
        self.fake = fake
        self.writer = writer
        self.producers: dict[int, TopicName] = {}
        self.consumers: dict[int, TopicName] = {}
        self.sent: dict[int, int] = {}
        """How many entries each consumer was sent."""

    def answer(self, command: Message) -> None:
        self.writer.write(build_frame(command))

    def receive(self, frame: Frame) -> None:
        command = unwrapped(frame.command)
        match command:
            case pb.CommandConnect():
                version = min(command.protocol_version, PROTOCOL_VERSION)
                largest = self.fake.largest_message
                self.answer(
                    pb.CommandConnected(server_version="fake", protocol_version=version, max_message_size=largest)
                )
            case pb.CommandPartitionedTopicMetadata():
                success = pb.CommandPartitionedTopicMetadataResponse.Success
                self.answer(
                    pb.CommandPartitionedTopicMetadataResponse(
                        request_id=command.request_id, response=success, partitions=0
                    )
                )
            case pb.CommandLookupTopic():
                connect, url = pb.CommandLookupTopicResponse.Connect, self.fake.url
                self.answer(
                    pb.CommandLookupTopicResponse(
                        request_id=command.request_id, response=connect, broker_service_url=url, authoritative=True
                    )
                )
            case pb.CommandProducer():
                self.producers[command.producer_id] = parse_topic_name(command.topic)
                name = command.producer_name or f"producer-{command.producer_id}"
                self.answer(pb.CommandProducerSuccess(request_id=command.request_id, producer_name=name))
            case pb.CommandSend():
                assert frame.entry is not None
                self.keep(command, parse_entry(bytes(frame.entry)))
            case pb.CommandSubscribe():
                self.consumers[command.consumer_id] = parse_topic_name(command.topic)
                self.sent[command.consumer_id] = 0
                self.answer(pb.CommandSuccess(request_id=command.request_id))
            case pb.CommandFlow():
                self.deliver(command.consumer_id)
            case pb.CommandAck():
                self.fake.acks.append(command)
            case pb.CommandCloseProducer() | pb.CommandCloseConsumer():
                self.answer(pb.CommandSuccess(request_id=command.request_id))
            case _:
                raise AssertionError(f"the fake does not know {frame.command}")

    def keep(self, send: pb.CommandSend, entry: Entry) -> None:
        check_entry(entry, send)
        entries = self.fake.entries.setdefault(self.producers[send.producer_id], [])
        offset = entries[-1][0] + entries[-1][1].message_count if entries else 0
        entries.append((offset, entry))
        receipt = pb.CommandSendReceipt(producer_id=send.producer_id, sequence_id=send.sequence_id)
        receipt.message_id.CopyFrom(message_id(LEDGER_ID, offset))
        self.answer(receipt)
        for consumer_id in self.consumers:
            self.deliver(consumer_id)

    def deliver(self, consumer_id: int) -> None:
        entries = self.fake.entries.get(self.consumers[consumer_id], [])
        for offset, entry in entries[self.sent[consumer_id] :]:
            message = pb.CommandMessage(consumer_id=consumer_id, message_id=message_id(LEDGER_ID, offset))
            index = pb.BrokerEntryMetadata(index=offset + entry.message_count - 1)
            self.writer.writelines(
                build_entry_frame(message, checksum_head(entry.body), entry.body, broker_entry=index)
            )
        self.sent[consumer_id] = len(entries)
