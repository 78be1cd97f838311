"""Operating-system matters: server processes that we start and end, free ports, and what a process has used.

Only a process that was started here is ever ended, by its own handle. A server runs in a session of its own, so that
Ctrl-C in the terminal reaches the benchmark alone, which then ends the server in order.
"""

import contextlib
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

STOP_TIMEOUT_S = 30.0
LOG_TAIL_LINES = 5
LISTENING_PORTS = (20_000, 32_000)
"""The ports to listen on; they lie below those of outgoing connections on Linux (from 32768) and elsewhere."""


class ServerFailedError(Exception):
    """A server process ended by itself or did not get ready; the text holds the end of its log."""


@dataclass(frozen=True, kw_only=True)
class Usage:
    """The resources that a process and its children have used: CPU seconds so far, bytes of memory resident now."""

    cpu_s: float
    resident_bytes: int


def usage(process: psutil.Process) -> Usage | None:
    """Read what the process tree has used, or None if it is gone or may not be looked at.

    A child that has ended counts with its parent, once that has waited for it.
    """
    used = Usage(cpu_s=0.0, resident_bytes=0)
    try:
        children = process.children(recursive=True)
        used = _with(used, process)
    except psutil.Error:
        return None
    for child in children:
        with contextlib.suppress(psutil.NoSuchProcess):
            used = _with(used, child)
    return used


def _with(used: Usage, process: psutil.Process) -> Usage:
    times = process.cpu_times()
    return Usage(
        cpu_s=used.cpu_s + times.user + times.system + times.children_user + times.children_system,
        resident_bytes=used.resident_bytes + process.memory_info().rss,
    )


def machine_cpu_s() -> float:
    """Return the CPU seconds that everything on the machine, kernel included, has used so far."""
    times = psutil.cpu_times()
    # What is idle is not used, and guests are counted in user already.
    return float(sum(times) - sum(getattr(times, name, 0.0) for name in ("idle", "iowait", "guest", "guest_nice")))


def listener(port: int) -> psutil.Process | None:
    """Find the local process that listens on a TCP port; None if there is none or it cannot be seen."""
    with contextlib.suppress(psutil.Error):
        for connection in psutil.net_connections(kind="tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port and connection.pid:
                return psutil.Process(connection.pid)
    return None


def free_ports(count: int) -> list[int]:
    """Return this many different TCP ports that nobody listens on now."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]


def free_rows(count: int, length: int) -> list[int]:
    """Return this many TCP ports, each free together with the `length` - 1 that follow it.

    They are below those that outgoing connections take, so that a server finds its port free also when it comes back.
    """
    rows: list[int] = []
    while len(rows) < count:
        first = random.randrange(*LISTENING_PORTS)
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(first, first + length):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            if all(abs(first - other) >= length for other in rows):
                rows.append(first)
    return rows


def accepts_connections(host: str, port: int) -> bool:
    """Tell whether a TCP connection is accepted now."""
    try:
        socket.create_connection((host, port), timeout=1.0).close()
    except OSError:
        return False
    return True


class Server:
    """A server process of ours with its log in a file."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        """Start the command; `started_s` is the monotonic time just before."""
        self._log = log
        self.started_s = time.monotonic()
        with log.open("wb") as output:
            self._popen = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
        self.process = psutil.Process(self._popen.pid)

    def alive(self) -> bool:
        """Tell whether the process still runs."""
        return self._popen.poll() is None

    def wait_until(self, ready: Callable[[], bool], timeout_s: float, poll_s: float = 0.002) -> None:
        """Poll until ready() is true; raises ServerFailedError if the process ends or time runs out before."""
        deadline_s = time.monotonic() + timeout_s
        while not ready():
            if not self.alive():
                raise ServerFailedError(f"the broker ended with status {self._popen.returncode}: {self.log_tail()}")
            if time.monotonic() > deadline_s:
                raise ServerFailedError(f"the broker was not ready after {timeout_s:.0f} s: {self.log_tail()}")
            time.sleep(poll_s)

    def log_tail(self) -> str:
        """Return the last lines of the server's log in one line."""
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return " | ".join(lines[-LOG_TAIL_LINES:]) or "(its log is empty)"

    def stop(self) -> None:
        """End the process with SIGTERM, and with SIGKILL if it ignores that; ended already is fine."""
        self._popen.send_signal(signal.SIGTERM)
        try:
            self._popen.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End the process with SIGKILL, as a crash would; ended already is fine."""
        self._popen.kill()
        self._popen.wait()


@contextlib.contextmanager
def serving(command: Sequence[str], log: Path) -> Iterator[Server]:
    """Run a server for as long as the context lasts."""
    server = Server(command, log)
    try:
        yield server
    finally:
        server.stop()
