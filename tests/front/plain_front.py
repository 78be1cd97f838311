"""A second protocol on `FramedConnection`: plain frames, whose answers go by id and in any order.

A frame is a size, a kind (one letter), an id of four bytes, and a body. An answer is a size, the id, and bytes. The
protocol differs from Kafka's where a front may differ: answers overtake each other, some frames want none, and the
front sends what nobody has asked for.
"""

import logging
import struct
from collections import deque
from collections.abc import Callable
from typing import Any, cast

from exacta.config.options import configure
from exacta.front.connection import SIZE_BYTES, FramedConnection
from tests.front.transport import HandTransport, Loop

logger = logging.getLogger("exacta.plain")

WORK = b"W"
"""The test answers it, when it likes."""
ECHO = b"E"
"""It is answered at once with its body."""
LONG = b"L"
"""Like WORK; its answer may be long, so that it begins only when nothing else is owed."""
READ = b"R"
"""Its body is the length of the answer, which is made when there is room."""
QUIET = b"Q"
"""It wants no answer."""
BAD = b"B"
"""It cannot be understood."""
LARGEST_FRAME = 100 << 20

STALL_MS = 1_000
IDLE_MS = 60_000
_HEAD = struct.Struct(">ci")


class PlainConnection(FramedConnection):
    """One connection of the front."""

    logger = logger
    smallest_frame = _HEAD.size

    def __init__(self, front: "PlainFront") -> None:
        super().__init__(
            front.configuration,
            front.memory,
            cast("Any", front.loop),
            front.register,
            front.forget,
            largest_frame=LARGEST_FRAME,
        )
        self.begun: list[int] = []
        """The ids of all frames that have begun, in their order."""
        self.worked_on: dict[int, int] = {}
        """The ids of the frames that are not answered, and the bytes of each."""
        self._to_read: deque[tuple[int, int]] = deque()

    def wrong_size(self, size: int, beginning: bytes) -> str:
        return f"no frame has {size} bytes"

    def may_begin(self, frame: memoryview) -> bool:
        return frame[:1] != LONG

    def receive(self, frame: memoryview) -> None:
        kind, number = _HEAD.unpack_from(frame)
        self.begun.append(number)
        self.worked_on[number] = SIZE_BYTES + len(frame)
        if kind == ECHO:
            self.answer(number, bytes(frame[_HEAD.size :]))
        elif kind == QUIET:
            if self.answer_made(self.worked_on.pop(number), 0):
                self.send_answer([], 0)
        elif kind == READ:
            self._to_read.append((number, *struct.unpack_from(">i", frame, _HEAD.size)))
            self.has_room()
        elif kind == BAD:
            self.refuse("it makes no sense")

    def answer(self, number: int, payload: bytes, taken_bytes: int = 0) -> None:
        """Answer one frame, whichever others wait."""
        size = 2 * SIZE_BYTES + len(payload)
        if self.answer_made(self.worked_on.pop(number), size, taken_bytes):
            self.send_answer([struct.pack(">ii", SIZE_BYTES + len(payload), number), payload], size)

    def to_read(self) -> set[int]:
        """Return the ids of the frames whose answers wait for room."""
        return {number for number, _ in self._to_read}

    def tell(self, number: int, payload: bytes) -> None:
        """Send a frame that answers none."""
        self.push([struct.pack(">ii", SIZE_BYTES + len(payload), number), payload])

    def has_room(self) -> None:
        if self._to_read:
            number, size = self._to_read[0]
            most_bytes = self.take_room(size)
            if most_bytes is not None:
                self._to_read.popleft()
                self.answer(number, bytes(min(size, most_bytes)), min(size, most_bytes))

    def on_closed(self) -> int:
        """Reads are forgotten; other work goes on, and the test ends it by `answer`."""
        for number, _ in self._to_read:
            del self.worked_on[number]
        self._to_read.clear()
        return sum(self.worked_on.values())


class PlainClient(HandTransport):
    """The other end."""

    connection: PlainConnection

    def __init__(self, front: "PlainFront", reads: bool) -> None:
        super().__init__(front.loop, reads)
        self._count = 0
        self.connection = PlainConnection(front)
        self.connection.connection_made(self)

    def frame(self, kind: bytes = WORK, body: bytes = b"") -> bytes:
        """Return the next frame as bytes; ids count from 1 on."""
        self._count += 1
        return struct.pack(">i", _HEAD.size + len(body)) + _HEAD.pack(kind, self._count) + body

    def send(self, kind: bytes = WORK, body: bytes = b"") -> int:
        """Send a frame; return its id."""
        self.send_bytes(self.frame(kind, body))
        return self._count

    def ask_to_read(self, size: int) -> int:
        """Send a frame whose answer has this many bytes; return its id."""
        return self.send(READ, struct.pack(">i", size))

    def answers(self) -> list[tuple[int, bytes]]:
        """Return the ids and payloads that have come since the last call."""
        found = []
        while len(self.received) >= SIZE_BYTES:
            size, number = struct.unpack_from(">ii", self.received)
            if len(self.received) < SIZE_BYTES + size:
                break
            found.append((number, bytes(self.received[2 * SIZE_BYTES : SIZE_BYTES + size])))
            del self.received[: SIZE_BYTES + size]
        return found

    def answered(self) -> list[int]:
        """Return the ids that have come since the last call."""
        return [number for number, _ in self.answers()]


class PlainFront:
    """A listener, without an engine: the test does the work."""

    def __init__(self, **options: Any) -> None:
        self.loop = Loop()
        self.configuration = configure(options)
        self.memory = self.loop.memory(self.configuration)
        self.requests, self.answers = self.memory.requests, self.memory.answers
        self.connections: list[PlainConnection] = []
        self.clients: list[PlainClient] = []
        self.lets_in = True
        self.most_requests = self.most_answers = 0

    def register(self, connection: PlainConnection) -> bool:
        if self.lets_in:
            self.connections.append(connection)
        return self.lets_in

    def forget(self, connection: PlainConnection) -> None:
        self.connections.remove(connection)

    def connect(self, *, reads: bool = True) -> PlainClient:
        self.clients.append(PlainClient(self, reads))
        return self.clients[-1]

    def turn(self) -> None:
        """Let the loop turn once; the most that the budgets held is kept."""
        self.loop.turn()
        self.most_requests = max(self.most_requests, self.requests.used_bytes)
        self.most_answers = max(self.most_answers, self.answers.used_bytes)

    def settle(self) -> None:
        """Let the loop turn until nothing happens any more."""
        while self.loop.ready:
            self.turn()

    def pass_time(self, ms: int) -> None:
        self.loop.pass_time(ms)

    def end(self) -> None:
        """Let all clients vanish and end all work; nothing may be counted any more, nor wait."""
        for client in self.clients:
            client.vanish()
        self.settle()
        for client in self.clients:
            for number in list(client.connection.worked_on):
                client.connection.answer(number, b"nobody hears this")
        self.settle()
        self.pass_time(10_000)
        for budget in (self.requests, self.answers):
            assert (budget.used_bytes, len(budget.line), budget.let_on) == (0, 0, None), budget.option
            assert not budget._watched
        assert not self.connections
        assert all(handle.cancelled for _, handle, _ in self.loop.later), "a timer is left"
        assert not any(client.connection._begun for client in self.clients), "half a frame is kept"


Start = Callable[..., PlainFront]
