"""The signals that a server heeds: what stops it, and what lets it read its files again.

Theory of operation. A terminal that goes away sends SIGHUP, and takes the server with it. A service has no terminal,
and SIGHUP is the operator's word that files have changed, as it is for other servers. Whether there is a terminal is
asked at the start: when the signal has come, it may be gone.
"""

import asyncio
import os
import signal
from collections.abc import Callable


def heed(loop: asyncio.AbstractEventLoop, stop: Callable[[], object], read_again: Callable[[], object]) -> None:
    """Call `stop` at SIGTERM and SIGINT, and at SIGHUP where there is a terminal, else `read_again` at SIGHUP.

    As the Java virtual machine does it, what is ignored stays so: nohup ignores SIGHUP, to have us outlive the
    terminal, and a script's shell ignores SIGINT for its jobs in the background, whose work Ctrl-C does not mean.
    """
    loop.add_signal_handler(signal.SIGTERM, stop)
    for number, act in ((signal.SIGINT, stop), (signal.SIGHUP, stop if _has_terminal() else read_again)):
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, act)


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True
