"""A server whose turns are measured, and a neighbour that sends it heartbeats meanwhile."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from exacta.protocol.kafka.messages.k12_heartbeat import HeartbeatRequest
from tests.attacks.server import SAID
from tests.kafka.wire import Wire

LISTENING = "listening on "


class Measured:
    """A running server. `begin` forgets what has been."""

    def __init__(self, server: "subprocess.Popen[str]") -> None:
        self._server = server
        assert server.stdout is not None
        line = server.stdout.readline()
        host, port = line.partition(LISTENING)[2].partition(",")[0].split(":")
        self._address = (host, int(port))
        self._waited_s = 0.0
        self._ends = threading.Event()
        self._neighbour = threading.Thread(target=self._send_heartbeats, daemon=True)
        self._neighbour.start()

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._server.pid

    def connect(self) -> Wire:
        """Return a connection of the attacker, who waits for as long as it takes."""
        wire = Wire(self._address)
        wire.socket.settimeout(300)
        return wire

    def begin(self) -> None:
        """Forget what has been."""
        self.longest_ms()
        self._waited_s = 0.0

    def longest_ms(self) -> float:
        """Return the processor time of the longest turn of the loop since the last call."""
        assert self._server.stdin is not None
        assert self._server.stderr is not None
        self._server.stdin.write("\n")
        self._server.stdin.flush()
        while not (line := self._server.stderr.readline()).startswith(SAID):
            assert line, "the server has ended"
            if line.startswith(("GC", "HANDLE")):
                print("      ", line, end="")
        return float(line.removeprefix(SAID)) * 1000

    def waited_ms(self) -> float:
        """Return the longest time for which the neighbour waited for an answer."""
        return self._waited_s * 1000

    def end(self) -> None:
        """Let the neighbour and the server end."""
        self._ends.set()
        self._neighbour.join(10)
        self._server.terminate()
        self._server.wait(30)

    def _send_heartbeats(self) -> None:
        wire = self.connect()
        request = HeartbeatRequest(group_id="neighbour", generation_id=1, member_id="m")
        while not self._ends.wait(0.005):
            began_s = time.monotonic()
            wire.ask(request, 4)
            self._waited_s = max(self._waited_s, time.monotonic() - began_s)


@contextmanager
def measured_server(data: Path, *arguments: str) -> Iterator[Measured]:
    """Run `exacta serve` with a loop that is measured."""
    command = [
        sys.executable,
        "-m",
        "tests.attacks.server",
        "--data",
        str(data),
        "--listen",
        "127.0.0.1:0",
        *arguments,
    ]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as server:
        measured = Measured(server)
        try:
            yield measured
        finally:
            measured.end()
