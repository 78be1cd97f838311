"""A connection to one of the two brokers, and how it is known that nothing more comes.

Exacta runs in the test's own loop, which is turned by hand until nothing happens any more; its time is virtual. A real
Apache Pulsar only tells by its silence that it has nothing more to deliver: `QUIET_S` without a byte. A difference that
is found is looked at again with patience before it counts (`record.settled`), so that a slow machine reports nothing.
"""

from __future__ import annotations

import json
import select
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any, Protocol

from google.protobuf.message import Message

from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.commands import PROTOCOL_VERSION, unwrapped
from exacta.protocol.pulsar.frames import SIZE_BYTES, Frame, build_frame, frame_at, parse_frame
from tests.pulsar.by_hand import Broker

QUIET_S = 0.1
ANSWER_S = 15.0
SOON_MS = 50
"""Virtual time in which our broker does what it has put off."""
FAILOVER_S = 1.0
"""A new active consumer of a Failover subscription is served so much later (activeConsumerFailoverDelayTimeMillis)."""


class Received:
    """A frame that has come, with its command."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.command: Any = unwrapped(frame.command)


class Link(Protocol):
    """The broker as a side needs it."""

    short_s: float
    """The time-out of a transaction that is to end by it: longer than what a program does before it waits."""

    def send_bytes(self, data: bytes) -> None:
        """Send frames."""

    def receive(self, wanted: Callable[[Any], bool]) -> Any:
        """Return the first command that is wanted; what comes beside it is kept. Raises TimeoutError."""

    def settle(self, *, fails_over: bool = False) -> list[Received]:
        """Wait until nothing more comes, and return what has come."""

    def reload(self, topic: str) -> bool:
        """Let the topic be read from the disk again; return whether this has cost the connection."""

    def pass_time(self, seconds: float) -> None:
        """Let time pass."""

    def now_ms(self) -> int:
        """Return the time of the broker's clock."""

    def create(self, topic: str) -> None:
        """Create a topic of one partition."""

    def close(self) -> None:
        """Hang up."""


def cut(buffer: bytes | bytearray, into: list[Received]) -> int:
    """Read the frames of a buffer; return how many bytes they have."""
    at = 0
    while (frame := frame_at(bytes(buffer[at:]))) is not None:
        into.append(Received(parse_frame(bytes(frame))))
        at += SIZE_BYTES + len(frame)
    return at


def taken(received: list[Received], wanted: Callable[[Any], bool]) -> Any:
    """Take the first command that is wanted out of what has come; None if there is none."""
    for place, each in enumerate(received):
        if wanted(each.command):
            del received[place]
            return each.command
    return None


class PulsarLink:
    """A connection to a real Apache Pulsar."""

    def __init__(self, url: str, web_url: str, quiet_s: float = QUIET_S) -> None:
        host, _, port = url.removeprefix("pulsar://").rpartition(":")
        self.web_url = web_url
        self.quiet_s = quiet_s
        self.short_s = max(2.0, 25 * quiet_s)
        self.socket = socket.create_connection((host, int(port)))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray()
        self._received: list[Received] = []
        self.send(pb.CommandConnect(client_version="tester", protocol_version=PROTOCOL_VERSION))
        self.receive(lambda command: isinstance(command, pb.CommandConnected))

    def close(self) -> None:
        self.socket.close()

    def send(self, command: Message) -> None:
        self.send_bytes(build_frame(command))

    def send_bytes(self, data: bytes) -> None:
        self.socket.sendall(data)

    def _take(self, seconds: float) -> bool:
        """Read what comes within so many seconds; return whether anything has come."""
        if not select.select([self.socket], [], [], max(seconds, 0))[0]:
            return False
        data = self.socket.recv(1 << 16)
        if not data:
            raise ConnectionError("the connection was closed")
        self._buffer += data
        del self._buffer[: cut(self._buffer, self._received)]
        while taken(self._received, lambda command: isinstance(command, pb.CommandPing)):
            self.send(pb.CommandPong())
        return True

    def receive(self, wanted: Callable[[Any], bool]) -> Any:
        deadline = time.monotonic() + ANSWER_S
        while (found := taken(self._received, wanted)) is None:
            if not self._take(deadline - time.monotonic()) and time.monotonic() >= deadline:
                raise TimeoutError
        return found

    def settle(self, *, fails_over: bool = False) -> list[Received]:
        if fails_over:
            end = time.monotonic() + FAILOVER_S
            while (left := end - time.monotonic()) > 0:
                self._take(left)
        while self._take(self.quiet_s):
            pass
        found, self._received = self._received, []
        return found

    def pass_time(self, seconds: float) -> None:
        time.sleep(seconds)  # a real clock has no other way to go on

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def create(self, topic: str) -> None:
        self._web("PUT", f"{topic.removesuffix('-partition-0')}/partitions", 1)

    def reload(self, topic: str) -> bool:
        self._web("PUT", f"{topic}/unload")
        return False

    def _web(self, method: str, path: str, body: Any = None) -> None:
        data = None if body is None else json.dumps(body).encode()
        address = f"{self.web_url}/admin/v2/persistent/public/default/{path}"
        request = urllib.request.Request(address, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=ANSWER_S):
            pass


class ExactaLink:
    """A connection to a broker of ours, which does nothing while it is not looked at."""

    short_s = 2.0

    def __init__(self, **options: Any) -> None:
        self._options = options
        self._received: list[Received] = []
        self._broker = Broker(**options)
        self._client = self._broker.connect()

    def close(self) -> None:
        self._broker.end()

    def send_bytes(self, data: bytes) -> None:
        self._client.send_bytes(data)

    def receive(self, wanted: Callable[[Any], bool]) -> Any:
        for wait_ms in (0, SOON_MS, 5000):
            self._broker.pass_time(wait_ms)
            self._take()
            if (found := taken(self._received, wanted)) is not None:
                return found
        raise TimeoutError

    def settle(self, *, fails_over: bool = False) -> list[Received]:
        self._broker.pass_time(SOON_MS)
        self._take()
        found, self._received = self._received, []
        return found

    def _take(self) -> None:
        cut_off = cut(self._client.received, self._received)
        del self._client.received[:cut_off]
        if self._client.closed:
            raise ConnectionError("the connection was closed")

    def pass_time(self, seconds: float) -> None:
        self._broker.pass_time(round(seconds * 1000))

    def now_ms(self) -> int:
        return self._broker.loop.now_ms

    def create(self, topic: str) -> None:
        name = f"persistent://public/default/{topic.removesuffix('-partition-0')}"
        self.send_bytes(build_frame(pb.CommandPartitionedTopicMetadata(topic=name, request_id=0)))
        answer = self.receive(lambda command: isinstance(command, pb.CommandPartitionedTopicMetadataResponse))
        assert answer.response == pb.CommandPartitionedTopicMetadataResponse.Success, answer

    def reload(self, topic: str) -> bool:
        self._broker.settle()
        self._broker = Broker(after=self._broker, **self._options)
        self._client = self._broker.connect()
        return True
