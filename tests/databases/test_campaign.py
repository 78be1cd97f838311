"""A campaign: two instances share a transactional id, and they, broker and database are killed again and again.

Each blow strikes a process that is drawn, at a moment that is drawn, after some more orders. An instance may also be
frozen for a while, so that it goes on as a zombie. At the end rows, messages and offset must tell the same.
"""

import contextlib
import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.brokers import BrokerProcess, exacta_process
from tests.databases import shop
from tests.databases.conftest import KILLS, each_kind, takes_minutes
from tests.databases.postgresql import PostgresServer
from tests.spark.clusters import new_topic
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
SEED = 1
LONGEST_DELAY_S = 0.2
PROGRESS_TIMEOUT_S = 120.0

pytestmark = [
    each_kind,
    takes_minutes,
    pytest.mark.timeout(KILLS * 30 + 300),
]


class Instance:
    """A process of the program, which is started again after each kill."""

    def __init__(self, place: shop.Place, log: Path) -> None:
        self._command = [sys.executable, "-m", "tests.databases.shop", json.dumps(place)]
        self._log = log
        self.start()

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log, cwd=ROOT)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def freeze(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def said(self) -> list[str]:
        """Return the first word of each line, and the name of each error."""
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        return [line.split(":")[0] if line.startswith("FAILED") else line.split()[0] for line in lines if line]


def orders(instances: list[Instance]) -> int:
    return sum(each.said().count("ORDER") for each in instances)


def wait_for_orders(instances: list[Instance], count: int) -> None:
    wanted = orders(instances) + count
    wait_until(
        lambda: orders(instances) >= wanted,
        PROGRESS_TIMEOUT_S,
        "no orders",
    )


def strike(
    what: str, victim: Instance, other: Instance, broker: BrokerProcess, server: PostgresServer | None, pause_s: float
) -> None:
    match what:
        case "an instance":
            victim.kill()
            victim.start()
        case "the broker":
            broker.restart_killed()
        case "the database":
            assert server is not None
            server.restart_killed()
        case "a frozen one":
            victim.freeze()
            time.sleep(pause_s)  # it is the length of the sleep that is drawn
            other.kill()
            other.start()
            victim.thaw()


@contextlib.contextmanager
def running(place: shop.Place, folder: Path) -> Iterator[list[Instance]]:
    instances = [Instance(place, folder / f"{name}.log") for name in "ab"]
    try:
        yield instances
    finally:
        for each in instances:
            each.kill()


def test_both_or_neither(kind: str, tmp_path: Path, request: pytest.FixtureRequest, reports: list[str]) -> None:
    chosen, began, struck = random.Random(SEED), time.monotonic(), Counter[str]()
    server: PostgresServer | None = request.getfixturevalue("postgres") if kind == "postgres" else None
    victims = ["an instance", "an instance", "a frozen one", "the broker", *(["the database"] if server else [])]
    with exacta_process(tmp_path, settings=["transaction.two.phase.commit.enable=true"]) as broker:
        topic = new_topic(broker.bootstrap, 1)
        address = server.new_database(topic) if server else str(tmp_path / "shop.db")
        place = shop.Place(kind, address, broker.bootstrap, topic, 5_000)
        shop.make_table(place)
        with running(place, tmp_path) as instances:
            for _ in range(KILLS):
                wait_for_orders(instances, 1 + chosen.randrange(3))
                time.sleep(chosen.uniform(0, LONGEST_DELAY_S))  # it is the moment of the kill that is drawn
                first, second = chosen.sample(instances, 2)
                what = chosen.choice(victims)
                strike(what, first, second, broker, server, chosen.uniform(0, 1))
                struck[what] += 1
            wait_for_orders(instances, 5)
        shop.life(place, 1)
        count = shop.check(place)
        said = Counter(line for each in instances for line in each.said() if line.startswith("FAILED"))
    reports.append(
        f"two-phase commits, {kind}: {KILLS} kills in {time.monotonic() - began:.0f} s ({dict(struck)}); {count} "
        f"orders, each in both places once; the program was told {dict(said)}"
    )
    assert count > KILLS
