"""The way from one broker to PostgreSQL: it can be cut in one direction or in both, silently, or be slow.

Theory of operation. All links run on one event loop in a thread of its own. What a cut direction gets is kept, and is
sent on when the cut is mended: so does TCP, which sends again what has not arrived. A cut says nothing to either end.
A reset ends all connections.
"""

import asyncio
import contextlib
import threading
from pathlib import Path

SOCKET = ".s.PGSQL.5432"
_MOST = 1 << 16


class Links:
    """The event loop of all links."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="links", daemon=True)
        self._thread.start()
        self._links: list[Link] = []

    def open(self, folder: Path, target: Path) -> "Link":
        """Return a link that listens in one folder, and leads to the server of another one."""
        link = Link(self._loop, target)
        asyncio.run_coroutine_threadsafe(link.listen(str(folder / SOCKET)), self._loop).result()
        self._links.append(link)
        return link

    def close(self) -> None:
        """End everything."""

        async def stop() -> None:
            for link in self._links:
                link.end()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for each in others:
                each.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class _Way:
    """One direction of a link."""

    def __init__(self) -> None:
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.delay_s = 0.0


class Link:
    """See the module."""

    def __init__(self, loop: asyncio.AbstractEventLoop, target: Path) -> None:
        self._loop = loop
        self.target = target
        """The folder of the server, which may change."""
        self._ways = {"to the database": _Way(), "from the database": _Way()}
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None

    async def listen(self, path: str) -> None:
        """Begin."""
        self._server = await asyncio.start_unix_server(self._serve, path)

    def cut(self, *ways: str) -> None:
        """Let nothing through in these directions."""
        for each in ways:
            self._loop.call_soon_threadsafe(self._ways[each].is_open.clear)

    def slow(self, delay_s: float) -> None:
        """Let everything wait for this long, in both directions."""

        def set_delay() -> None:
            for each in self._ways.values():
                each.delay_s = delay_s

        self._loop.call_soon_threadsafe(set_delay)

    def mend(self) -> None:
        """Let everything through at once."""
        self.slow(0.0)
        for each in self._ways.values():
            self._loop.call_soon_threadsafe(each.is_open.set)

    def reset(self) -> None:
        """End all connections."""
        self._loop.call_soon_threadsafe(self._reset)

    def _reset(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    def end(self) -> None:
        """End all connections, and listen no more."""
        self._reset()
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers = [writer]
        self._writers.add(writer)
        pumps: list[asyncio.Future[None]] = []
        try:
            with contextlib.suppress(OSError):
                to_read, to_write = await asyncio.open_unix_connection(str(self.target / SOCKET))
                writers.append(to_write)
                self._writers.add(to_write)
                pumps = [
                    asyncio.ensure_future(self._pump(reader, to_write, self._ways["to the database"])),
                    asyncio.ensure_future(self._pump(to_read, writer, self._ways["from the database"])),
                ]
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            pass  # this was told to end
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            for each in writers:
                each.transport.abort()
                self._writers.discard(each)

    @staticmethod
    async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: _Way) -> None:
        while data := await reader.read(_MOST):
            if way.delay_s:
                await asyncio.sleep(way.delay_s)
            await way.is_open.wait()
            writer.write(data)
            await writer.drain()
        # The end of a connection travels the same way as its bytes.
        await way.is_open.wait()
