"""A campaign: two instances of a copying program share a group, and they and the broker are killed again and again.

Each blow strikes a process that is drawn, at a moment that is drawn. An instance may also be frozen until the group has
given it up, so that it goes on as a zombie. At the end a reader of committed records gets every message once and in its
order. `EXACTA_TEST_EXACTLY_ONCE=N` is the number of blows.
"""

import contextlib
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.brokers import GIVEN_BOOTSTRAP, ON_KAFKA, BrokerProcess, broker_name, broker_process
from tests.copying import KeptProcess, NumberedSource
from tests.spark.clusters import new_topic, read_committed
from tests.transform.conftest import servers
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
KILLS = int(os.environ.get("EXACTA_TEST_EXACTLY_ONCE", "4"))
SEED = 1
PARTITIONS = 3
LONGEST_DELAY_S = 0.2
PROGRESS_TIMEOUT_S = 120.0
SESSION_TIMEOUT_MS = 2_000
COPIER, AIO_COPIER = "tests.transform.copier", "tests.transform.aio_copier"
COOPERATIVE = {"session.timeout.ms": SESSION_TIMEOUT_MS, "partition.assignment.strategy": "cooperative-sticky"}
MEMBERS: dict[str, tuple[str, dict[str, object]]] = {
    "confluent-kafka, classic protocol": (COPIER, COOPERATIVE),
    "confluent-kafka, consumer protocol": (COPIER, {"group.protocol": "consumer"}),
    "aiokafka": (AIO_COPIER, {"session_timeout_ms": SESSION_TIMEOUT_MS}),
}
SETTINGS = ["group.min.session.timeout.ms=1000", f"group.consumer.session.timeout.ms={SESSION_TIMEOUT_MS}"]
if ON_KAFKA:
    SETTINGS.append("group.consumer.min.session.timeout.ms=1000")

pytestmark = [
    pytest.mark.timeout(KILLS * 40 + 300),
    pytest.mark.skipif(bool(GIVEN_BOOTSTRAP), reason="the broker at EXACTA_TEST_BOOTSTRAP is not ours to kill"),
]


class Instance(KeptProcess):
    """A process of the program, which may be frozen, and tells of each transaction that it has committed."""

    def __init__(self, program: str, given: dict[str, object], log: Path) -> None:
        super().__init__([sys.executable, "-m", program, json.dumps(given)], log, ROOT)

    def send(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def committed(self) -> int:
        return self._log.read_text().count("COMMITTED") if self._log.exists() else 0


@contextlib.contextmanager
def running(program: str, given: dict[str, object], folder: Path) -> Iterator[list[Instance]]:
    instances = [
        Instance(program, {**given, "transactional_id": f"copy-{name}"}, folder / f"{name}.log") for name in "ab"
    ]
    try:
        yield instances
    finally:
        for each in instances:
            each.kill()


def strike(what: str, victim: Instance, broker: BrokerProcess, pause_s: float) -> None:
    match what:
        case "an instance":
            victim.kill()
        case "the broker":
            broker.restart_killed()
        case "a frozen one":
            victim.send(signal.SIGSTOP)
            time.sleep(pause_s)  # it is the length of the sleep that is drawn
            victim.send(signal.SIGCONT)


@pytest.mark.parametrize("member", MEMBERS)
def test_each_message_is_copied_once(member: str, tmp_path: Path, reports: list[str]) -> None:
    program, settings = MEMBERS[member]
    chosen, began, struck = random.Random(SEED), time.monotonic(), Counter[str]()
    with broker_process(tmp_path, settings=SETTINGS) as broker:
        address = broker.bootstrap
        source, target = NumberedSource(address, PARTITIONS, servers(address)), new_topic(address, PARTITIONS, "target")
        given: dict[str, object] = {"address": address, "source": source.topic, "target": target, "consumer": settings}
        with running(program, given, tmp_path) as instances:

            def blocks() -> int:
                for each in instances:
                    each.keep()
                source.fill(3)
                return sum(each.committed() for each in instances)

            def wait_for_blocks(count: int) -> None:
                wanted = blocks() + count
                wait_until(lambda: blocks() >= wanted, PROGRESS_TIMEOUT_S, "nothing is committed")

            for _ in range(KILLS):
                wait_for_blocks(1 + chosen.randrange(4))
                time.sleep(chosen.uniform(0, LONGEST_DELAY_S))  # it is the moment of the blow that is drawn
                what = chosen.choice(["an instance", "an instance", "a frozen one", "the broker"])
                strike(what, chosen.choice(instances), broker, chosen.uniform(0, 2 * SESSION_TIMEOUT_MS / 1_000))
                struck[what] += 1
            wait_for_blocks(3)
            source.settle(PROGRESS_TIMEOUT_S)

            def all_copied() -> bool:
                for each in instances:
                    each.keep()
                return len(read_committed(address, target, settled=False)) >= source.count * PARTITIONS

            wait_until(all_copied, PROGRESS_TIMEOUT_S, "not all is copied")
        copied = read_committed(address, target)
    for partition in range(PARTITIONS):
        values = [(value or b"").decode() for place, _, value in copied if place == partition]
        assert values == [f"{partition} {number}" for number in range(source.count)]
    reports.append(
        f"exactly_once on {broker_name()}, {member}: {KILLS} blows in {time.monotonic() - began:.0f} s "
        f"({dict(struck)}); {source.count * PARTITIONS} messages copied once each; instances that ended by an error: "
        f"{sum(each.failures for each in instances)}"
    )
