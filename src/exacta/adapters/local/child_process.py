"""Child processes for the journal's long jobs: folding a snapshot, rewriting segments.

This module begins a child process, gives it its job, takes its answer, and ends it. The child itself runs `child_main`.
A job is a function that can be imported and its arguments, all of which pickle takes; what it returns or raises comes
back.

Theory of operation. A thread of this process would share the interpreter with the event loop, and hold it up. So the
thread that asks for a job waits for a child. There is one child for each job: jobs are rare, and nothing of them stays
in memory.

The child must not outlive its process: another process may open the directory at once. The child reads its standard
input, which ends when its parent does, and then ends itself. What it may still write before that is a file whose name
ends in `.tmp`; the process that holds the lock gives files the names that mean something.
"""

import os
import pickle
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

T = TypeVar("T")
LENGTH = struct.Struct("<Q")
"""The size of a job in bytes, which precedes the job on the child's standard input."""
NICENESS = 10
_MAIN_MODULE = "exacta.adapters.local.child_main"
_MAIN = "import os, sys; os.nice({niceness}); sys.path[:] = {path!r}; from {module} import main; main({directory!r})"


class Interrupted(Exception):
    """The journal is being closed: the job was given up."""


class JobRunner(Protocol):
    """Run long jobs for one journal, over its files."""

    def run(self, job: Callable[..., T], *args: object) -> T:
        """Return `job(files, *args)`; raise what it raises, Interrupted, or OSError where it cannot be run."""

    def stop(self) -> None:
        """Give up the job that is running and run no other; to be called on another thread."""


class ChildProcess:
    """Implement `JobRunner` over the files of a directory, one job at a time."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._is_stopped = False

    def run(self, job: Callable[..., T], *args: object) -> T:
        """See `JobRunner.run`."""
        request = pickle.dumps((job, args))
        command = _MAIN.format(
            niceness=NICENESS, path=sys.path, module=_MAIN_MODULE, directory=os.fspath(self._directory.absolute())
        )
        with self._lock:
            if self._is_stopped:
                raise Interrupted
            child = self._child = subprocess.Popen(
                [sys.executable, "-c", command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                # An interrupt from the keyboard is for us. In a session of its own Linux would give it as much as us,
                # whatever its niceness (autogroups).
                process_group=0,
            )
        assert child.stdin is not None
        assert child.stdout is not None
        answer = b""
        try:
            with child.stdout, child.stdin:
                try:
                    child.stdin.write(LENGTH.pack(len(request)) + request)
                    child.stdin.flush()
                    answer = child.stdout.read()
                except OSError:
                    pass  # it ended early: there is no answer
        finally:
            with self._lock:
                child.kill()
                child.wait()
                self._child = None
        if self._is_stopped:
            raise Interrupted
        if not answer:
            raise OSError(f"the process that was to run {job.__name__} ended without an answer")
        error, result = pickle.loads(answer)
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]

    def stop(self) -> None:
        """See `JobRunner.stop`."""
        with self._lock:
            self._is_stopped = True
            if self._child is not None:
                self._child.kill()
