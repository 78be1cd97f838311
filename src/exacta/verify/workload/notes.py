"""Write down the operations of a client process on its standard output, with times since the run began."""

import os
import threading
import time

from exacta.verify.history import Op, encode

_STANDARD_OUTPUT = 1


class Notes:
    """A writer of operations that writes at once, without a buffer that a kill would lose."""

    def __init__(self, epoch_ns: int, output: int = _STANDARD_OUTPUT) -> None:
        self._epoch_ns = epoch_ns
        self._output = output
        self._lock = threading.Lock()

    def now_us(self) -> int:
        """Return the time since the run began."""
        return (time.monotonic_ns() - self._epoch_ns) // 1000

    def write(self, op: Op) -> None:
        """Write down an operation; returns when it can no longer be lost by a kill."""
        line = memoryview(encode(op))
        with self._lock:
            while line:
                line = line[os.write(self._output, line) :]
