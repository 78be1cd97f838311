"""A TCP proxy before any broker of Kafka's protocol, which meets the faults that a test has armed.

It is for a broker in another process, also an Apache Kafka: the embedded one meets faults by itself. The broker must
advertise the proxy's address, so that every connection of a client comes through here. Owns the frames on their way.

Theory of operation. A connection is two pumps that copy whole frames: a size of four bytes, then this many bytes. A
request begins with API key, version and correlation id. Its answer begins with the correlation id, by which the API is
known again. A frame that is lost is swallowed, the fault's action runs, and then the connection is cut. So a client is
left in the doubt of a crash at this moment: was that request carried out or not? Everything else passes unchanged. The
proxy runs on an event loop in a thread of its own.
"""

import asyncio
import contextlib
import logging
import struct
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from exacta.protocol.kafka.apis import API
from exacta.testing.fault_commands import RequestFaults
from exacta.testing.faults import Armed, Effect, Fault, Place

logger = logging.getLogger("exacta.testing")

HOST = "127.0.0.1"

_REQUEST_HEAD = struct.Struct(">hhi")
_ANSWER_HEAD = struct.Struct(">i")


class Proxy:
    """Listens on a free port of this machine, connects every client through to `upstream`, and meets faults."""

    def __init__(self, upstream: tuple[str, int] | None = None) -> None:
        """Start to listen. `upstream` is the broker's host and port; it may be set later, before the first client."""
        self.upstream = upstream
        self._armed = Armed()
        self.faults = RequestFaults(self._armed, [api.name for api in API.values()])
        """The faults that a test asks for."""
        self._connections: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="exacta-proxy", daemon=True)
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(asyncio.start_server(self._serve, HOST, 0), self._loop).result()
        self.port: int = self._server.sockets[0].getsockname()[1]
        self.bootstrap_servers = f"{HOST}:{self.port}"

    def close(self) -> None:
        """Cut all connections and stop listening; harmless if that is done.

        Raises FaultNotMet, at last, if a fault was armed and never met.
        """
        try:
            self.faults.check()
        finally:
            self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if exc_type is not None:
            self.faults.clear()
        self.close()

    def _close(self) -> None:
        if self._loop.is_closed():
            return

        async def stop() -> None:
            self._server.close()
            for connection in list(self._connections):
                connection.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)
            await self._server.wait_closed()

        asyncio.run_coroutine_threadsafe(stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pump one connection in both directions until either end closes or a fault cuts it."""
        task = asyncio.current_task()
        assert task is not None
        if self.upstream is None:
            logger.error("a client has come to the proxy, which was not told its upstream yet")
            writer.transport.abort()
            return
        self._connections.add(task)
        writers = [writer]
        try:
            with contextlib.suppress(OSError):
                upstream_reader, upstream_writer = await asyncio.open_connection(*self.upstream)
                writers.append(upstream_writer)
                await self._pump_both(reader, upstream_writer, upstream_reader, writer)
        except asyncio.CancelledError:
            pass  # `close` cancels and gathers; a cancelled connection has nothing to report
        finally:
            self._connections.discard(task)
            for each in writers:
                each.transport.abort()

    async def _pump_both(
        self,
        client_reader: asyncio.StreamReader,
        upstream_writer: asyncio.StreamWriter,
        upstream_reader: asyncio.StreamReader,
        client_writer: asyncio.StreamWriter,
    ) -> None:
        asked: dict[int, int] = {}

        def request_key(frame: bytes) -> int:
            api_key, _, correlation_id = _REQUEST_HEAD.unpack_from(frame)
            asked[correlation_id] = api_key
            return int(api_key)

        def answer_key(frame: bytes) -> int | None:
            return asked.pop(_ANSWER_HEAD.unpack_from(frame)[0], None)

        pumps = [
            asyncio.ensure_future(self._pump(client_reader, upstream_writer, request_key, Place.REQUEST)),
            asyncio.ensure_future(self._pump(upstream_reader, client_writer, answer_key, Place.ANSWER)),
        ]
        try:
            # The first pump that ends ends the connection: one end has closed, or a fault has cut it.
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)

    async def _pump(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        key_of: Callable[[bytes], int | None],
        place: Place,
    ) -> None:
        """Copy frames until the end of the stream, or until a fault swallows one."""
        while True:
            head = await reader.readexactly(4)
            frame = await reader.readexactly(int.from_bytes(head, "big"))
            api = API.get(key) if (key := key_of(frame)) is not None else None
            fault = None if api is None else self._armed.meet(place, api.name)
            if fault is not None and fault.effect is not Effect.DELAY:
                await self._act(fault)
                return
            if fault is not None:
                await asyncio.sleep(fault.seconds)
                self._armed.act(fault)
            writer.write(head + frame)
            await writer.drain()

    async def _act(self, fault: Fault) -> None:
        done = asyncio.Event()
        self._armed.act(fault, lambda: self._loop.call_soon_threadsafe(done.set))
        await done.wait()
