"""The two victims, as processes: the broker and the Spark driver with everything below it.

This module owns starting them, killing them with signal 9, and finding Spark's processes by walking the tree. It does
not decide when.

Theory of operation: a Spark driver is a Python process, a Java virtual machine below it, below that one or more
Python daemons, each the leader of a process group of its own (so killing groups does not do), and below each daemon
the workers that it forked, which run the tasks. The tree must be walked before anything in it is killed: an orphan is
no longer below its grandparent. Workers that outlive their driver are zombies in the sense of KIP-98, not of the
kernel: they hold rows, connections and open transactions, and go on for as long as nobody tells them. A process is
always addressed through psutil, which refuses when its number belongs to another one by now.
"""

import contextlib
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import psutil
from msgspec import Struct

from exacta.posix import SIGKILL

_DAEMON = "pyspark.daemon"
_TASK_WORKER_MODULE = "pyspark.worker"
_LOST_TASK = re.compile(rb"^\S+ \S+ WARN TaskSetManager: .*Lost task [0-9.]+ in stage", re.MULTILINE)
_DAEMON_GONE_WITHIN_S = 2.0
_STOPPED_WITHIN_S = 10.0
_LOOK_EVERY_S = 0.001
_STOP_TIMEOUT_S = 30.0
# Below the range from which outgoing connections take their ports: while the broker is away, nobody else gets its port.
_FIRST_PORT, _LAST_PORT = 20_000, 32_000


def free_port() -> int:
    """Return a port of the loopback that nothing uses at the moment."""
    while True:
        port = random.randint(_FIRST_PORT, _LAST_PORT)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


class ServerProcess:
    """One process that writes its output to a log file and is started again after it ended."""

    def __init__(
        self, command: list[str], log: Path, environment: dict[str, str] | None = None, directory: Path | None = None
    ) -> None:
        self.log = log
        self._command = command
        self._environment = environment
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, also again once it has ended. Its standard input stays open for as long as this process lives."""
        if self._process is not None:
            self._reap()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._environment,
                cwd=self._directory,
                start_new_session=True,
            )

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """Return the process of the last start."""
        assert self._process is not None, "not started"
        return self._process

    def exit_code(self) -> int | None:
        """Return the exit code, or None while it runs."""
        return self.process.poll()

    def kill(self) -> None:
        """Kill it with signal 9 and wait until it is gone."""
        self.process.kill()
        self._reap()

    def end_input(self) -> None:
        """Close its standard input."""
        if self.process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()

    def wait(self, timeout_s: float) -> bool:
        """Wait until it ends; say whether it did."""
        try:
            self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _reap(self) -> None:
        self.process.wait()
        self.end_input()


class BrokerProcess(ServerProcess):
    """`exacta serve`."""

    def __init__(
        self, data: Path, port: int, log: Path, pulsar_port: int | None = None, more: Sequence[str] = ()
    ) -> None:
        self.bootstrap_servers = f"127.0.0.1:{port}"
        command = ["serve", "--data", str(data), "--listen", self.bootstrap_servers, *more]
        self.pulsar_url: str | None = None
        """The URL for Pulsar's clients; None: it serves none."""
        if pulsar_port is not None:
            self.pulsar_url = f"pulsar://127.0.0.1:{pulsar_port}"
            command += ["--pulsar-listen", f"127.0.0.1:{pulsar_port}"]
        super().__init__([sys.executable, "-m", "exacta.cli", *command], log)

    def kill_one(self) -> str:
        """Kill it, and say what was killed."""
        self.kill()
        return "broker"

    def stop(self) -> None:
        """Stop it as an operator would; kill it if it does not."""
        if self._process is None or self.exit_code() is not None:
            return
        self.process.terminate()
        if not self.wait(_STOP_TIMEOUT_S):
            self.process.kill()
        self._reap()


class Zombies(Struct):
    """Workers whose driver is dead."""

    workers: list[psutil.Process]

    def thaw(self) -> None:
        """Let the frozen ones run on."""
        _signal(self.workers, signal.SIGCONT)

    def alive(self) -> int:
        """Count those that still run."""
        return sum(1 for worker in self.workers if _is_alive(worker))

    def kill(self) -> None:
        """Kill those that are left."""
        _signal(self.workers, SIGKILL)


class DriverProcess(ServerProcess):
    """The pipeline's Python process and all of Spark below it."""

    def stop(self, timeout_s: float = _STOP_TIMEOUT_S) -> bool:
        """Ask it to stop both queries and end; kill all of it if it does not. Say whether it ended by itself, well."""
        if self._process is None:
            return False
        tree = self._tree()
        self.end_input()
        ended = self.wait(timeout_s)
        _signal([*tree, *self._tree()], SIGKILL)
        self._reap()
        self.kill_survivors()
        return ended and self.process.returncode == 0

    def kill_tree(self, *, freeze_workers: bool) -> Zombies:
        """Kill driver, Java and daemons, and leave the workers, as they are or frozen (SIGSTOP)."""
        tree = self._tree()
        workers = [process for process in tree if _is_worker(process)]
        if freeze_workers:
            # Daemons first: where a process group loses its last parent while members are stopped, the kernel sends
            # these a SIGHUP, and a frozen worker would be dead on thawing.
            daemons = [process for process in tree if _DAEMON in _command(process) and process not in workers]
            _signal(daemons, SIGKILL)
            psutil.wait_procs(daemons, timeout=_DAEMON_GONE_WITHIN_S)
            _signal(workers, signal.SIGSTOP)
            _wait_until_stopped(workers)
        _signal([process for process in tree if process not in workers], SIGKILL)
        self._reap()
        return Zombies(workers)

    def kill_survivors(self) -> None:
        """Kill what is left of a driver that ended by itself, as a supervisor would before it starts the next one.

        Its tree has no root any more; but all of it is still in the session that its root was the leader of.
        """
        session = self.process.pid
        if self.process.returncode is not None and psutil.pid_exists(session):
            return  # another process has its number by now, which it gets only where nobody of the session is left
        _signal([process for process in psutil.process_iter() if _session(process) == session], SIGKILL)

    def task_workers(self) -> list[psutil.Process]:
        """Return the Python workers in which tasks run, in the order of their numbers."""
        workers = [process for process in self._tree() if _is_worker(process)]
        return sorted((w for w in workers if _TASK_WORKER_MODULE in _command(w)), key=lambda worker: worker.pid)

    def lost_tasks(self) -> int:
        """Count the tasks that Spark has reported lost, in all its lives."""
        return len(_LOST_TASK.findall(self.log.read_bytes()))

    def _tree(self) -> list[psutil.Process]:
        if self.process.returncode is not None:
            return []  # its number may be another process's by now
        try:
            root = psutil.Process(self.process.pid)
            return [root, *root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []


def _command(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return []


def _is_worker(process: psutil.Process) -> bool:
    """A worker is a fork of its daemon, with the daemon's command line, whichever module Spark runs as one."""
    command = _command(process)
    try:
        parent = process.parent()
    except psutil.NoSuchProcess:
        return False
    return parent is not None and command != [] and command == _command(parent)


def _session(process: psutil.Process) -> int | None:
    try:
        return os.getsid(process.pid)
    except ProcessLookupError:
        return None


def _status(process: psutil.Process) -> str:
    try:
        return str(process.status())
    except psutil.NoSuchProcess:
        return str(psutil.STATUS_DEAD)


def _is_alive(process: psutil.Process) -> bool:
    return process.is_running() and _status(process) not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)


def _signal(processes: list[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def _wait_until_stopped(processes: list[psutil.Process]) -> None:
    """Wait until a SIGSTOP has taken effect: one that is on a processor runs on until it next enters the kernel."""
    deadline = time.monotonic() + _STOPPED_WITHIN_S
    while any(_is_alive(process) and _status(process) != psutil.STATUS_STOPPED for process in processes):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not stopped by SIGSTOP within {_STOPPED_WITHIN_S:.0f} s: {processes}")
        time.sleep(_LOOK_EVERY_S)


def spark_environment(scratch: Path) -> dict[str, str]:
    """Return the environment of a Spark driver: this interpreter for its workers, a Java even where there is none.

    A killed driver leaves its files behind in `scratch`.
    """
    from exacta.spark.java import java_home

    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    environment["PYSPARK_PYTHON"] = environment["PYSPARK_DRIVER_PYTHON"] = sys.executable
    environment["JAVA_HOME"] = str(java_home())
    environment["SPARK_LOCAL_IP"] = "127.0.0.1"
    environment["SPARK_LOCAL_DIRS"] = environment["TMPDIR"] = str(scratch)
    environment["TZ"] = "UTC"
    return environment
