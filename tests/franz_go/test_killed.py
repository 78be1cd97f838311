"""A consume-transform-produce loop of franz-go under kill -9, of itself and of the broker (`make test-with WHAT=go`).

The source is topped up for as long as there is something to kill. Each kill waits until the loop has told of new
transactions and is seen in another one. Where an error ends the loop, as it may when the broker dies, it is started
again like one that was killed.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.brokers import BrokerProcess, broker_name, broker_process
from tests.copying import KeptProcess, NumberedSource
from tests.spark.clusters import held_back, new_topic, read_committed
from tests.waiting import wait_until

KILLS = int(os.environ.get("EXACTA_TEST_KILLS", "12"))
PARTITIONS = 2
LOOKS = 8
TIMEOUT_S = 120.0
SETTINGS = {"log_level": 0, "reconnect.backoff.max.ms": 200}
"""A producer says nothing where its broker is killed, and soon comes again."""

pytestmark = pytest.mark.timeout(900 + 60 * KILLS)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with broker_process(tmp_path, settings=["group.min.session.timeout.ms=1000"]) as process:
        yield process


def test_every_record_is_copied_once_whoever_is_killed(
    program: Path, broker: BrokerProcess, name: str, tmp_path: Path, reports: list[str]
) -> None:
    began = time.monotonic()
    source, target = (
        NumberedSource(broker.bootstrap, PARTITIONS, SETTINGS),
        new_topic(broker.bootstrap, PARTITIONS, "target"),
    )
    log = tmp_path / "loop"
    loop = KeptProcess([str(program), "copy", broker.bootstrap, source.topic, target, name, name], log)
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
        source.settle(TIMEOUT_S)

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
