"""A consume-transform-produce loop of franz-go under kill -9, of itself and of the broker (`make test-franz-go`).

The source is topped up for as long as there is something to kill. Each kill waits until the loop has told of new
transactions and is seen in another one. Where an error ends the loop, as it may when the broker dies, it is started
again like one that was killed.
"""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.conformance.brokers import BrokerProcess, broker_name, broker_process
from tests.spark.clusters import held_back, new_topic, read_committed
from tests.waiting import wait_until

KILLS = int(os.environ.get("EXACTA_TEST_KILLS", "12"))
PARTITIONS = 2
LOOKS = 8
TIMEOUT_S = 120.0
_SILENT = 0

pytestmark = pytest.mark.timeout(900 + 60 * KILLS)


class Loop:
    """The loop's process, started again whenever it has ended."""

    def __init__(self, command: list[str], log: Path) -> None:
        """Remember how to start it."""
        self.failures = 0
        self._command, self._log = command, log
        self._process: subprocess.Popen[bytes] | None = None

    def keep(self) -> None:
        """Start it if it does not run."""
        if self._process is not None and self._process.poll() is None:
            return
        self.failures += self._process is not None
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill(self) -> None:
        """End it by SIGKILL; harmless where it does not run."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


class Source:
    """A topic with numbered records: partition and number are the value."""

    def __init__(self, bootstrap: str) -> None:
        """Create it."""
        self.topic, self.count = new_topic(bootstrap, PARTITIONS, "source"), 0
        settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": _SILENT}
        self._producer = Producer(settings | {"reconnect.backoff.max.ms": 200})

    def fill(self, count: int) -> None:
        """Append so many records to each partition."""
        for number in range(self.count, self.count + count):
            for partition in range(PARTITIONS):
                self._producer.produce(self.topic, f"{partition} {number}", partition=partition)
        self.count += count
        self._producer.poll(0)

    def settle(self) -> None:
        """Wait until all is in the log."""
        assert self._producer.flush(TIMEOUT_S) == 0


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with broker_process(tmp_path, settings=["group.min.session.timeout.ms=1000"]) as process:
        yield process


def test_every_record_is_copied_once_whoever_is_killed(
    program: Path, broker: BrokerProcess, name: str, tmp_path: Path, reports: list[str]
) -> None:
    began = time.monotonic()
    source, target = Source(broker.bootstrap), new_topic(broker.bootstrap, PARTITIONS, "target")
    log = tmp_path / "loop"
    loop = Loop([str(program), "copy", broker.bootstrap, source.topic, target, name, name], log)
    try:
        for index in range(KILLS):
            told = log.stat().st_size if log.exists() else 0

            def in_a_transaction(told: int = told) -> bool:
                source.fill(5)
                loop.keep()
                # Several looks a fill: one only, always the same few milliseconds later, finds every transaction over.
                return log.stat().st_size > told and any(held_back(broker.bootstrap, target) for _ in range(LOOKS))

            wait_until(in_a_transaction, TIMEOUT_S)
            if index % 3 == 2:
                broker.restart_killed()
            else:
                loop.kill()
        source.settle()

        def all_copied() -> bool:
            loop.keep()
            return len(read_committed(broker.bootstrap, target, settled=False)) >= source.count * PARTITIONS

        wait_until(all_copied, TIMEOUT_S)
    finally:
        loop.kill()
    copied = read_committed(broker.bootstrap, target)
    for partition in range(PARTITIONS):
        values = [(value or b"").decode() for place, _, value in copied if place == partition]
        assert values == [f"{partition} {number}" for number in range(source.count)]
    reports.append(
        f"franz-go on {broker_name()}: {KILLS} kills in a transaction in {time.monotonic() - began:.0f} s, a third of "
        f"them of the broker; {source.count * PARTITIONS} records copied once each; loops that failed: {loop.failures}"
    )
