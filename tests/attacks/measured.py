"""A server whose turns are measured, and a neighbour that sends it heartbeats meanwhile."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil

from tests.attacks.server import SAID
from tests.kafka.wire import Wire

LISTENING = "listening on "
PIPE = subprocess.PIPE


class Cost(NamedTuple):
    """The cost of an attack: the loop's longest turn, the neighbour's longest wait, and the server's growth."""

    longest_ms: float
    waited_ms: float
    grown_mib: float


class Measured:
    """A running server."""

    def __init__(self, server: "subprocess.Popen[str]") -> None:
        self._server = server
        assert server.stdout is not None
        host, port = server.stdout.readline().partition(LISTENING)[2].partition(",")[0].split(":")
        self._address = (host, int(port))
        self._memory = psutil.Process(server.pid).memory_info
        command = [sys.executable, "-m", "tests.attacks.neighbour", host, port]
        self._neighbour = subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True)
        self._before = self._memory().rss

    def connect(self) -> Wire:
        """Return a connection of the attacker, who waits for as long as it takes."""
        wire = Wire(self._address)
        wire.socket.settimeout(300)
        return wire

    def begin(self) -> None:
        """Forget what has been."""
        self.cost()
        self._before = self._memory().rss

    def cost(self) -> Cost:
        """Return the cost since the last call."""
        waited_ms = float(_ask(self._neighbour, self._neighbour.stdout, ""))
        longest_s = float(_ask(self._server, self._server.stderr, SAID))
        return Cost(longest_s * 1000, waited_ms, (self._memory().rss - self._before) / 2**20)

    def end(self) -> None:
        """Let the neighbour and the server end."""
        self._neighbour.communicate(timeout=30)
        self._server.terminate()
        self._server.wait(30)


def _ask(process: "subprocess.Popen[str]", answers: object, beginning: str) -> str:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    while not (line := answers.readline()).startswith(beginning):  # type: ignore[attr-defined]
        assert line, "the process has ended"
    return str(line).removeprefix(beginning)


@contextmanager
def measured_server(data: Path, *arguments: str) -> Iterator[Measured]:
    """Run `exacta serve` with a loop that is measured."""
    command = [sys.executable, "-m", "tests.attacks.server", "--data", str(data), "--listen", "127.0.0.1:0", *arguments]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True) as server:
        measured = Measured(server)
        try:
            yield measured
        finally:
            measured.end()
