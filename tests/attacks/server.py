"""`exacta serve` with an event loop that measures its turns; called as a program of its own.

Each line on its standard input asks for the longest turn since the last one. The answer goes to standard error, since
standard output is the server's.
"""

import asyncio
import sys
import threading
import time
from unittest.mock import patch

from exacta.cli.serve import run

SAID = "longest turn: "


class MeasuredLoop(asyncio.SelectorEventLoop):
    """Keeps the longest turn, in seconds of the thread's processor time."""

    longest_s = 0.0

    def _run_once(self) -> None:
        began_s = time.thread_time()
        super()._run_once()  # type: ignore[misc]
        self.longest_s = max(self.longest_s, time.thread_time() - began_s)


def main() -> int:
    """Serve as the arguments of `exacta serve` say."""
    loop = MeasuredLoop()

    def tell() -> None:
        for _ in sys.stdin:
            longest_s, loop.longest_s = loop.longest_s, 0.0
            sys.stderr.write(f"{SAID}{longest_s:.6f}\n")
            sys.stderr.flush()

    threading.Thread(target=tell, daemon=True).start()
    with patch("exacta.server.process.new_event_loop", lambda: loop):
        return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
