"""What is told of a process of pytest-xdist that dies: by which signal, and where its threads were.

The native libraries of clients (librdkafka, Pulsar's C++ client) run in the processes of the tests, beside the embedded
broker. Where one of them crashes, the process and the test in it end, and nothing is known of the test. Such a crash is
told aloud, and its test runs once more, in a fresh process. If it passes there, the run goes on without an error.

That holds for one crash in a run, and only where none of our code can have crashed: the thread that crashed has no
frame of Exacta's, and a client's library is loaded. The broker runs in threads of its own, all of whose frames are
Python's. A process that was killed, for want of memory as well, leaves no traceback, and nor does one that Python
itself ends for a fatal error. Both are errors.
"""

import faulthandler
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, TextIO

import pytest

import exacta

CLIENTS = frozenset({"confluent_kafka.cimpl", "_pulsar"})
"""The native libraries that are known to crash: pulsar-client-cpp's issues 550 and 453 are two of the kind."""
PATIENCE_S = 300.0
PASSED_AFTER = "passed after a client's crash"
_OURS = f'File "{Path(exacta.__file__).parent}{os.sep}'
OF_XDIST = ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "PYTEST_CURRENT_TEST")


def is_of_client(traceback: str) -> bool:
    """Return whether a crash is a client library's, by what faulthandler wrote of it.

    A thread that Python does not know, such as librdkafka's own, is in no part of the text, or has no frame.
    """
    threads, _, modules = traceback.partition("Extension modules: ")
    _, _, current = threads.partition("Current thread ")
    return _OURS not in current.split("\n\n")[0] and not CLIENTS.isdisjoint(re.split(r"[, \n]+", modules))


class InWorker:
    """The process that runs tests: it leaves behind where its threads were."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: TextIO | None = None

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self) -> None:
        """Write to our file from now on, which is later than pytest's own plugin has chosen one."""
        self._file = open(self._path, "w")  # noqa: SIM115 - it stays open as long as the process runs
        faulthandler.enable(self._file)

    @pytest.hookimpl(tryfirst=True)
    def pytest_unconfigure(self) -> None:
        """Leave faulthandler to pytest's own plugin."""
        if self._file is not None:
            faulthandler.disable()
            self._file.close()


class InController:
    """The process that hands out tests: it tells of a crash."""

    def __init__(self, reports: list[str]) -> None:
        self._reports = reports
        self._folder = tempfile.TemporaryDirectory()
        self._told = ""
        self._traceback = ""
        self._has_been_patient = False

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Name the file that faulthandler writes to."""
        node.workerinput["crash"] = str(Path(self._folder.name) / node.gateway.id)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Note how a process has ended."""
        if not error:
            return
        code = node.gateway._io.popen.wait(PATIENCE_S)
        ended = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        if code == -signal.SIGKILL:
            ended += ", perhaps for want of memory"
        most_mib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
        self._traceback = Path(node.workerinput["crash"]).read_text(errors="replace")
        self._told = f"{node.gateway.id} ended by {ended}; no process has had more than {most_mib} MiB of memory"
        self._told += f"\n{self._traceback or 'It has left no traceback.'}"

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport) -> None:
        """Tell of it; run the test once more if it was a client's crash, and the first one."""
        told = f"{report.longrepr}\n{self._told}"
        if is_of_client(self._traceback) and not self._has_been_patient:
            self._has_been_patient = True
            code, printed = _run(crashitem)
            outcome = "passed" if code == 0 else f"ended with code {code}"
            told += f"\nA client's library has crashed, not Exacta. In a fresh process the test {outcome}:\n{printed}"
            if code == 0:
                report.outcome = PASSED_AFTER  # type: ignore[assignment]  # as pytest-xdist has it
        report.longrepr = told
        self._reports.append(told)

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Show what has passed after a crash by a letter of its own, and count it by itself."""
        if str(report.outcome) != PASSED_AFTER:
            return None
        return PASSED_AFTER, "C", PASSED_AFTER.upper()

    def pytest_unconfigure(self) -> None:
        """Remove the files."""
        self._folder.cleanup()


def _run(test: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test]
    environment = {name: value for name, value in os.environ.items() if name not in OF_XDIST}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False, env=environment)
    except subprocess.TimeoutExpired:
        return -1, f"It did not end within {PATIENCE_S:.0f} s."
    return done.returncode, done.stdout + done.stderr
