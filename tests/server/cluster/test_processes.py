"""Processes of `exacta serve --postgres` over a real PostgreSQL: the one that leads is killed, and another goes on."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from exacta.cli.app import app
from tests.adapters import real_postgres
from tests.server.cluster.test_server import Writer, values
from tests.waiting import wait_until

SECONDS = 30


class Process:
    """One broker; its log is in a file."""

    def __init__(
        self, node_id: int, folder: Path, postgres: str = "", schema: str = "exacta", at: str = "127.0.0.1:0"
    ) -> None:
        self.log = folder / f"log of {node_id}"
        shared = ("--postgres", postgres, "--set", f"postgres.schema={schema}") if postgres else ()
        with open(self.log, "w") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "exacta.cli", "serve", "--node-id", str(node_id)),
                    *("--data", str(folder / str(node_id)), "--listen", at, *shared),
                ],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=os.environ,
            )
        assert self._process.stdout is not None
        with self._process.stdout as out:
            line = out.readline()
        found = re.search(r"listening on (\S+),", line)
        assert found is not None, self.log.read_text()
        self.address = found[1]

    def leads(self) -> bool:
        """Return whether this broker has taken the lead."""
        return "this broker is leading" in self.log.read_text()

    def tell(self, what: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(what)

    def end(self, how: signal.Signals) -> int:
        """End it, and return its exit code."""
        if self._process.poll() is None:
            self._process.send_signal(how)
        return self._process.wait(SECONDS)


@pytest.fixture
def postgres() -> Iterator[tuple[str, str]]:
    """Yield the URL of a real server, and a schema there."""
    folder = real_postgres.server().folder
    with real_postgres.a_schema() as schema:
        yield f"postgresql://postgres@/postgres?host={folder}", schema


def test_nothing_acknowledged_is_lost_or_doubled_when_the_leading_process_is_killed(
    tmp_path: Path, postgres: tuple[str, str]
) -> None:
    brokers = {node_id: Process(node_id, tmp_path, *postgres) for node_id in (1, 2)}
    try:
        wait_until(brokers[1].leads, SECONDS)
        writer = Writer(",".join(each.address for each in brokers.values()))
        writer.write(200)
        assert brokers[1].end(signal.SIGKILL) == -signal.SIGKILL
        writer.write(200)
        assert brokers[2].leads()
        assert values(brokers[2].address, 400) == writer.acknowledged == [str(number) for number in range(400)]
        brokers[1] = Process(1, tmp_path, *postgres, at=brokers[1].address)
        assert values(brokers[1].address, 400) == writer.acknowledged
        moved = CliRunner().invoke(app, ["cluster", "move", "--to", "1", "-b", brokers[2].address])
        assert moved.exit_code == 0, moved.output
        wait_until(brokers[1].leads, SECONDS)
        writer.write(10)
        assert brokers[1].end(signal.SIGTERM) == 0
        writer.write(10)
        assert values(brokers[2].address, 420) == writer.acknowledged
    finally:
        for each in brokers.values():
            each.end(signal.SIGKILL)


def copy(source: object, target: object, schema: str) -> "subprocess.CompletedProcess[str]":
    """Run `exacta log copy`."""
    command = [sys.executable, "-m", "exacta.cli", "log", "copy", str(source), str(target), "--postgres-schema", schema]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)


def test_a_log_moves_from_a_directory_to_a_cluster_and_back(tmp_path: Path, postgres: tuple[str, str]) -> None:
    url, schema = postgres
    alone = Process(1, tmp_path)
    writer = Writer(alone.address)
    writer.write(100)
    assert "in use" in copy(tmp_path / "1", url, schema).stderr
    assert alone.end(signal.SIGTERM) == 0
    moved = copy(tmp_path / "1", url, schema)
    assert moved.returncode == 0, moved.stderr

    shared = Process(2, tmp_path, url, schema, at=alone.address)
    assert values(shared.address, 100) == writer.acknowledged
    writer.write(100)  # its producer id and its sequences go on
    assert "broker 2 runs" in copy(url, tmp_path / "3", schema).stderr
    assert shared.end(signal.SIGTERM) == 0
    moved = copy(url, tmp_path / "3", schema)
    assert moved.returncode == 0, moved.stderr

    again = Process(3, tmp_path, at=alone.address)
    try:
        writer.write(100)
        assert values(again.address, 300) == writer.acknowledged == [str(number) for number in range(300)]
    finally:
        assert again.end(signal.SIGTERM) == 0
    for folder, options in (("1", []), ("4", ["--postgres", url, "--set", f"postgres.schema={schema}"])):
        command = [sys.executable, "-m", "exacta.cli", "serve", "--listen", "127.0.0.1:0"]
        command += ["--data", str(tmp_path / folder), *options]
        refused = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        assert refused.returncode != 0
        assert "has gone to" in refused.stderr
