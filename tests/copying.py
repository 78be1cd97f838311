"""The parts that campaigns with a copying program share: its process, which is killed, and the topic that it copies."""

import subprocess
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from tests.spark.clusters import new_topic


class KeptProcess:
    """A process that is started again whenever it has ended."""

    def __init__(self, command: list[str], log: Path, folder: Path | None = None) -> None:
        """Remember how to start it, and in which folder; None: in this one."""
        self.failures = 0
        """How often it has ended by itself."""
        self._command, self._log, self._folder = command, log, folder
        self._process: subprocess.Popen[bytes] | None = None

    def keep(self) -> None:
        """Start it if it does not run."""
        if self._process is not None:
            if self._process.poll() is None:
                return
            self.failures += 1
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._folder
            )

    def kill(self) -> None:
        """End it by SIGKILL; harmless where it does not run."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


class NumberedSource:
    """A topic that is topped up for as long as there is something to kill: the value is partition and number."""

    def __init__(self, bootstrap: str, partitions: int, settings: dict[str, Any]) -> None:
        """Create it; `settings` are those of its producer, which sends nothing twice."""
        self.topic, self.count = new_topic(bootstrap, partitions, "source"), 0
        self._partitions = partitions
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, **settings})

    def fill(self, count: int) -> None:
        """Append this many records to each partition."""
        for number in range(self.count, self.count + count):
            for partition in range(self._partitions):
                self._producer.produce(self.topic, f"{partition} {number}", partition=partition)
        self.count += count
        self._producer.poll(0)

    def settle(self, timeout_s: float) -> None:
        """Wait until all is in the log."""
        assert self._producer.flush(timeout_s) == 0
