"""A broker in memory whose event loop is turned by hand, and clients whose sockets can be looked into.

Every order of events can be had, time is virtual, and what lies in a socket is counted, not guessed.
"""

import asyncio
import struct
from collections.abc import Callable, Iterable
from typing import Any

from exacta.adapters.memory import MemoryJournal, MemoryStorage
from exacta.config.options import configure
from exacta.kafka.connection import Connection
from exacta.protocol.kafka.apis import API
from exacta.protocol.kafka.codec import decode_response, encode_request
from exacta.protocol.kafka.schema import Message
from exacta.server.assembly import assemble_broker, assemble_engine
from tests.engine.rig import ManualLoop


class Loop(ManualLoop):
    """As connections see it."""

    def time(self) -> float:
        return self.now_ms / 1000


class Client(asyncio.Transport):
    """One connection, both ends of it: what it sends waits until the broker reads; what it is sent, until it reads."""

    def __init__(self, broker: "Broker", reads: bool) -> None:
        super().__init__()
        self.broker = broker
        self.reads = reads
        self.closed = False
        self.received = bytearray()
        self.unsent = bytearray()
        """On its way to the broker, which has not read it."""
        self.pieces: list[int] = []
        """What the broker has read of it, each time."""
        self.untaken = bytearray()
        """In the broker's memory, since the peer does not read."""
        self._loop = broker.loop
        self._high = self._low = 0
        self._reading_paused = self._writing_paused = self._pumping = False
        self._asked: dict[int, tuple[Message, int]] = {}
        self._count = 0
        self.connection = Connection(
            broker.context,
            broker.loop,
            broker.connections.append,
            broker.connections.remove,  # type: ignore[arg-type]
        )
        self.connection.connection_made(self)

    # --- what a test does ---------------------------------------------------------------------------------------------

    def send_bytes(self, data: bytes) -> None:
        """Send; the broker reads in turns of its loop."""
        self.unsent += data
        self._pump_soon()

    def frame(self, message: Message, version: int) -> bytes:
        """Return the next request as bytes."""
        self._count += 1
        self._asked[self._count] = (message, version)
        return b"".join(encode_request(message, version, self._count, "c"))

    def send(self, message: Message, version: int) -> int:
        """Send a request; return its correlation id."""
        self.send_bytes(self.frame(message, version))
        return self._count

    def read(self, size: int | None = None) -> None:
        """Take bytes that wait: all, or so many."""
        size = len(self.untaken) if size is None else size
        self.received += self.untaken[:size]
        del self.untaken[:size]
        if self._writing_paused and len(self.untaken) <= self._low:
            self._writing_paused = False
            self.connection.resume_writing()

    def answers(self) -> list[tuple[int, Any]]:
        """Return correlation ids and answers that have come since the last call."""
        found = []
        while len(self.received) >= 4:
            size = struct.unpack_from(">i", self.received)[0]
            if len(self.received) < 4 + size:
                break
            frame = bytes(self.received[4 : 4 + size])
            del self.received[: 4 + size]
            message, version = self._asked[struct.unpack_from(">i", frame)[0]]
            found.append(decode_response(API[message.SCHEMA.key].response, version, frame))
        return found

    def vanish(self) -> None:
        """Be gone."""
        self.abort()

    # --- the broker's end: a transport --------------------------------------------------------------------------------

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("10.0.0.1", 1) if name.endswith("name") else default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        assert high is not None
        self._high, self._low = high, high // 4

    def get_write_buffer_size(self) -> int:
        return len(self.untaken)

    def pause_reading(self) -> None:
        assert not self._reading_paused, "reading is paused twice"
        self._reading_paused = True

    def resume_reading(self) -> None:
        assert self._reading_paused, "reading goes on twice"
        self._reading_paused = False
        self._pump_soon()

    def write(self, data: Any) -> None:
        self.writelines([data])

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        assert not self.closed
        self.untaken += b"".join(list_of_data)
        if self.reads:
            self.read()
        if len(self.untaken) > self._high and not self._writing_paused:
            self._writing_paused = True
            self.connection.pause_writing()

    def close(self) -> None:
        self.abort()

    def abort(self) -> None:
        if not self.closed:
            self.closed = True
            self._loop.call_soon(self.connection.connection_lost, None)

    def is_closing(self) -> bool:
        return self.closed

    def _pump_soon(self) -> None:
        if not self._pumping and self.unsent and not self._reading_paused:
            self._pumping = True
            self._loop.call_soon(self._pump)

    def _pump(self) -> None:
        self._pumping = False
        if self.closed or self._reading_paused:
            return
        buffer = self.connection.get_buffer(-1)
        size = min(len(buffer), len(self.unsent))
        buffer[:size] = self.unsent[:size]
        del self.unsent[:size]
        self.pieces.append(size)
        self.connection.buffer_updated(size)
        self._pump_soon()


class Broker:
    """Its budgets are looked at after every turn: the most that they held is kept."""

    def __init__(self, **options: Any) -> None:
        self.loop = Loop()
        self.held_syncs: list[Callable[[], Any]] | None = None
        """Not None: the disk takes its time, and what it would call back waits here."""
        configuration = configure(options)
        self.engine = assemble_engine(
            MemoryJournal(MemoryStorage(), self._synced),
            self.loop,
            clock=lambda: self.loop.now_ms,
            limits=configuration.limits(),
            on_failure=lambda failure: None,
        )
        self.context = assemble_broker(
            self.engine, configuration, cluster_id="c", advertised_host="h", advertised_port=9092
        )
        self.connections: list[Connection] = []
        self.clients: list[Client] = []
        self.requests = self.context.memory.requests
        self.answers = self.context.memory.answers
        self.most_requests = self.most_answers = self.most_untaken = 0

    def connect(self, *, reads: bool = True) -> Client:
        self.clients.append(Client(self, reads))
        return self.clients[-1]

    def _synced(self, callback: Callable[..., Any], *args: Any) -> None:
        if self.held_syncs is None:
            self.loop.call_soon(callback, *args)
        else:
            self.held_syncs.append(lambda: callback(*args))

    def hold_syncs(self) -> None:
        """Let no sync end, until `release_syncs`."""
        self.held_syncs = []

    def release_syncs(self) -> None:
        """Let the syncs end that have been held, and those that come."""
        held, self.held_syncs = self.held_syncs or [], None
        self.loop.ready.extend(held)

    def turn(self) -> None:
        """Let the loop turn once."""
        self.loop.turn()
        self.most_requests = max(self.most_requests, self.requests.used_bytes)
        self.most_answers = max(self.most_answers, self.answers.used_bytes)
        self.most_untaken = max(self.most_untaken, sum(len(each.untaken) for each in self.clients if not each.closed))

    def settle(self, until: Callable[[], bool] = lambda: False) -> None:
        """Let the loop turn until nothing happens any more."""
        while self.loop.ready and not until():
            self.turn()

    def pass_time(self, ms: int) -> None:
        self.loop.pass_time(ms)

    def ask(self, client: Client, message: Message, version: int) -> Any:
        """Send a request and return its answer, which must come by itself."""
        sent = client.send(message, version)
        self.settle()
        [(correlation_id, answer)] = client.answers()
        assert correlation_id == sent
        return answer

    def end(self) -> None:
        """Let all clients vanish; nothing may be counted any more, nor wait."""
        for client in self.clients:
            client.vanish()
        self.settle()
        self.pass_time(10_000)
        for budget in (self.requests, self.answers):
            assert (budget.used_bytes, len(budget.line), budget.let_on) == (0, 0, None), budget.option
            assert not budget._watched
        assert not self.connections
        assert not self.engine._fetcher._by_key
