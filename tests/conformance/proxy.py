"""A TCP proxy that understands just enough of the Kafka protocol to lose one chosen request or one chosen answer.

Owns the fault: at the first request (or answer) of the named API the frame is swallowed, an action runs (kill the
broker and start it again, or nothing), and the connection is cut. So a client is left in exactly the doubt that a crash
at the worst moment leaves it in: was that request carried out or not? Everything else passes unchanged.

Theory of operation: the broker advertises the proxy's address, so every connection of a client comes through here. Each
is two pumps that copy whole frames (a 4-byte length, then that many bytes). A request begins with API key, version and
correlation id; its answer begins with the correlation id, by which the API key is known again. The proxy runs on an
event loop in a thread of its own; actions, which block, run in a further thread, so other connections go on meanwhile.
"""

import asyncio
import contextlib
import struct
import threading
from collections.abc import Callable
from enum import Enum, IntEnum

from tests.conformance.brokers import HOST


class ApiKey(IntEnum):
    """The requests that the scenarios lose."""

    PRODUCE = 0
    OFFSET_COMMIT = 8
    INIT_PRODUCER_ID = 22
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    TXN_OFFSET_COMMIT = 28


class Loses(Enum):
    """What a fault swallows: the request, before the broker sees it, or the answer, before the client does."""

    REQUEST = "request"
    ANSWER = "answer"


class Fault:
    """One frame to lose. `wait()` returns when it has been lost and the action has run."""

    def __init__(self, api_key: ApiKey, loses: Loses, action: Callable[[], object] | None) -> None:
        """Describe the fault; the proxy arms it."""
        self.api_key = api_key
        self.loses = loses
        self._action = action
        self._done = threading.Event()
        self._error: BaseException | None = None

    def happen(self) -> None:
        """Run the action, in the proxy's helper thread."""
        try:
            if self._action is not None:
                self._action()
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
            self._error = error
        finally:
            self._done.set()

    @property
    def happened(self) -> bool:
        """Whether the frame has been lost and the action has run."""
        return self._done.is_set()

    def wait(self, timeout_s: float) -> None:
        """Wait for it; raises AssertionError if it does not come, and what the action raised."""
        assert self._done.wait(timeout_s), f"no {self.loses.value} of {self.api_key.name} came by in {timeout_s:.0f} s"
        if self._error is not None:
            raise self._error


class Proxy:
    """Listen on a free port, connect every client through to `upstream_port`, and lose what `lose` says."""

    def __init__(self, upstream_port: int | None = None) -> None:
        """Start listening; `upstream_port` may be set later, before the first client comes."""
        self.upstream_port = upstream_port
        self._fault: Fault | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(asyncio.start_server(self._serve, HOST, 0), self._loop).result()
        self.port: int = self._server.sockets[0].getsockname()[1]
        self.bootstrap = f"{HOST}:{self.port}"

    def lose(self, loses: Loses, api_key: ApiKey, action: Callable[[], object] | None = None) -> Fault:
        """Arm a fault: it happens once. One at a time."""
        assert self._fault is None or self._fault.happened, "a fault is armed already"
        self._fault = Fault(api_key, loses, action)
        return self._fault

    def disarm(self) -> None:
        """Let everything pass again."""
        self._fault = None

    def close(self) -> None:
        """Cut all connections and stop listening."""

        async def stop() -> None:
            self._server.close()
            for connection in list(self._connections):
                connection.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)
            await self._server.wait_closed()
            await self._loop.shutdown_default_executor()

        asyncio.run_coroutine_threadsafe(stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pump one connection in both directions until either end closes or a fault cuts it."""
        self._connections.add(task := asyncio.current_task())
        writers = [writer]
        try:
            with contextlib.suppress(OSError):
                upstream_reader, upstream_writer = await asyncio.open_connection(HOST, self.upstream_port)
                writers.append(upstream_writer)
                await self._pump_both(reader, upstream_writer, upstream_reader, writer)
        except asyncio.CancelledError:
            # close() cancels and gathers; a cancelled connection has nothing to report.
            pass
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
            api_key, _, correlation_id = struct.unpack_from(">hhi", frame)
            asked[correlation_id] = api_key
            return api_key

        def answer_key(frame: bytes) -> int | None:
            return asked.pop(struct.unpack_from(">i", frame)[0], None)

        pumps = [
            asyncio.ensure_future(self._pump(client_reader, upstream_writer, request_key, Loses.REQUEST)),
            asyncio.ensure_future(self._pump(upstream_reader, client_writer, answer_key, Loses.ANSWER)),
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
        api_key: Callable[[bytes], int | None],
        direction: Loses,
    ) -> None:
        """Copy frames until the end of the stream, or until the armed fault swallows one."""
        while True:
            head = await reader.readexactly(4)
            frame = await reader.readexactly(int.from_bytes(head, "big"))
            key = api_key(frame)
            fault = self._fault
            if fault is not None and fault.loses is direction and fault.api_key == key:
                self._fault = None
                await self._loop.run_in_executor(None, fault.happen)
                return
            writer.write(head + frame)
            await writer.drain()
