"""Run loads in client processes of their own, in step: warm up, wait, all measure at once, report.

A load is a plain function of some module here, `load(gate, **options) -> Tally`. It sets up its clients, warms up,
enters `with gate.measured():` for the part that counts, and returns what it did. Parent and workers talk over one
pipe each, in three steps: READY (warmed up, blocked until the parent answers), MEASURED (the measured part is over),
then an `Outcome` or a `Failure`. The parent passes from one step to the next only when every worker has taken it, so
it can read the broker's usage exactly around the measured part. A worker that fails, dies or takes too long ends the
whole group with WorkerFailedError.
"""

from __future__ import annotations  # Connection is generic for the type checker only

import contextlib
import multiprocessing
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any

import psutil

READY = "ready"
MEASURED = "measured"
GO = "go"
END_TIMEOUT_S = 10.0


class WorkerFailedError(Exception):
    """A client process failed, died or took too long."""


@dataclass(frozen=True, kw_only=True)
class Tally:
    """The work of a load in its measured part; `acknowledged` counts the warm-up too, for checking the topic later."""

    operations: int
    seconds: float
    payload_bytes: int = 0
    latencies_ms: list[float] = field(default_factory=list)
    acknowledged: int = 0


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A tally with what the measured part cost the client: CPU seconds, and the busiest thread's share of one core."""

    tally: Tally
    cpu_s: float
    busiest_thread: float


@dataclass(frozen=True, kw_only=True)
class Failure:
    """The reason why a load failed: one line, and the traceback."""

    reason: str
    details: str


class Gate:
    """A load's side of the pipe."""

    def __init__(self, connection: Connection[Any, Any]) -> None:
        """Talk over the connection."""
        self._connection = connection
        self.cpu_s = 0.0
        self.busiest_thread = 0.0

    @contextlib.contextmanager
    def measured(self) -> Iterator[None]:
        """Wait until every worker is ready, then count what the body costs this process."""
        self._connection.send(READY)
        self._connection.recv()
        process = psutil.Process()
        before = {thread.id: thread.user_time + thread.system_time for thread in process.threads()}
        started_s = time.perf_counter()
        started_cpu_s = time.process_time()
        yield
        self.cpu_s = time.process_time() - started_cpu_s
        elapsed_s = time.perf_counter() - started_s
        after = {thread.id: thread.user_time + thread.system_time for thread in process.threads()}
        busiest_s = max(cpu_s - before.get(thread, 0.0) for thread, cpu_s in after.items())
        self.busiest_thread = busiest_s / elapsed_s if elapsed_s > 0 else 0.0
        self._connection.send(MEASURED)


Load = Callable[..., Tally]


def _worker(connection: Connection[Any, Any], load: Load, options: dict[str, Any]) -> None:
    # Ctrl-C reaches the whole foreground group; the parent alone decides what then happens.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gate = Gate(connection)
    try:
        tally = load(gate, **options)
        connection.send(Outcome(tally=tally, cpu_s=gate.cpu_s, busiest_thread=gate.busiest_thread))
    except Exception as error:  # noqa: BLE001  (whatever it was, the parent must hear of it)
        connection.send(Failure(reason=f"{type(error).__name__}: {error}", details=traceback.format_exc()))


class WorkerGroup:
    """Processes that run one load each; use as a context manager, which ends whatever still runs."""

    def __init__(self, load: Load, options: Sequence[dict[str, Any]]) -> None:
        """Start one process for each set of options."""
        # Spawned, not forked: a forked librdkafka would be without its threads.
        context = multiprocessing.get_context("spawn")
        self._finished = False
        self._connections: list[Connection[Any, Any]] = []
        self._processes = []
        for each in options:
            ours, theirs = context.Pipe()
            process = context.Process(target=_worker, args=(theirs, load, each), daemon=True)
            process.start()
            # The worker holds its own copy: with ours closed, its death reads as the end of the pipe.
            theirs.close()
            self._connections.append(ours)
            self._processes.append(process)

    def __enter__(self) -> WorkerGroup:
        """Return the group."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the processes: in order if they are about to end, otherwise by force."""
        for connection in self._connections:
            connection.close()
        for process in self._processes:
            process.join(END_TIMEOUT_S if process.exitcode is None and self._finished else 0)
            if process.is_alive():
                process.kill()
                process.join()
            process.close()

    def wait_until_ready(self, timeout_s: float) -> None:
        """Wait until every load has warmed up."""
        self._gather(timeout_s, READY)

    def go(self) -> None:
        """Let all begin their measured part."""
        for connection in self._connections:
            connection.send(GO)

    def wait_until_measured(self, timeout_s: float) -> None:
        """Wait until every measured part is over."""
        self._gather(timeout_s, MEASURED)

    def outcomes(self, timeout_s: float) -> list[Outcome]:
        """Return what the loads did, in the order of their options."""
        outcomes = [answer for answer in self._gather(timeout_s, None) if isinstance(answer, Outcome)]
        self._finished = True
        return outcomes

    def _gather(self, timeout_s: float, expected: str | None) -> list[object]:
        """Take one message from every worker: `expected`, or an Outcome where that is None."""
        deadline_s = time.monotonic() + timeout_s
        answers: dict[int, object] = {}
        while len(answers) < len(self._connections):
            waiting = [connection for index, connection in enumerate(self._connections) if index not in answers]
            readable = wait(waiting, max(0.0, deadline_s - time.monotonic()))
            if not readable:
                raise WorkerFailedError(f"a client took more than {timeout_s:.0f} s until it was {expected or 'done'}")
            for index, connection in enumerate(self._connections):
                if connection in readable:
                    answers[index] = self._receive(connection, expected)
        return [answers[index] for index in sorted(answers)]

    @staticmethod
    def _receive(connection: Connection[Any, Any], expected: str | None) -> object:
        try:
            message: object = connection.recv()
        except (EOFError, OSError) as error:
            raise WorkerFailedError("a client process died") from error
        if isinstance(message, Failure):
            raise WorkerFailedError(message.reason) from RuntimeError(message.details)
        if message != expected and not (expected is None and isinstance(message, Outcome)):
            raise WorkerFailedError(f"a load left out a step: {type(message).__name__} where {expected} was due")
        return message
