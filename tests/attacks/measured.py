"""A server whose turns are measured, and a neighbour that sends it heartbeats meanwhile."""

import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil

from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.commands import PROTOCOL_VERSION
from exacta.protocol.pulsar.frames import SIZE_BYTES, build_frame
from tests.attacks.server import SAID
from tests.conformance.brokers import free_port
from tests.kafka.wire import Wire

LISTENING = "listening on "
PATIENCE_S = 60
PIPE = subprocess.PIPE
COMMAND_TYPE = 5
"""The place of a command's number in a frame: behind the command's size and the tag of the field."""


class Cost(NamedTuple):
    """The cost of an attack: the loop's longest turn, the neighbour's longest wait, and the server's growth."""

    longest_ms: float
    waited_ms: float
    grown_mib: float


class Measured:
    """A running server."""

    def __init__(self, server: "subprocess.Popen[str]", pulsar_port: int) -> None:
        self._server = server
        assert server.stdout is not None
        host, port = server.stdout.readline().partition(LISTENING)[2].partition(",")[0].split(":")
        self._address = (host, int(port))
        self._pulsar_port = pulsar_port
        self._memory = psutil.Process(server.pid).memory_info
        command = [sys.executable, "-m", "tests.attacks.neighbour", host, port]
        self._neighbour = subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True)
        self._before = self._memory().rss
        self._said: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        """Read all that the server logs: one whose log nobody reads stands still when the pipe is full."""
        assert self._server.stderr is not None
        for line in self._server.stderr:
            if line.startswith(SAID):
                self._said.put(line.removeprefix(SAID))

    def connect(self) -> Wire:
        """Return a connection of the attacker, who waits for as long as it takes."""
        wire = Wire(self._address)
        wire.socket.settimeout(300)
        return wire

    def connect_to_pulsar(self) -> "PulsarWire":
        """Return a connection of an attacker who speaks Pulsar's protocol."""
        return PulsarWire((self._address[0], self._pulsar_port))

    def begin(self) -> None:
        """Forget what has been."""
        self.cost()
        self._before = self._memory().rss

    def cost(self) -> Cost:
        """Return the cost since the last call."""
        _ask(self._neighbour)
        assert self._neighbour.stdout is not None
        waited_ms = float(self._neighbour.stdout.readline())
        _ask(self._server)
        longest_s = float(self._said.get(timeout=PATIENCE_S))
        return Cost(longest_s * 1000, waited_ms, (self._memory().rss - self._before) / 2**20)

    def end(self) -> None:
        """Let the neighbour and the server end."""
        self._neighbour.communicate(timeout=30)
        self._server.terminate()
        self._server.wait(30)
        self._listener.join(30)


class PulsarWire:
    """A connection that has said CONNECT, and reads answers without looking into them."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, timeout=300)
        self._stream = self._socket.makefile("rb")
        self.ask([build_frame(pb.CommandConnect(client_version="attacker", protocol_version=PROTOCOL_VERSION))])

    def ask(self, frames: Iterable[bytes]) -> list[bytes]:
        """Send frames, and return those that have come until two PINGs behind them were answered."""
        sending = threading.Thread(target=self._socket.sendall, args=(b"".join(frames),))
        sending.start()
        found: list[bytes] = []
        for _ in range(2):
            sending.join(0)
            sending = threading.Thread(target=self._ping, args=(sending,))
            sending.start()
            while (frame := self._receive())[COMMAND_TYPE] != pb.BaseCommand.PONG:
                found.append(frame)
        return found

    def _ping(self, after: threading.Thread) -> None:
        after.join()
        self._socket.sendall(build_frame(pb.CommandPing()))

    def _receive(self) -> bytes:
        size = self._stream.read(SIZE_BYTES)
        assert size, "the connection was closed"
        return self._stream.read(int.from_bytes(size, "big"))

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()
        self._socket.close()


def _ask(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


@contextmanager
def measured_server(data: Path, *arguments: str) -> Iterator[Measured]:
    """Run `exacta serve` with a loop that is measured."""
    pulsar_port = free_port()
    command = [sys.executable, "-m", "tests.attacks.server", "--data", str(data), "--listen", "127.0.0.1:0"]
    command += ["--pulsar-listen", f"127.0.0.1:{pulsar_port}", *arguments]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True) as server:
        measured = Measured(server, pulsar_port)
        try:
            yield measured
        finally:
            measured.end()
