"""A process of its own for what takes the interpreter for long: folding a snapshot, writing segments anew.

Owns the child process: how it is begun, given its job, heard, and ended. A job is a function that can be imported and
its arguments, all of which pickle takes; what it returns or raises comes back.

Theory of operation. A thread of this process would share the interpreter with the event loop, and hold it up. So the
thread that asks waits for a child. There is one child for each job: they are rare, and nothing of them stays in memory.

The child must not outlive its process: another one may open the directory at once. It reads its standard input, which
ends when we do, and ends itself then. What it may still write before that is a file with a name that ends in `.tmp`;
names that mean something are given by the process that holds the lock.
"""

import os
import pickle
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from exacta.adapters.local.files import Files

T = TypeVar("T")
_LENGTH = struct.Struct("<Q")
NICENESS = 10
_MAIN = (
    "import os, sys; os.nice({niceness}); sys.path[:] = {path!r}; "
    "from exacta.adapters.local.child_process import main; main({directory!r})"
)


class Interrupted(Exception):
    """The journal is being closed: the job was given up."""


class Aside(Protocol):
    """What runs long jobs for one journal."""

    def run(self, job: Callable[..., T], *args: object) -> T:
        """Return `job(files, *args)`; raise what it raises, Interrupted, or OSError where it cannot be run."""

    def stop(self) -> None:
        """Give up the job that runs, from another thread; run no other."""


class ChildProcess:
    """Implement `Aside` over the files of a directory, one job at a time."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._is_stopped = False

    def run(self, job: Callable[..., T], *args: object) -> T:
        """See `Aside.run`."""
        request = pickle.dumps((job, args))
        command = _MAIN.format(niceness=NICENESS, path=sys.path, directory=os.fspath(self._directory.absolute()))
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
                    child.stdin.write(_LENGTH.pack(len(request)) + request)
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
        """See `Aside.stop`."""
        with self._lock:
            self._is_stopped = True
            if self._child is not None:
                self._child.kill()


class InPlace:
    """Implement `Aside` where it is asked for it: over files that no other process has."""

    def __init__(self, files: "Files") -> None:
        self._files = files

    def run(self, job: Callable[..., T], *args: object) -> T:
        """See `Aside.run`; the job gets copies, as another process would."""
        copied_job, copies = pickle.loads(pickle.dumps((job, args)))
        return pickle.loads(pickle.dumps(copied_job(self._files, *copies)))  # type: ignore[no-any-return]

    def stop(self) -> None:
        """See `Aside.stop`: nothing runs while anybody else does."""


def main(directory: str) -> None:
    """Run the job that standard input tells, and write what it returns or raises to standard output."""
    from exacta.adapters.local.files import BackgroundFiles

    signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # in the background of the session it may write to the terminal
    # Whatever the job prints must not get among the answer.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests = sys.stdin.buffer
    (length,) = _LENGTH.unpack(requests.read(_LENGTH.size))
    job, args = pickle.loads(requests.read(length))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        answer = pickle.dumps((None, job(BackgroundFiles(Path(directory)), *args)))
    except Exception as error:  # noqa: BLE001  # whoever asked for the job hears of it
        answer = pickle.dumps((error, None))
    with answers:
        answers.write(answer)
    os._exit(0)


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(1)
