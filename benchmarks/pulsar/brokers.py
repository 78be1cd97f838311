"""The two brokers of this benchmark, as `benchmarks.runner` starts them: `exacta serve`, and Apache Pulsar."""

import contextlib
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks import brokers
from benchmarks.brokers import HOST, READY_TIMEOUT_S, Broker
from benchmarks.kafka.distribution import java_banner
from benchmarks.processes import free_ports, serving
from benchmarks.pulsar.distribution import PULSAR_VERSION
from benchmarks.pulsar.standalone import Standalone


@dataclass(frozen=True, kw_only=True)
class PulsarBroker(Broker):
    """A broker for Pulsar's clients; `bootstrap` is where it listens for them."""

    is_ready: Callable[[], bool] = lambda: True

    def wait_until_ready(self) -> None:
        """Wait until the broker serves clients; raises ServerFailedError."""
        self.wait_until_listening()
        if self.server is not None:
            self.server.wait_until(self.is_ready, READY_TIMEOUT_S)


class ExactaLauncher(brokers.ExactaLauncher):
    """Start `exacta serve` for Pulsar's clients, at its defaults."""

    @contextlib.contextmanager
    def launch(self) -> Iterator[Broker]:
        """Start `exacta serve`."""
        kafka_port, port = free_ports(2)
        with tempfile.TemporaryDirectory(prefix="exacta-", dir=self._work) as folder:
            command = [str(Path(sys.executable).with_name("exacta")), "serve", "--data", f"{folder}/data"]
            command += ["--listen", f"{HOST}:{kafka_port}", "--pulsar-listen", f"{HOST}:{port}"]
            with serving(command, Path(folder) / "log") as server:
                yield PulsarBroker(bootstrap=f"{HOST}:{port}", process=server.process, server=server)


class PulsarLauncher:
    """Start Apache Pulsar, standalone and durable."""

    name = "Pulsar"
    starts = True

    def __init__(self, work: Path, jars: Path) -> None:
        """Remember the folder under which each launch has its data, and the release's jars."""
        self._work = work
        self._jars = jars

    def versions(self) -> str:
        """Describe Pulsar and the Java that runs it."""
        return (
            f"Apache Pulsar {PULSAR_VERSION} standalone on {java_banner()}: its journal synced (journalSyncData=true), "
            "transactions on, else as distributed: a heap of 2 GB and 4 GB beside it"
        )

    @contextlib.contextmanager
    def launch(self) -> Iterator[Broker]:
        """Start a server on empty data."""
        port, web_port, bookie_port = free_ports(3)
        with tempfile.TemporaryDirectory(prefix="pulsar-", dir=self._work) as temporary:
            folder = Path(temporary)
            standalone = Standalone(
                jars=self._jars, folder=folder, port=port, web_port=web_port, bookie_port=bookie_port
            )
            standalone.prepare()
            with serving(standalone.command(), folder / "log") as server:
                yield PulsarBroker(
                    bootstrap=f"{HOST}:{port}", process=server.process, server=server, is_ready=standalone.is_ready
                )
