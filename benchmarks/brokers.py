"""The brokers that can be measured, behind one interface: how each is started, found ready, looked at and ended.

A `Launcher` makes brokers, a `Broker` is one that runs. Every launch begins with an empty data folder under the
benchmark's work folder and leaves nothing behind. A broker that somebody else runs (`--bootstrap`) has a launcher
too, which starts and ends nothing; cases that need a start of their own are left out there.
"""

import compileall
import contextlib
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psutil

import exacta
from benchmarks import clients
from benchmarks.kafka.distribution import KAFKA_VERSION, java_banner
from benchmarks.kafka.node import Node
from benchmarks.processes import Server, Usage, accepts_connections, free_ports, listener, serving, usage

HOST = "127.0.0.1"
READY_TIMEOUT_S = 60.0


@dataclass(frozen=True, kw_only=True)
class Broker:
    """A broker that runs, or is about to: where it listens, and its process as far as that is known."""

    bootstrap: str
    process: psutil.Process | None
    server: Server | None = None

    def usage(self) -> Usage | None:
        """Read what the broker has used so far, or None if its process is not known."""
        return usage(self.process) if self.process is not None else None

    def wait_until_listening(self) -> None:
        """Wait for an open port; raises ServerFailedError."""
        host, _, port = self.bootstrap.rpartition(":")
        if self.server is not None:
            self.server.wait_until(lambda: accepts_connections(host, int(port)), READY_TIMEOUT_S)

    def wait_until_ready(self) -> None:
        """Wait until the broker answers a client; raises ServerFailedError or what the client raises."""
        self.wait_until_listening()
        if self.server is not None:
            self.server.wait_until(lambda: clients.answers(self.bootstrap), READY_TIMEOUT_S)


class Launcher(Protocol):
    """Make brokers of one kind."""

    name: str
    starts: bool
    """True if launch() starts a process of its own."""

    def versions(self) -> str:
        """Describe what runs, for the report."""
        ...

    def launch(self) -> contextlib.AbstractContextManager[Broker]:
        """Start a broker on empty data, not yet ready, and end it with the context."""
        ...


def first_acknowledgement_s(broker: Broker) -> float:
    """Send a message to a broker that is starting; return the seconds from the start of its process to the answer."""
    if broker.server is None:
        raise ValueError(f"{broker.bootstrap} was not started by the benchmark")
    broker.wait_until_listening()
    clients.send_first(broker.bootstrap)
    return time.monotonic() - broker.server.started_s


@contextlib.contextmanager
def served(
    data: Path, log: Path, options: Mapping[str, object] | None = None, *, web: str | None = None
) -> Iterator[Broker]:
    """Run `exacta serve`, from this environment, with these options; it may not listen yet. `web`: HOST:PORT."""
    bootstrap = f"{HOST}:{free_ports(1)[0]}"
    program = str(Path(sys.executable).with_name("exacta"))
    settings = [argument for name, value in (options or {}).items() for argument in ("--set", f"{name}={value}")]
    command = [program, "serve", "--data", str(data), "--listen", bootstrap, *settings]
    if web is not None:
        command += ["--web-listen", web]
    with serving(command, log) as server:
        yield Broker(bootstrap=bootstrap, process=server.process, server=server)


class ExactaLauncher:
    """Start `exacta serve` from the environment that runs the benchmark, at its defaults."""

    name = "Exacta"
    starts = True

    def __init__(self, work: Path) -> None:
        """Remember the folder under which each launch has its data; compile what an installer would have compiled."""
        self._work = work
        for folder in exacta.__path__:
            compileall.compile_dir(folder, quiet=1)

    def versions(self) -> str:
        """Describe Exacta and the Python that runs it."""
        python = ".".join(str(part) for part in sys.version_info[:3])
        return f"Exacta {exacta.__version__} on Python {python}, fdatasync before what is promised"

    @contextlib.contextmanager
    def launch(self) -> Iterator[Broker]:
        """Start `exacta serve`."""
        with (
            tempfile.TemporaryDirectory(prefix="exacta-", dir=self._work) as folder,
            served(Path(folder) / "data", Path(folder) / "log") as broker,
        ):
            yield broker


class KafkaLauncher:
    """Start Apache Kafka at its defaults."""

    name = "Kafka"
    starts = True

    def __init__(self, work: Path, jars: Path) -> None:
        """Remember the folder under which each launch has its data, and the release's jars."""
        self._work = work
        self._jars = jars

    def versions(self) -> str:
        """Describe Kafka and the Java that runs it."""
        return f"Apache Kafka {KAFKA_VERSION} on {java_banner()}, its defaults: no sync before an answer, heap of 1 GB"

    @contextlib.contextmanager
    def launch(self) -> Iterator[Broker]:
        """Format fresh storage, then start the node: `started_s` does not include the formatting."""
        with tempfile.TemporaryDirectory(prefix="kafka-", dir=self._work) as temporary:
            port, controller_port = free_ports(2)
            folder = Path(temporary)
            node = Node(jars=self._jars, folder=folder, port=port, controller_port=controller_port)
            node.prepare()
            with serving(node.command(), folder / "log") as server:
                yield Broker(bootstrap=node.bootstrap, process=server.process, server=server)


class RunningLauncher:
    """Use a broker that somebody else started and will end."""

    starts = False

    def __init__(self, bootstrap: str) -> None:
        """Remember the address; the process is looked for on this machine only."""
        self.name = bootstrap
        self._bootstrap = bootstrap

    def versions(self) -> str:
        """Describe the broker by its address, which is all that is known of it."""
        return f"the broker at {self._bootstrap}, as it was found"

    @contextlib.contextmanager
    def launch(self) -> Iterator[Broker]:
        """Hand out the running broker."""
        host, _, port = self._bootstrap.rpartition(":")
        local = host in {HOST, "localhost"}
        yield Broker(bootstrap=self._bootstrap, process=listener(int(port)) if local else None)
