"""Where Python lacks what Linux and macOS have, as on Windows: one sentence, and what needs nothing of it goes on."""

import subprocess
import sys

import pytest

import exacta

WITHOUT_POSIX = """
import psutil, signal, sys  # psutil itself needs some of them here, on Windows others
sys.modules.update(dict.fromkeys(["fcntl", "grp", "pwd", "resource", "termios"]))
del signal.SIGKILL
"""
# asyncio and its like look at the platform when they are imported, and then ask Windows for more than can be feigned.
ON_WINDOWS = "import asyncio, psutil, subprocess, tempfile, sys\nsys.platform = 'win32'" + WITHOUT_POSIX
COMMAND = "from exacta.cli import main; main()"


def why(platform: str) -> str:
    return (
        "Exacta's broker, `exacta log`, `exacta demo` and `exacta verify` run on Linux and macOS; "
        f"on {platform} Python lacks what they need (import of fcntl halted; None in sys.modules)"
    )


def run(program: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize(
    "program", ["import exacta.testing", "import exacta; exacta.Broker", "import exacta.server.server"]
)
def test_the_broker_says_where_it_runs(program: str) -> None:
    done = run(f"{ON_WINDOWS}\ntry:\n    {program}\nexcept ImportError as error:\n    print(error)")
    assert (done.stdout, done.stderr) == (why("win32") + "\n", "")


@pytest.mark.parametrize(
    "arguments", [["serve"], ["log", "verify", "--data", "."], ["verify", "--bootstrap-servers", "h:1"], ["demo"]]
)
def test_commands_that_cannot_work_say_so_in_one_line(arguments: list[str]) -> None:
    done = run(WITHOUT_POSIX + COMMAND, *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"exacta: {why(sys.platform)}\n")


def test_commands_against_a_cluster_and_the_source_and_sink_load_nothing_of_it() -> None:
    with exacta.Broker() as broker:
        listing = ["transactions", "list", "--bootstrap-servers", broker.bootstrap_servers]
        listed = run(WITHOUT_POSIX + COMMAND, *listing)
    assert (listed.returncode, listed.stderr) == (0, "")
    parts = ["cli.groups", "cli.spark", "spark.cleaning", "spark.datasource", "spark.source.reading", "spark.sink.task"]
    imported = run(f"{WITHOUT_POSIX}import {', '.join('exacta.' + part for part in parts)}")
    assert (imported.returncode, imported.stderr) == (0, "")
