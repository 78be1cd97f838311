"""A broker in memory behind a real socket, and a client that speaks in frames: what the tests of the front share."""

import asyncio
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import crc32c

from exacta.adapters.memory import MemoryJournal, MemoryStorage
from exacta.config.options import configure
from exacta.engine.engine import Engine
from exacta.front.broker import Broker
from exacta.front.doors import Door, Endpoint
from exacta.front.revocation import Revocation
from exacta.kafka.connection import KafkaClientConnection
from exacta.kafka.shared import KafkaShared
from exacta.protocol.kafka.apis import API
from exacta.protocol.kafka.codec import decode_response, encode_request
from exacta.protocol.kafka.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from exacta.protocol.kafka.records import iter_batches
from exacta.protocol.kafka.schema import Message
from exacta.security.logins import Logins
from exacta.server.assembly import assemble_broker, assemble_engine
from exacta.server.event_loop import new_event_loop
from simulation.clients.batches import record, values_of

T = TypeVar("T")
ANSWER_SECONDS = 10


class Wire:
    """One connection of a client."""

    def __init__(
        self, address: tuple[str, int], client_id: str = "tester", source: tuple[str, int] | None = None
    ) -> None:
        self.client_id = client_id
        self.socket = socket.create_connection(address, timeout=ANSWER_SECONDS, source_address=source)
        self._correlation_id = 0

    def send(self, message: Message, version: int) -> int:
        """Send a request; return its correlation id."""
        self._correlation_id += 1
        buffers = encode_request(message, version, self._correlation_id, self.client_id)
        self.socket.sendall(b"".join(buffers))
        return self._correlation_id

    def receive_frame(self) -> bytes:
        """Read one frame, without its size."""
        (size,) = struct.unpack(">i", self._read(4))
        return self._read(size)

    def receive(self, of: Message, version: int) -> tuple[int, Any]:
        """Read the response to a request of this class; return correlation id and message."""
        return decode_response(API[of.SCHEMA.key].response, version, self.receive_frame())

    def ask(self, message: Message, version: int) -> Any:
        """Send a request and return its response."""
        sent = self.send(message, version)
        correlation_id, response = self.receive(message, version)
        assert correlation_id == sent
        return response

    def is_closed(self) -> bool:
        """Wait until the other side closes; anything that comes before is an error of the test."""
        try:
            rest = self.socket.recv(1)
        except ConnectionResetError:
            return True
        assert rest == b"", "an answer came instead of the end"
        return True

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            chunk = self.socket.recv(size - len(data))
            if not chunk:
                raise ConnectionError("the connection was closed")
            data += chunk
        return bytes(data)


class Front:
    """A broker in memory: `storage` is its disk."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop | None = None,
        *,
        storage: MemoryStorage | None = None,
        logins: Callable[[], Logins] | None = None,
        **options: Any,
    ) -> None:
        self.storage = storage or MemoryStorage()
        self.address = ("", 0)
        self.engine: Engine
        self.context: Broker
        self.kafka: KafkaShared
        self.connections: set[KafkaClientConnection] = set()
        self._configuration = configure(options)
        self._logins = logins
        self.loop = loop or new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._wires: list[Wire] = []

    def connect(self) -> Wire:
        """Return a new connection."""
        wire = Wire(self.address)
        self._wires.append(wire)
        return wire

    def on_loop(self, call: Callable[[], T]) -> T:
        """Run a call on the broker's thread and return its result."""

        async def run() -> T:
            return call()

        return asyncio.run_coroutine_threadsafe(run(), self.loop).result(ANSWER_SECONDS)

    def __enter__(self) -> "Front":
        self._thread.start()
        assert self._ready.wait(ANSWER_SECONDS)
        return self

    def __exit__(self, *exc: object) -> None:
        for wire in self._wires:
            wire.socket.close()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        listener = self.loop.run_until_complete(self._start())
        self._ready.set()
        self.loop.run_forever()
        listener.close()
        for connection in list(self.connections):
            connection.abort()
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()

    async def _start(self) -> asyncio.Server:
        self.engine = assemble_engine(
            MemoryJournal(self.storage, self.loop.call_soon),
            self.loop,
            clock=lambda: time.time_ns() // 1_000_000,
            limits=self._configuration.limits(),
            on_failure=lambda failure: self.loop.stop(),
        )
        listener = await self.loop.create_server(self._connection, "127.0.0.1", 0)
        self.address = listener.sockets[0].getsockname()
        self.context = assemble_broker(
            self.engine,
            self._configuration,
            cluster_id="a-cluster",
            logins=None if self._logins is None else self._logins(),
        )
        self.kafka = KafkaShared(self.context)
        self.revocation = Revocation(self.context, self.connections)
        return listener

    def _connection(self) -> KafkaClientConnection:
        door = Door(front="kafka", name="PLAINTEXT", endpoint=Endpoint(*self.address), login=self._logins is not None)
        return KafkaClientConnection(self.kafka, door, self.loop, self._let_in, self._forget)

    def _forget(self, connection: KafkaClientConnection) -> None:
        self.connections.discard(connection)
        self.revocation.left(connection)

    def _let_in(self, connection: KafkaClientConnection) -> bool:
        self.connections.add(connection)
        return True


@contextmanager
def front(
    loop: asyncio.AbstractEventLoop | None = None,
    *,
    storage: MemoryStorage | None = None,
    logins: Callable[[], Logins] | None = None,
    **options: Any,
) -> Iterator[Front]:
    """Run a broker in memory, on the loop that servers use unless another is given; with `logins` clients log in."""
    with Front(loop, storage=storage, logins=logins, **options) as running:
        yield running


def batch(
    *values: bytes,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    timestamp_ms: int = 1_000,
    timestamps_ms: Sequence[int] = (),
) -> bytes:
    """Build a record batch, as a producer does; its records are of one time, or of a time each."""
    times = timestamps_ms or [timestamp_ms] * len(values)
    records = b"".join(
        record(delta, value, time_ms - times[0])
        for delta, (value, time_ms) in enumerate(zip(values, times, strict=True))
    )
    covered = (
        struct.pack(
            ">hiqqqhii",
            0x10 if transactional else 0,
            len(values) - 1,
            times[0],
            max(times),
            producer_id,
            producer_epoch,
            base_sequence,
            len(values),
        )
        + records
    )
    after_length = struct.pack(">ibI", -1, 2, crc32c.crc32c(covered)) + covered
    return struct.pack(">qi", 0, len(after_length)) + after_length


def produce(wire: Wire, records: bytes, topic: str = "t", partition: int = 0, version: int = 11) -> Any:
    """Append one batch outside any transaction; return the partition's answer."""
    data = PartitionProduceData(index=partition, records=records)
    request = ProduceRequest(acks=-1, topic_data=[TopicProduceData(name=topic, partition_data=[data])])
    return wire.ask(request, version).responses[0].partition_responses[0]


def values_in(records: Any) -> list[bytes]:
    """Return the values of the records in batches made by `batch`; control batches are left out."""
    return [
        value
        for header, view in iter_batches(bytes(records))
        if not header.control
        for value in values_of(view, header.record_count)
    ]
