"""A client's connection: frames out, frames in, and an error where nothing comes.

Owns correlation and time-outs. A connection that fails is given up, and the next request makes another: whether the
broker has acted on what was unanswered, nobody here knows.
"""

import asyncio
import random
import struct
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from exacta.protocol.kafka.apis import API
from exacta.protocol.kafka.codec import decode_response, encode_request
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.schema import Message
from simulation.network import Link, Network, Refused

REQUEST_SECONDS = 8.0
BACKOFF_SECONDS = (0.02, 0.4)
LATER = ErrorCode.COORDINATOR_NOT_AVAILABLE.to_bytes(2, "big")


class Disconnected(Exception):
    """No answer will come; the request may have been acted on."""


Asked = tuple[Message, int]
"""A request, and its version."""


class Connection:
    """One client's way to the broker. `on_sent` is told of every frame."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        network: Network,
        chance: random.Random,
        name: str,
        on_sent: Callable[[Link, bytes, Message, int], None] = lambda link, frame, request, version: None,
    ) -> None:
        self.chance = chance
        self.name = name
        self._loop = loop
        self._network = network
        self._on_sent = on_sent
        self._link: Link | None = None
        self._buffer = b""
        self._correlation_id = 0
        self._waiting: deque[tuple[int, Message, int, asyncio.Future[Any]]] = deque()

    async def ask(self, request: Message, version: int, seconds: float = REQUEST_SECONDS) -> Any:
        """Send a request, and return the answer; raise Disconnected."""
        (answer,) = await self.ask_all([(request, version)], seconds)
        if isinstance(answer, Disconnected):
            raise answer
        return answer

    async def ask_all(self, requests: Sequence[Asked], seconds: float = REQUEST_SECONDS) -> list[Any]:
        """Send several requests at once; return their answers in order, `Disconnected` for those without."""
        futures = []
        try:
            for request, version in requests:
                futures.append(self._send(request, version))
        except Refused:
            return [Disconnected()] * len(requests)
        timer = self._loop.call_later(seconds, self.drop)
        answers: list[Any] = []
        for future in futures:
            answers.append(await future)  # noqa: PERF401  # they come in order, or not at all
        timer.cancel()
        return answers

    async def until_answered(self, request: Message, version: int) -> Any:
        """Ask until an answer comes."""
        while True:
            try:
                return await self.ask(request, version)
            except Disconnected:
                await self.back_off()

    async def back_off(self) -> None:
        """Wait a little."""
        await asyncio.sleep(self.chance.uniform(*BACKOFF_SECONDS))

    def _send(self, request: Message, version: int) -> "asyncio.Future[Any]":
        if self._link is None:
            self._buffer = b""
            self._link = self._network.connect(self.name, self._received, self.drop)
        self._correlation_id += 1
        frame = b"".join(encode_request(request, version, self._correlation_id, self.name))
        future: asyncio.Future[Any] = self._loop.create_future()
        self._waiting.append((self._correlation_id, request, version, future))
        self._link.send(frame)
        self._on_sent(self._link, frame, request, version)
        return future

    def _received(self, data: bytes) -> None:
        self._buffer += data
        while len(self._buffer) >= 4:
            (size,) = struct.unpack_from(">i", self._buffer)
            if len(self._buffer) < 4 + size:
                return
            frame, self._buffer = self._buffer[4 : 4 + size], self._buffer[4 + size :]
            number, request, version, future = self._waiting.popleft()
            found, answer = decode_response(API[request.SCHEMA.key].response, version, frame)
            assert found == number, "answers come in the order of the requests"
            if not future.done():
                future.set_result(Disconnected() if LATER in frame and _says_later(answer) else answer)

    def drop(self) -> None:
        """Give the connection up."""
        link, self._link = self._link, None
        if link is not None:
            link.close()
        waiting, self._waiting = self._waiting, deque()
        for _, _, _, future in waiting:
            if not future.done():
                future.set_result(Disconnected())


def _says_later(answer: object) -> bool:
    """Return whether the answer says that a client is to ask once more: the reserve of the disk is used up (0051).

    Every Kafka client asks again. For ours it is as good as no answer.
    """
    if isinstance(answer, list):
        return any(map(_says_later, answer))
    fields = getattr(answer, "__struct_fields__", ())
    codes = (getattr(answer, name) for name in fields if name.endswith("error_code"))
    if ErrorCode.COORDINATOR_NOT_AVAILABLE in codes:
        return True
    return any(_says_later(getattr(answer, name)) for name in fields)
