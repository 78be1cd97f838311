"""`exacta serve` for Pulsar's clients, as a process that can be killed and started again on its ports."""

import sys
from pathlib import Path
from types import TracebackType

from tests.conformance.brokers import HOST, BrokerProcess


class Served(BrokerProcess):
    """A server; it runs within a `with`."""

    def __init__(self, data: Path, log: Path, port: int, kafka_port: int, **options: str) -> None:
        """Remember how to start it; the options' names have underscores."""
        command = [sys.executable, "-m", "exacta.cli", "serve", "--data", str(data)]
        command += ["--listen", f"{HOST}:{kafka_port}", "--pulsar-listen", f"{HOST}:{port}"]
        for name, value in options.items():
            command += ["--set", f"{name.replace('_', '.')}={value}"]
        super().__init__(command, port, log)
        self.url = f"pulsar://{HOST}:{port}"

    def __enter__(self) -> "Served":
        """Start it."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it in order."""
        self.stop()
