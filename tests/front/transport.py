"""A socket between a client and a front, turned by hand: what lies in it is counted, not guessed."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from exacta.config.configuration import Configuration
from exacta.front.connection import FramedConnection
from exacta.front.memory import Memory
from tests.engine.rig import ManualLoop


class Loop(ManualLoop):
    """As connections see it."""

    def time(self) -> float:
        return self.now_ms / 1000

    def on_thread(self, call: Callable[[], Any], done: Callable[[Any], object]) -> None:
        """Do the work of a thread in the next turn."""

        def work() -> None:
            try:
                found = call()
            except Exception as error:  # noqa: BLE001  # as from a thread
                found = error
            done(found)

        self.call_soon(work)

    def memory(self, configuration: Configuration) -> Memory:
        """Return the memory of a broker on this loop, whose turns last as long as its time says."""
        return Memory(configuration, self, self.on_thread, self.time)


class HandTransport(asyncio.Transport):
    """One connection, both ends of it: what it sends waits until the front reads; what it is sent, until it reads.

    A client sets `connection` and then calls `connection_made` on it.
    """

    connection: FramedConnection

    def __init__(self, loop: Loop, reads: bool) -> None:
        super().__init__()
        self.reads = reads
        self.closed = False
        self.received = bytearray()
        self.unsent = bytearray()
        """On its way to the front, which has not read it."""
        self.pieces: list[int] = []
        """The sizes of the front's reads."""
        self.untaken = bytearray()
        """In the front's memory, since the peer does not read."""
        self._loop = loop
        self._high = self._low = 0
        self._reading_paused = self._writing_paused = self._pumping = self._ending = False

    # --- what a test does ---------------------------------------------------------------------------------------------

    def send_bytes(self, data: bytes) -> None:
        """Send; the front reads in turns of its loop."""
        self.unsent += data
        self._pump_soon()

    def read(self, size: int | None = None) -> None:
        """Take bytes that wait: all, or this many."""
        size = len(self.untaken) if size is None else size
        self.received += self.untaken[:size]
        del self.untaken[:size]
        if self._writing_paused and len(self.untaken) <= self._low:
            self._writing_paused = False
            self.connection.resume_writing()
        if self._ending and not self.untaken:
            self.abort()

    def vanish(self) -> None:
        """Be gone."""
        self.abort()

    # --- the front's end: a transport ---------------------------------------------------------------------------------

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
        """End when the peer has taken everything, as asyncio does; from now on nothing is read."""
        self._ending = True
        if not self.untaken:
            self.abort()

    def abort(self) -> None:
        if not self.closed:
            self.closed = True
            self._loop.call_soon(self.connection.connection_lost, None)

    def is_closing(self) -> bool:
        return self.closed or self._ending

    def _pump_soon(self) -> None:
        if not self._pumping and self.unsent and not self._reading_paused:
            self._pumping = True
            self._loop.call_soon(self._pump)

    def _pump(self) -> None:
        self._pumping = False
        if self.closed or self._ending or self._reading_paused:
            return
        buffer = self.connection.get_buffer(-1)
        size = min(len(buffer), len(self.unsent))
        buffer[:size] = self.unsent[:size]
        del self.unsent[:size]
        self.pieces.append(size)
        self.connection.buffer_updated(size)
        self._pump_soon()
