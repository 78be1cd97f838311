"""Connections between clients and the broker, with the faults of a network.

The fault model:
- bytes of one direction arrive in order, cut anywhere, each piece as late as the dice say;
- a connection may break: what is on its way to the broker may still arrive and be acted on (an answer nobody hears), or
  be lost with what is on its way back;
- a request may arrive once more, or late, on a connection of its own: bytes of a connection that its client has given
  up long ago (`late_requests.py` says which may);
- a broker that is down refuses connections; one that dies breaks all that it has.

Owns no frame: what a request is, clients and `late_requests.py` know.
"""

import asyncio
import random
import zlib
from collections.abc import Callable, Iterable
from typing import Any

from exacta.front.connection import FramedConnection
from exacta.front.identity import Identity
from exacta.security.first_user import principal_of
from simulation.broker import Broker
from simulation.loop import SimulatedLoop
from simulation.process import Process
from simulation.trace import Trace

USUAL_SECONDS = (0.0001, 0.002)
BETWEEN_SECONDS = 1e-6


class Refused(Exception):
    """Nobody listens."""


class Network:
    """All connections of one world. Pieces are slow in a share of the cases, and at others their connection breaks."""

    def __init__(self, loop: SimulatedLoop, trace: Trace, chance: random.Random, broker: Broker) -> None:
        self.slow_share = 0.0
        self.slow_seconds = 0.0
        self.cut_share = 0.0
        """The share of pieces at which their connection breaks."""
        self.open: dict[int, Link] = {}
        self._loop = loop
        self._trace = trace
        self._chance = chance
        self._broker = broker
        self._count = 0

    def connect(self, host: str, on_data: Callable[[bytes], None], on_lost: Callable[[], None]) -> "Link":
        """Connect a client to the broker; raise Refused."""
        return self._connected(self._broker.accept(), host, on_data, on_lost)

    def connect_to_pulsar(self, host: str, on_data: Callable[[bytes], None], on_lost: Callable[[], None]) -> "Link":
        """Connect a Pulsar client to the broker; raise Refused."""
        return self._connected(self._broker.accept_pulsar(), host, on_data, on_lost)

    def _connected(
        self,
        accepted: tuple[Process, FramedConnection] | None,
        host: str,
        on_data: Callable[[bytes], None],
        on_lost: Callable[[], None],
    ) -> "Link":
        if accepted is None:
            raise Refused
        process, protocol = accepted
        self._count += 1
        link = Link(self, self._count, host, on_data, on_lost, process, protocol)
        self.open[link.number] = link
        protocol.identify = lambda _: Identity(principal_of(host))  # as if each host had logged in
        process.run(protocol.connection_made, link.transport)
        return link

    def cut(self, link: "Link") -> None:
        """Break a connection: before the broker gets what is on its way, or after it, and before the client hears."""
        how = self._chance.choice(["before", "after"])
        self._trace.fault(f"connection lost {how} the broker acted", link.number)
        link.cut(reaches_broker=how == "after")

    def carry(self, link: "Link", data: bytes, way: "Way", deliver: Callable[[bytes], None]) -> None:
        """Let bytes arrive, in pieces."""
        chance = self._chance
        while data:
            size = len(data) if chance.random() < 0.7 else chance.randint(1, len(data))
            piece, data = data[:size], data[size:]
            seconds = chance.uniform(*USUAL_SECONDS)
            if self.slow_share and chance.random() < self.slow_share:
                self._trace.faults["delay"] += 1
                seconds += chance.uniform(0.0, self.slow_seconds)
            # Later than the piece before, for timers of one time have no order.
            way.arrives_at = max(way.arrives_at + BETWEEN_SECONDS, self._loop.time() + seconds)
            self._loop.call_at(way.arrives_at, deliver, piece)
        if self.cut_share and chance.random() < self.cut_share:
            self._loop.call_later(chance.uniform(0.0, 0.003), self._cut_if_open, link)

    def _cut_if_open(self, link: "Link") -> None:
        if link.number in self.open:
            self.cut(link)

    def note(self, link: "Link", way: str, data: bytes) -> None:
        """Trace what arrives."""
        self._trace.note(way, link.number, len(data), zlib.crc32(data))


class Way:
    """One direction of a connection: no byte overtakes another."""

    def __init__(self) -> None:
        self.arrives_at = 0.0


class Link:
    """One connection: the client's end of it, and between the two."""

    def __init__(
        self,
        network: Network,
        number: int,
        host: str,
        on_data: Callable[[bytes], None],
        on_lost: Callable[[], None],
        process: Process,
        protocol: FramedConnection,
    ) -> None:
        self.number = number
        self.process = process
        self.protocol = protocol
        self.transport = ServerTransport(self, host)
        self._network = network
        self._on_data = on_data
        self._on_lost = on_lost
        self._to_broker = Way()
        self._to_client = Way()
        self.lost = False
        """True if something that was sent did not reach the broker."""
        self._client_hears = True
        self._broker_hears = True

    # --- the client's side --------------------------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        """Send to the broker."""
        self._network.carry(self, data, self._to_broker, self._arrive)

    def arrives_in(self) -> float:
        """Return the seconds in which all that was sent has arrived."""
        return self._to_broker.arrives_at - self._network._loop.time() + BETWEEN_SECONDS

    def close(self) -> None:
        """The client has had enough: what it has sent may still arrive."""
        if self._client_hears:
            self._client_hears = False
            self._network.open.pop(self.number, None)
            self._network._loop.call_later(0.05, self._end_broker)

    def cut(self, *, reaches_broker: bool) -> None:
        """Break in the middle."""
        self._network.open.pop(self.number, None)
        if not reaches_broker:
            self._broker_hears = False
            self.lost = True
        heard, self._client_hears = self._client_hears, False
        self._network._loop.call_later(0.05, self._end_broker)
        if heard:
            self._on_lost()

    def _arrive(self, data: bytes) -> None:
        if self._broker_hears and not self.transport.is_closing():
            self._network.note(self, "request", data)
            self.transport.receive(data)

    def _end_broker(self) -> None:
        self.lost = self.lost or self.arrives_in() > 0
        self._broker_hears = False
        self.transport.abort()

    # --- the broker's side --------------------------------------------------------------------------------------------

    def answer(self, data: bytes) -> None:
        """Send to the client."""
        self._network.carry(self, data, self._to_client, self._deliver)

    def _deliver(self, data: bytes) -> None:
        if self._client_hears:
            self._network.note(self, "answer", data)
            self._on_data(data)

    def ended_by_broker(self) -> None:
        """Tell the client, behind what is on its way to it."""
        loop = self._network._loop
        loop.call_at(max(self._to_client.arrives_at, loop.time()) + BETWEEN_SECONDS, self._lost)

    def _lost(self) -> None:
        self._network.open.pop(self.number, None)
        if self._client_hears:
            self._client_hears = False
            self._on_lost()


class ServerTransport(asyncio.Transport):
    """The broker's end of a connection."""

    def __init__(self, link: Link, host: str) -> None:
        super().__init__({"peername": (host, 40_000 + link.number % 20_000), "sockname": ("broker", 9092)})
        self._link = link
        self._closing = False
        self._paused = False
        self._held: list[bytes] = []

    def receive(self, data: bytes) -> None:
        """Hand bytes to the broker, unless it does not read."""
        if self._paused:
            self._held.append(data)
        else:
            self._link.process.run(self._link.protocol.data_received, data)

    def pause_reading(self) -> None:
        """See `asyncio.ReadTransport`."""
        self._paused = True

    def resume_reading(self) -> None:
        """See `asyncio.ReadTransport`."""
        self._paused = False
        if self._held:
            held, self._held = b"".join(self._held), []
            self._link.process.call_soon(self.receive, held)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """The limits are not used: everything that is written is on its way at once."""

    def write(self, data: Any) -> None:
        """See `asyncio.WriteTransport`."""
        if not self._closing and self._link.process.alive:
            self._link.answer(bytes(data))

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        """See `asyncio.WriteTransport`."""
        self.write(b"".join(list_of_data))

    def is_closing(self) -> bool:
        """See `asyncio.BaseTransport`."""
        return self._closing

    def close(self) -> None:
        """See `asyncio.BaseTransport`."""
        if not self._closing:
            self._closing = True
            self._link.process.call_soon(self._link.protocol.connection_lost, None)
            self._link.ended_by_broker()

    def abort(self) -> None:
        """See `asyncio.WriteTransport`."""
        self.close()
