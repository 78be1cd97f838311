"""Signals that a test sends: they must do what they do in the foreground, wherever the tests themselves run."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def heard(*numbers: int) -> Iterator[None]:
    """Let processes that are started meanwhile hear signals which this process may have inherited as ignored.

    A script's job in the background ignores SIGINT, and what nohup starts ignores SIGHUP. A process inherits that. It
    inherits no handler, so this process has one that does nothing, and goes on ignoring them.
    """
    ignored = [number for number in numbers if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, lambda *_: None)
    try:
        yield
    finally:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)
