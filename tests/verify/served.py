"""A broker in a process that a shell command starts again, with its process id in a file."""

import contextlib
import os
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path

from tests.conformance.brokers import BrokerProcess, broker_process


class Served:
    """The broker, as `exacta verify` is told of it."""

    def __init__(self, broker: BrokerProcess, folder: Path) -> None:
        self.bootstrap = broker.bootstrap
        self.pid_file = folder / "pid"
        start = f"{shlex.join(map(str, broker.command))} >>{folder / 'restarted.log'} 2>&1 & echo $! >{self.pid_file}"
        script = folder / "restart"
        script.write_text(f"#!/bin/sh\n{start}\n")
        script.chmod(0o755)
        self.restart_command = str(script)
        self.pid_file.write_text(str(broker.pid))

    def end(self) -> None:
        """End the one that runs now."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(self.pid_file.read_text()), signal.SIGKILL)


@contextlib.contextmanager
def served(folder: Path) -> Iterator[Served]:
    """Run the broker under test."""
    with broker_process(folder) as broker:
        found = Served(broker, folder)
        try:
            yield found
        finally:
            found.end()
            broker.kill()
