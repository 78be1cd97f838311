"""A new user's hour, as one script: from an empty environment to a broker that was killed and lost nothing.

The wheel alone is installed, and only its own commands are called. It serves, creates, produces and consumes. A
producer is fenced in the middle of a transaction, and the broker explains that. A real Prometheus scrapes the broker,
where one is there (`make test-with WHAT=prometheus` gets it). Then the broker is killed, and started again.
`make test-dist` runs this.
"""

import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from exacta.demo.processes import free_port
from tests.installed.conftest import ON_WHEEL
from tests.metrics.prometheus import programs, scraping
from tests.metrics.test_monitoring_files import ALERTS
from tests.waiting import wait_until

pytestmark = [ON_WHEEL, pytest.mark.timeout(600)]

TIMEOUT_S = 60


class Machine:
    """A machine on which nothing but the wheel is installed, and the commands that a user gives there."""

    def __init__(self, folder: Path, variables: dict[str, str]) -> None:
        """Choose the broker's ports."""
        self.folder = folder
        self.address, self.web = (f"127.0.0.1:{free_port()}" for _ in range(2))
        self.variables = variables | {"EXACTA_BOOTSTRAP_SERVERS": self.address}

    def run(self, *command: str, given: str = "") -> str:
        """Return what a command has printed."""
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.variables,
            input=given,
            capture_output=True,
            text=True,
            timeout=10 * TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout

    def start(self, *command: str) -> "subprocess.Popen[str]":
        """Start a command that a user leaves running."""
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command, cwd=self.folder, env=self.variables, stdin=pipe, stdout=pipe, stderr=pipe, text=True
        )

    @contextmanager
    def serving(self) -> "Iterator[subprocess.Popen[str]]":
        """Serve until the end of the block."""
        server = self.start("exacta", "serve", "--listen", self.address, "--web-listen", self.web)
        try:
            assert server.stdout is not None
            assert server.stdout.readline().startswith(f"exacta: listening on {self.address}, data in ")
            yield server
        finally:
            server.kill()
            server.communicate()

    def asked(self, path: str) -> str:
        """Return what the broker answers by HTTP."""
        with urllib.request.urlopen(f"http://{self.web}{path}", timeout=TIMEOUT_S) as answer:
            return str(answer.read().decode())

    def open_transactions(self) -> list[str]:
        """Return the transactional ids of open transactions."""
        listed = json.loads(self.run("exacta", "transactions", "list", "--output", "json"))
        return [each["transactional_id"] for each in listed]


def a_transaction_is_broken_and_explained(machine: Machine) -> None:
    """Two processes have one transactional id: the first is fenced, and told so, and what it wrote is never read."""
    command = ("exacta", "produce", "orders", "-K", ":", "--transactional-id", "shop-1")
    first = machine.start(*command)
    try:
        assert first.stdin is not None
        first.stdin.write("pears:1\n")
        first.stdin.flush()
        wait_until(lambda: machine.open_transactions() == ["shop-1"], TIMEOUT_S, "no transaction is open")
        machine.run(*command, given="plums:2\n")
        explained = machine.run("exacta", "transactions", "explain", "shop-1")
        assert "fenced" in explained
        _, error = first.communicate("pears:3\n", timeout=TIMEOUT_S)
        assert first.returncode == 1
        assert len(error.splitlines()) == 1
    finally:
        first.kill()
        first.communicate()
    assert machine.open_transactions() == []


def test_an_hour(wheel: Path, variables: dict[str, str], tmp_path: Path) -> None:
    (folder := tmp_path / "home").mkdir()
    machine, begun = Machine(folder, variables), time.monotonic()
    machine.run("pip", "install", "--quiet", f"exacta-log[web] @ {wheel.resolve().as_uri()}")
    installed_s = time.monotonic() - begun
    with machine.serving() as server:
        machine.run("exacta", "topics", "create", "orders", "--partitions", "1")
        machine.run("exacta", "produce", "orders", "-K", ":", given="apples:42\n")
        assert machine.run("exacta", "consume", "orders", "-e", "-K", ":") == "apples:42\n"
        a_transaction_is_broken_and_explained(machine)
        assert machine.run("exacta", "consume", "orders", "-e", "-K", ":") == "apples:42\nplums:2\n"
        assert 'exacta_topic_in_records_total{topic="orders"} 3' in machine.asked("/metrics")
        if (found := programs()) is not None:
            with scraping(found, tmp_path, machine.web, ALERTS) as prometheus:
                records = 'exacta_topic_in_records_total{topic="orders"}'
                wait_until(lambda: prometheus.value(records) == 3, TIMEOUT_S, "the records were not scraped")
        os.kill(server.pid, signal.SIGKILL)
    with machine.serving() as server:
        assert json.loads(machine.asked("/health/ready"))["status"] == "ready"
        assert machine.run("exacta", "consume", "orders", "-e", "-K", ":") == "apples:42\nplums:2\n"
        machine.run("exacta", "produce", "orders", "-K", ":", "--transactional-id", "shop-1", given="figs:4\n")
        assert machine.run("exacta", "consume", "orders", "-e", "-K", ":").endswith("figs:4\n")
        server.terminate()
        assert server.wait(TIMEOUT_S) == 0
    print(f"pip took {installed_s:.0f} s, and all took {time.monotonic() - begun:.0f} s")
