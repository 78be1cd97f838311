"""A Pulsar client over a socket, and a look into the log behind it: what the tests of the front share."""

import asyncio
import socket
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
from exacta.protocol.pulsar.commands import PROTOCOL_VERSION
from exacta.protocol.pulsar.entries import Entry
from exacta.protocol.pulsar.session import Incoming, Outgoing, Session, entry_of_values
from exacta.records.pulsar_entries import entry_of
from exacta.server.assembly import assemble_engine
from exacta.server.identity import JOURNAL_DIRECTORY

ANSWER_SECONDS = 20
PUBLISH_TIME_MS = 1_700_000_000_000


class Wire:
    """One connection; it has said CONNECT unless it is told not to."""

    def __init__(self, url: str, *, connects: bool = True, version: int = PROTOCOL_VERSION) -> None:
        host, _, port = url.removeprefix("pulsar://").rpartition(":")
        self.session = Session("tester", version)
        self.socket = socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS)
        self._received: deque[Incoming] = deque()
        if connects:
            try:
                self.connected = self.ask(self.session.connect())
            except OSError:  # the broker is being killed
                self.socket.close()
                raise

    def close(self) -> None:
        self.socket.close()

    def send(self, *commands: Message) -> None:
        """Send commands in one write, with the request ids that they have."""
        self.send_bytes(b"".join(self.session.tell(each).data for each in commands))

    def send_bytes(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive_next(self) -> Incoming:
        """Return what comes next."""
        while not self._received:
            data = self.socket.recv(1 << 16)
            if not data:
                raise ConnectionError("the connection was closed")
            self._received.extend(self.session.receive_data(data))
        return self._received.popleft()

    def receive(self) -> Any:
        """Return the next command of the broker."""
        return self.receive_next().command

    def ask(self, asked: Message | Outgoing) -> Any:
        """Send something, a command with the request id that it has; return the next command of the broker."""
        self.send_bytes((asked if isinstance(asked, Outgoing) else self.session.tell(asked)).data)
        return self.receive()

    def request(self, command: Message) -> Any:
        """Give a command the next request id, and send it; return the answer."""
        return self.ask(self.session.request(command))

    def is_closed(self) -> bool:
        """Wait until the other side closes; anything that comes before is an error of the test."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    # --- commands, of which each returns the answer, or what came instead ---------------------------------------------

    def open_producer(self, topic: str, number: int = 0, name: str = "", **fields: Any) -> Any:
        return self.ask(self.session.open_producer(topic, number, name, **fields))

    def lookup(self, topic: str) -> Any:
        return self.request(pb.CommandLookupTopic(topic=topic))

    def subscribe(
        self, topic: str, subscription: str = "s", number: int = 1, kind: Any = pb.CommandSubscribe.Exclusive
    ) -> Any:
        return self.ask(self.session.subscribe(topic, subscription, number, kind))

    def permit(self, permits: int = 2**31 - 1, number: int = 1) -> None:
        self.send_bytes(self.session.flow(number, permits).data)

    def acknowledge(self, *ids: pb.MessageIdData, number: int = 1, **how: Any) -> Any:
        return self.ask(self.session.acknowledge(number, ids, **how))

    def close_consumer(self, number: int = 1) -> Any:
        return self.request(pb.CommandCloseConsumer(consumer_id=number))

    def begin(self, timeout_ms: int = 60_000) -> Any:
        return self.ask(self.session.begin(timeout_ms))

    def end(self, transaction: int, action: "pb.TxnAction") -> Any:
        return self.ask(self.session.end(transaction, commit=action == pb.COMMIT))

    def add_partition(self, transaction: int, *topics: str) -> Any:
        return self.ask(self.session.add_partitions(transaction, topics))

    def produce(self, *values: bytes, sequence: int = 0, number: int = 0, transaction: int | None = None) -> Any:
        """Send one entry, a batch where there are several values."""
        entry = entry_of_values(values, sequence, PUBLISH_TIME_MS, producer="p")
        return self.ask(self.session.send(entry, sequence, len(values), producer_id=number, transaction=transaction))


# --- the real client --------------------------------------------------------------------------------------------------


@contextmanager
def client(url: str, **options: Any) -> Iterator[pulsar.Client]:
    """Run Pulsar's own client for Python, which logs errors only. In the end its consumers are closed, and then itself.

    Consumer and client refer to each other as long as the consumer is open. If the client is closed before, both fall
    to the garbage collector, which takes C++ objects with threads and sockets apart in whichever thread it runs.
    """
    errors = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    opened = pulsar.Client(url, **{"operation_timeout_seconds": ANSWER_SECONDS, "logger": errors, **options})
    try:
        yield opened
    finally:
        for each in [*opened._consumers]:
            with suppress(pulsar.PulsarException):  # the broker has closed it, or is gone
                each.close()
        opened._consumers.clear()
        with suppress(pulsar.AlreadyClosed):  # one of its producers was fenced
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
