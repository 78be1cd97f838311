"""The client processes: started, told to stop, killed, and listened to; what they write down goes into the history.

Owns the pipes. A client that crashes (librdkafka is native code) is a crash like any other, and none of the cluster's;
one that ends with an error of its own is a fault of this checker, and ends the run. A process that is killed may leave
the beginning of a line in its pipe: that operation was never written down, and its successors know nothing of it.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec

from exacta.verify.campaign.settings import CampaignError
from exacta.verify.workload.spec import Spec

_PROGRAM = (sys.executable, "-m", "exacta.verify.workload.process")
_TAIL_BYTES = 400
_COMMITS = b'{"op":"commit"'


class ClientProcess:
    """One client, in one incarnation."""

    def __init__(self, spec: Spec, log: Path, receive: Callable[[bytes], None]) -> None:
        """Start it; `receive` gets each line that it writes down, from a thread; `log` gets its standard error."""
        self.spec = spec
        self._log = log
        self._armed = False
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                _PROGRAM,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,  # Ctrl-C is for whoever started it
            )
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(spec) + b"\n")
        self._process.stdin.flush()
        self._listener = threading.Thread(target=self._listen, args=(receive,), daemon=True)
        self._listener.start()

    def stop(self) -> None:
        """Tell it to end when it has finished what it is doing."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def kill(self) -> None:
        """End it by SIGKILL, and take what it wrote until then."""
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
        """The signal that ended it, though nobody here sent one, in words; empty where none did."""
        code = self._process.poll()
        return f"signal {-code}" if code is not None and code < 0 else ""

    def check(self) -> None:
        """Raise `CampaignError` where it has ended by itself with an error of its own."""
        code = self._process.poll()
        if code is not None and code > 0:
            end = self._log.read_bytes()[-_TAIL_BYTES:].decode(errors="replace").strip().splitlines()
            reason = end[-1] if end else f"exit code {code}"
            raise CampaignError(f"client {self.spec.process} failed: {reason} (see {self._log})")

    def _listen(self, receive: Callable[[bytes], None]) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if self._armed and line.startswith(_COMMITS):
                self._process.kill()
            if line.endswith(b"\n"):
                receive(line)

    def _close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if not self._process.stdin.closed:
            self._process.stdin.close()
        self._process.stdout.close()
