"""A broker in a process that a shell command starts again, with its process id in a file."""

import contextlib
import os
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path

from tests.conformance.brokers import HOST, BrokerProcess, broker_process, free_port
from tests.pulsar.serving import Served as ServedForPulsar


class Served:
    """The broker, as `exacta verify` is told of it."""

    def __init__(self, broker: BrokerProcess, folder: Path, bootstrap: str = "") -> None:
        self.bootstrap = bootstrap or broker.bootstrap
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
    with broker_process(folder) as broker, _ended(Served(broker, folder), broker) as found:
        yield found


@contextlib.contextmanager
def served_to_both(folder: Path) -> Iterator[tuple[Served, str]]:
    """Run an Exacta for both protocols; yield it, and the address for Pulsar's clients."""
    port = free_port()
    with (
        ServedForPulsar(folder / "data", folder / "log", free_port(), port) as broker,
        _ended(Served(broker, folder, f"{HOST}:{port}"), broker) as found,
    ):
        yield found, broker.url


@contextlib.contextmanager
def _ended(found: Served, broker: BrokerProcess) -> Iterator[Served]:
    try:
        yield found
    finally:
        found.end()
        broker.kill()
