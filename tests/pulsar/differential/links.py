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
from abc import ABC, abstractmethod
from typing import Any

from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.session import Incoming, Key, Outgoing, Session
from tests.pulsar.by_hand import Broker

QUIET_S = 0.1
ANSWER_S = 15.0
SOON_MS = 50
"""Virtual time in which our broker does what it has put off."""
FAILOVER_S = 1.0
"""A new active consumer of a Failover subscription is served so much later (activeConsumerFailoverDelayTimeMillis)."""


class Link(ABC):
    """The broker as a side needs it. A session is spoken over it."""

    short_s: float
    """The time-out of a transaction that is to end by it: longer than what a program does before it waits."""

    def __init__(self) -> None:
        self.session = Session("tester")
        self._received: list[Incoming] = []

    @abstractmethod
    def _send(self, data: bytes) -> None:
        """Send frames."""

    @abstractmethod
    def _receive(self, key: Key | None) -> Any:
        """Return the answer that has this key; what comes beside it is kept. Raises TimeoutError."""

    @abstractmethod
    def settle(self, *, fails_over: bool = False) -> list[Incoming]:
        """Wait until nothing more comes, and return what has come."""

    @abstractmethod
    def reload(self, topic: str) -> bool:
        """Let the topic be read from the disk again; return whether this has cost the connection."""

    @abstractmethod
    def pass_time(self, seconds: float) -> None:
        """Let time pass."""

    @abstractmethod
    def now_ms(self) -> int:
        """Return the time of the broker's clock."""

    @abstractmethod
    def create(self, topic: str) -> None:
        """Create a topic of one partition."""

    @abstractmethod
    def close(self) -> None:
        """Hang up."""

    def tell(self, told: Outgoing) -> None:
        """Send what has no answer."""
        self._send(told.data)

    def ask(self, asked: Outgoing) -> Any:
        """Send something, and return its answer. Raises TimeoutError."""
        self._send(asked.data)
        return self._receive(asked.key)

    def _keep(self, data: bytes | bytearray) -> None:
        for each in self.session.receive_data(data):
            if each.reply:
                self._send(each.reply)
            else:
                self._received.append(each)

    def _kept(self, key: Key | None) -> Any:
        """Take the answer that has this key out of what has come; None if there is none."""
        for place, each in enumerate(self._received):
            if each.key == key:
                del self._received[place]
                return each.command
        return None

    def _all(self) -> list[Incoming]:
        found, self._received = self._received, []
        return found


class PulsarLink(Link):
    """A connection to a real Apache Pulsar."""

    def __init__(self, url: str, web_url: str, quiet_s: float = QUIET_S) -> None:
        super().__init__()
        host, _, port = url.removeprefix("pulsar://").rpartition(":")
        self.web_url = web_url
        self.quiet_s = quiet_s
        self.short_s = max(2.0, 25 * quiet_s)
        self.socket = socket.create_connection((host, int(port)))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.ask(self.session.connect())

    def close(self) -> None:
        self.socket.close()

    def _send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def _take(self, seconds: float) -> bool:
        """Read what comes within so many seconds; return whether anything has come."""
        if not select.select([self.socket], [], [], max(seconds, 0))[0]:
            return False
        data = self.socket.recv(1 << 16)
        if not data:
            raise ConnectionError("the connection was closed")
        self._keep(data)
        return True

    def _receive(self, key: Key | None) -> Any:
        deadline = time.monotonic() + ANSWER_S
        while (found := self._kept(key)) is None:
            if not self._take(deadline - time.monotonic()) and time.monotonic() >= deadline:
                raise TimeoutError
        return found

    def settle(self, *, fails_over: bool = False) -> list[Incoming]:
        if fails_over:
            end = time.monotonic() + FAILOVER_S
            while (left := end - time.monotonic()) > 0:
                self._take(left)
        while self._take(self.quiet_s):
            pass
        return self._all()

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


class ExactaLink(Link):
    """A connection to a broker of ours, which does nothing while it is not looked at."""

    short_s = 2.0

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self._options = options
        self._broker = Broker(**options)
        self._client = self._broker.connect()

    def close(self) -> None:
        self._broker.end()

    def _send(self, data: bytes) -> None:
        self._client.send_bytes(data)

    def _receive(self, key: Key | None) -> Any:
        for wait_ms in (0, SOON_MS, 5000):
            self._broker.pass_time(wait_ms)
            self._take()
            if (found := self._kept(key)) is not None:
                return found
        raise TimeoutError

    def settle(self, *, fails_over: bool = False) -> list[Incoming]:
        self._broker.pass_time(SOON_MS)
        self._take()
        return self._all()

    def _take(self) -> None:
        data = bytes(self._client.received)
        self._client.received.clear()
        self._keep(data)
        if self._client.closed:
            raise ConnectionError("the connection was closed")

    def pass_time(self, seconds: float) -> None:
        self._broker.pass_time(round(seconds * 1000))

    def now_ms(self) -> int:
        return self._broker.loop.now_ms

    def create(self, topic: str) -> None:
        name = f"persistent://public/default/{topic.removesuffix('-partition-0')}"
        answer = self.ask(self.session.request(pb.CommandPartitionedTopicMetadata(topic=name)))
        assert answer.response == pb.CommandPartitionedTopicMetadataResponse.Success, answer

    def reload(self, topic: str) -> bool:
        self._broker.settle()
        self._broker = Broker(after=self._broker, **self._options)
        self._client = self._broker.connect()
        return True
