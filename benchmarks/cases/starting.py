"""A broker's start, and what it holds in memory once it stands idle: cases that launch brokers of their own."""

import itertools
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from benchmarks.brokers import HOST, Broker, ExactaLauncher, Launcher, first_acknowledgement_s, served
from benchmarks.figures import Figure
from benchmarks.processes import free_ports

STARTS = 3
SCRAPES = 3
SETTLED_CHANGE = 0.01
SETTLE_STEP_S = 1.0
SETTLE_STEPS = 10


def start(launcher: Launcher, case: str) -> Iterator[Figure]:
    """Time from the start of the process on empty data to the first acknowledged message; the median of several."""
    seconds = []
    for _ in range(STARTS):
        with launcher.launch() as broker:
            seconds.append(first_acknowledgement_s(broker))
    yield Figure(case=case, name="first ack s", value=statistics.median(seconds))


def embedded_start(launcher: Launcher, case: str) -> Iterator[Figure]:
    """Time from `exacta.Broker()` to the first acknowledged message, in a process that has had one."""
    if isinstance(launcher, ExactaLauncher):  # nobody else has one
        program = [sys.executable, "-m", "benchmarks.cases.embedded", str(STARTS)]
        printed = subprocess.run(program, check=True, capture_output=True, text=True).stdout
        yield Figure(case=case, name="first ack s", value=statistics.median(map(float, printed.split())))


def idle_memory(launcher: Launcher, case: str) -> Iterator[Figure]:
    """Resident memory of a broker that has answered a client and then stood idle until its memory stood still."""
    with launcher.launch() as broker:
        broker.wait_until_ready()
        yield Figure(case=case, name="RSS MB", value=settled_bytes(broker) / 1e6)


def idle_memory_with_metrics(launcher: Launcher, case: str) -> Iterator[Figure]:
    """Resident memory of an idle broker whose metrics have been scraped."""
    if isinstance(launcher, ExactaLauncher):
        web = f"{HOST}:{free_ports(1)[0]}"
        with (
            tempfile.TemporaryDirectory(prefix="exacta-") as folder,
            served(Path(folder) / "data", Path(folder) / "log", web=web) as broker,
        ):
            broker.wait_until_ready()
            for _ in range(SCRAPES):
                with urllib.request.urlopen(f"http://{web}/metrics", timeout=30) as answer:
                    answer.read()
            yield Figure(case=case, name="RSS MB", value=settled_bytes(broker) / 1e6)


def settled_bytes(broker: Broker) -> int:
    """Read resident memory step by step until a step changes it by less than one percent."""
    sizes: list[int] = []
    for _ in range(SETTLE_STEPS):
        if (usage := broker.usage()) is None:
            raise ValueError("the broker's process cannot be looked at")
        sizes.append(usage.resident_bytes)
        if any(abs(b - a) <= SETTLED_CHANGE * a for a, b in itertools.pairwise(sizes[-2:])):
            break
        time.sleep(SETTLE_STEP_S)
    return sizes[-1]
