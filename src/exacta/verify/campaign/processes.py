"""Start, stop and kill the client processes, and put what they write down into the history.

This module owns the pipes. The crash of a client (librdkafka is native code) is a crash like any other, and no fault of
the cluster. A client that ends with an error of its own shows a fault of this checker, and ends the run. A killed
process may leave the beginning of a line in its pipe. That operation was never written down, and the process's
successors know nothing of it.
"""

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from exacta.verify.campaign.settings import CampaignError
from exacta.verify.history import CommitAsked, Op, decode
from exacta.verify.workload.spec import Spec

_PROGRAM = (sys.executable, "-m", "exacta.verify.workload.process")
_TAIL_BYTES = 400


class ClientProcess:
    """One client, in one incarnation."""

    def __init__(self, spec: Spec, log: Path, receive: Callable[[Op], None]) -> None:
        """Start it; `receive` gets each operation that it writes down, from a thread; `log` gets its standard error."""
        self.spec = spec
        self.heard_s = time.monotonic()
        """The time at which the process last wrote something down."""
        self.killed = False
        self._failure = ""
        self._log = log
        self._armed = False
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                _PROGRAM,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,  # Ctrl-C is for its parent
            )
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended already, and `check` says why
            self._process.stdin.write(msgspec.json.encode(spec) + b"\n")
            self._process.stdin.flush()
        self._listener = threading.Thread(target=self._listen, args=(receive,), daemon=True)
        self._listener.start()

    def stop(self) -> None:
        """Tell it to end when it has finished what it is doing."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()

    def kill(self) -> None:
        """End it by SIGKILL, and take what it wrote until then."""
        self.killed = True
        self._process.kill()
        self._process.wait()
        self._listener.join()
        self._close()

    def kill_as_it_commits(self, within_s: float) -> None:
        """End it by SIGKILL when it says that it is about to commit, or when it has not said so for `within_s`."""
        self._armed = True
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(within_s)
        self._process.kill()

    def wait(self, timeout_s: float) -> bool:
        """Wait until it has ended by itself; say whether it has. Raises `CampaignError` where it failed."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        self._listener.join()
        self._close()
        self.check()
        return True

    @property
    def crashed(self) -> str:
        """Return the signal that ended it, though nobody here sent one, in words; empty where none did."""
        code = self._process.poll()
        return f"signal {-code}" if code is not None and code < 0 else ""

    def check(self) -> None:
        """Raise `CampaignError` where it has ended by itself with an error of its own, or wrote down nonsense."""
        if self._failure:
            raise CampaignError(f"client {self.spec.process} failed: {self._failure}")
        code = self._process.poll()
        if code is not None and code > 0:
            end = self._log.read_bytes()[-_TAIL_BYTES:].decode(errors="replace").strip().splitlines()
            reason = end[-1] if end else f"exit code {code}"
            raise CampaignError(f"client {self.spec.process} failed: {reason} (see {self._log})")

    def _listen(self, receive: Callable[[Op], None]) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.heard_s = time.monotonic()
            if not line.endswith(b"\n"):
                continue
            try:
                op = decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                self._failure = f"what it wrote down is no operation: {error}"  # this is a thread of its own
                continue
            if self._armed and isinstance(op, CommitAsked):
                self._process.kill()
            receive(op)

    def _close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()
