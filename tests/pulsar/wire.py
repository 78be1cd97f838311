"""A client of Pulsar's that speaks in frames, and a look into the log behind it: what the tests of the front share."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pulsar
from google.protobuf.message import Message

import exacta
from exacta.adapters.local import LocalJournal
from exacta.core.values.limits import Limits
from exacta.engine.engine import Engine
from exacta.engine.schema import SCHEMA
from exacta.ports.log import FetchPartition, FetchRequest, FetchResult
from exacta.protocol.kafka.records import MAGIC, parse_batch_header
from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.commands import PROTOCOL_VERSION, unwrapped
from exacta.protocol.pulsar.entries import Entry, build_batch, build_entry
from exacta.protocol.pulsar.frames import SIZE_BYTES, Frame, build_entry_frame, build_frame, frame_at, parse_frame
from exacta.records.pulsar_entries import entry_of
from exacta.server.assembly import assemble_engine
from exacta.server.identity import JOURNAL_DIRECTORY

ANSWER_SECONDS = 20


class Wire:
    """One connection; it has said CONNECT unless it is told not to."""

    def __init__(self, url: str, *, connects: bool = True, version: int = PROTOCOL_VERSION) -> None:
        host, _, port = url.removeprefix("pulsar://").rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS)
        self._received = b""
        self._last_request = 0
        if connects:
            try:
                self.connected = self.ask(pb.CommandConnect(client_version="tester", protocol_version=version))
            except OSError:  # the broker is being killed
                self.socket.close()
                raise

    def close(self) -> None:
        self.socket.close()

    def next_request(self) -> int:
        self._last_request += 1
        return self._last_request

    def send(self, *commands: Message) -> None:
        """Send commands in one write."""
        self.send_bytes(b"".join(map(build_frame, commands)))

    def send_bytes(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive_frame(self) -> Frame:
        """Return the next frame of the broker."""
        while (frame := frame_at(self._received)) is None:
            data = self.socket.recv(1 << 16)
            if not data:
                raise ConnectionError("the connection was closed")
            self._received += data
        self._received = self._received[SIZE_BYTES + len(frame) :]
        return parse_frame(bytes(frame))

    def receive(self) -> Any:
        """Return the next command of the broker."""
        return unwrapped(self.receive_frame().command)

    def ask(self, command: Message) -> Any:
        self.send(command)
        return self.receive()

    def is_closed(self) -> bool:
        """Wait until the other side closes; anything that comes before is an error of the test."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    # --- commands with their ids --------------------------------------------------------------------------------------

    def open_producer(self, topic: str, number: int = 0, name: str = "", **fields: Any) -> Any:
        """Open a producer; return the answer. One without a name has one made up, as clients ask for it."""
        fields.setdefault("user_provided_producer_name", bool(name))
        return self.ask(
            pb.CommandProducer(
                topic=topic, producer_id=number, request_id=self.next_request(), producer_name=name, **fields
            )
        )

    def lookup(self, topic: str) -> Any:
        """Ask which broker serves a topic; return the answer."""
        return self.ask(pb.CommandLookupTopic(topic=topic, request_id=self.next_request()))

    def begin(self, timeout_ms: int = 60_000) -> Any:
        """Begin a transaction; return the answer."""
        return self.ask(pb.CommandNewTxn(request_id=self.next_request(), txn_ttl_millis=timeout_ms, tc_id=0))

    def end(self, least: int, action: "pb.TxnAction", most: int = 0) -> Any:
        """End a transaction; return the answer."""
        return self.ask(
            pb.CommandEndTxn(
                request_id=self.next_request(), txnid_least_bits=least, txnid_most_bits=most, txn_action=action
            )
        )

    def add_partition(self, least: int, *topics: str) -> Any:
        """Add topics to a transaction; return the answer."""
        return self.ask(
            pb.CommandAddPartitionToTxn(
                request_id=self.next_request(), txnid_least_bits=least, txnid_most_bits=0, partitions=topics
            )
        )

    def produce(self, *values: bytes, sequence: int = 0, number: int = 0, transaction: int | None = None) -> Any:
        """Send one entry, a batch where there are several values; return the receipt, or what came instead."""
        self.send_bytes(send_frame(*values, sequence=sequence, number=number, transaction=transaction))
        return self.receive()


def send_frame(*values: bytes, sequence: int = 0, number: int = 0, transaction: int | None = None) -> bytes:
    """Build the frame of a SEND; the values have sequence ids from `sequence` on."""
    metadata = pb.MessageMetadata(producer_name="p", sequence_id=sequence, publish_time=1_700_000_000_000)
    command = pb.CommandSend(producer_id=number, sequence_id=sequence, num_messages=len(values))
    payload = values[0]
    if len(values) > 1:
        metadata.num_messages_in_batch = len(values)
        metadata.highest_sequence_id = command.highest_sequence_id = sequence + len(values) - 1
        payload = build_batch(
            (pb.SingleMessageMetadata(sequence_id=sequence + index), value) for index, value in enumerate(values)
        )
    if transaction is not None:
        command.txnid_least_bits, command.txnid_most_bits = transaction, 0
    return b"".join(map(bytes, build_entry_frame(command, build_entry(metadata, payload))))


# --- the real client --------------------------------------------------------------------------------------------------


@contextmanager
def client(url: str) -> Iterator[pulsar.Client]:
    """Run Pulsar's own client for Python, which logs errors only."""
    opened = pulsar.Client(url, operation_timeout_seconds=20, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    try:
        yield opened
    finally:
        opened.close()


# --- the log ----------------------------------------------------------------------------------------------------------


class Stored:
    """The entries of one partition with their offsets; None stands for a batch of Kafka."""

    def __init__(self, batches: list[bytes], aborted: set[int]) -> None:
        self.headers = [parse_batch_header(batch) for batch in batches]
        self.entries: list[tuple[int, Entry]] = [
            (header.base_offset, entry_of(batch))
            for header, batch in zip(self.headers, batches, strict=True)
            if header.magic != MAGIC
        ]
        self.aborted = aborted

    def payloads(self) -> list[bytes]:
        """Return the payloads of all entries, as they are."""
        return [bytes(entry.payload) for _, entry in self.entries]


def stored(data: Path, topic: str, partition: int = 0, *, committed: bool = False) -> Stored:
    """Read a partition from the files of a broker that is not running."""

    async def read() -> FetchResult:
        loop = asyncio.get_running_loop()
        journal = LocalJournal.open(data / JOURNAL_DIRECTORY, loop.call_soon_threadsafe, schema=SCHEMA)
        try:
            engine: Engine = assemble_engine(
                journal, loop, clock=lambda: 1_800_000_000_000, limits=Limits(), on_failure=lambda failed: None
            )
            found: asyncio.Future[FetchResult] = loop.create_future()
            wanted = FetchPartition(topic, partition, 0, 1 << 30)
            request = FetchRequest([wanted], 0, 0, 1 << 30, committed)
            engine.fetch(request, lambda results: found.set_result(results[0]))
            return await found
        finally:
            journal.close()

    result = asyncio.run(read())
    assert result.rejection is None, result.rejection
    data_read = b"".join(map(bytes, result.records))
    batches, at = [], 0
    while at < len(data_read):
        size = parse_batch_header(data_read, at).size
        batches.append(data_read[at : at + size])
        at += size
    return Stored(batches, {each.producer_id for each in result.aborted})


def running(**options: Any) -> exacta.Broker:
    """Return a broker that serves Pulsar's clients."""
    return exacta.Broker(pulsar=True, **options)
