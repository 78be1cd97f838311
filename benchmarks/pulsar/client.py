"""Run the load, a Java program, and take the figures around its measured part.

Owns the talk with `PulsarLoad`: its lines READY and MEASURED are answered by a line each, so that the broker's usage is
read exactly around what counts. The last line is its report. A load that fails, or takes too long, is a
`LoadFailedError` with the end of what it has logged.
"""

import contextlib
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import msgspec
import psutil

from benchmarks.clients import ReadingFailedError
from benchmarks.processes import Usage, machine_cpu_s
from benchmarks.pulsar.distribution import LOG_CONFIGURATION
from benchmarks.session import PHASE_TIMEOUT_S, Phase, Scale
from benchmarks.workers import Outcome, Tally

HEAP = "-Xmx1g"
LOG_TAIL = 1_000


class LoadFailedError(Exception):
    """The load ended badly; the text holds the end of its log."""


class Report(msgspec.Struct, frozen=True):
    """The last line of a load that has a measured part."""

    operations: int
    seconds: float
    payload_bytes: int
    acknowledged: int
    found: int
    """The messages that a reader has found of those that were acknowledged."""
    latencies_ms: list[float]
    read_seconds: float = 0.0


class Talk:
    """A load that runs, line by line."""

    def __init__(self, process: "subprocess.Popen[str]", log: Path) -> None:
        """Talk with this process."""
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = psutil.Process(process.pid)
        self._to: IO[str] = process.stdin
        self._lines = iter(process.stdout)
        self._log = log

    def say(self, line: str = "") -> None:
        """Send a line."""
        self._to.write(f"{line}\n")
        self._to.flush()

    def hear(self) -> str:
        """Return the next line; raises LoadFailedError where there is none."""
        line = next(self._lines, "").strip()
        if not line:
            raise LoadFailedError(f"the load has ended: {self._log.read_text(errors='replace')[-LOG_TAIL:]}")
        return line

    def expect(self, expected: str) -> None:
        """Wait for this line; raises LoadFailedError where another one comes."""
        line = self.hear()
        if line != expected:
            raise LoadFailedError(f"the load said {line[:LOG_TAIL]} instead of {expected}")


@dataclass(frozen=True, kw_only=True)
class JavaClient:
    """Pulsar's client for Java: its jars, the compiled load, and a folder for its logs."""

    jars: Path
    classes: Path

    @contextlib.contextmanager
    def talk(self, load: str, url: str, scale: Scale, warm_up_s: float) -> Iterator[Talk]:
        """Run a load for as long as the context lasts."""
        arguments = [load, url, str(warm_up_s), str(scale.seconds)]
        options: Sequence[str] = [HEAP, f"-Dlog4j2.configurationFile={LOG_CONFIGURATION}", "-Dpulsar.log.level=ERROR"]
        command = ["java", *options, "-cp", f"{self.classes}:{self.jars}/*", "PulsarLoad", *arguments]
        log = self.classes / "load.log"
        with log.open("wb") as errors:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, bufsize=1
            )
        watchdog = threading.Timer(3 * PHASE_TIMEOUT_S + scale.seconds + warm_up_s, process.kill)
        watchdog.start()
        try:
            yield Talk(process, log)
        finally:
            watchdog.cancel()
            process.kill()
            process.communicate()

    def measure(
        self, load: str, url: str, scale: Scale, warm_up_s: float, usage: Callable[[], Usage | None]
    ) -> tuple[Phase, Report]:
        """Run a load; raises ReadingFailedError where a reader did not find what was acknowledged."""
        with self.talk(load, url, scale, warm_up_s) as talk:
            talk.expect("READY")
            before, machine_before_s, started_s = usage(), machine_cpu_s(), time.monotonic()
            client_before = _cpu(talk.process)
            talk.say()
            talk.expect("MEASURED")
            after, machine_after_s, ended_s = usage(), machine_cpu_s(), time.monotonic()
            client_after = _cpu(talk.process)
            talk.say()
            report = msgspec.json.decode(talk.hear(), type=Report)
        if report.found != report.acknowledged:
            raise ReadingFailedError(
                f"{report.acknowledged} messages were acknowledged, a reader finds {report.found}"
                " (less than nothing: some of them twice)"
            )
        tally = Tally(
            operations=report.operations,
            seconds=report.seconds,
            payload_bytes=report.payload_bytes,
            latencies_ms=report.latencies_ms,
        )
        used = {key: client_after[key] - client_before.get(key, 0.0) for key in client_after}
        busiest = max(used.values()) / (ended_s - started_s)
        phase = Phase(
            outcomes=[Outcome(tally=tally, cpu_s=sum(used.values()), busiest_thread=busiest)],
            broker_before=before,
            broker_after=after,
            machine_cpu_s=machine_after_s - machine_before_s,
            elapsed_s=ended_s - started_s,
        )
        return phase, report

    def said(self, load: str, url: str, scale: Scale) -> Any:
        """Run a load that has no measured part; return what its one line says, which may be JSON or a word."""
        with self.talk(load, url, scale, scale.warm_up_s) as talk:
            line = talk.hear()
        return msgspec.json.decode(line) if line.startswith("{") else line


def _cpu(process: psutil.Process) -> dict[int, float]:
    """Return the processor seconds of each thread so far; one that ends meanwhile is not seen any more."""
    return {each.id: each.user_time + each.system_time for each in process.threads()}
