"""A process of pytest-xdist that crashes says where it was, and a client's crash is tried once more (`crashes.py`)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import exacta
from tests.crashes import OF_XDIST, PASSED_AFTER, is_of_client

CONFTEST = """
from tests import crashes

REPORTS = []

def pytest_configure(config):
    given = getattr(config, "workerinput", None)
    config.pluginmanager.register(crashes.InController(REPORTS) if given is None else crashes.InWorker(given["crash"]))

def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line("\\n".join(REPORTS))
"""
ONCE_IN_A_CLIENTS_THREAD = """
import ctypes, pathlib, threading
import confluent_kafka

def test_it():
    ran = pathlib.Path(__file__).with_suffix(".ran")
    if not ran.exists():
        ran.touch()
        libc = ctypes.CDLL(None)
        libc.pthread_create(ctypes.byref(ctypes.c_ulong()), None, libc.abort, None)
        threading.Event().wait()
"""
IN_A_CALL_OF_OURS = """
import ctypes
import confluent_kafka
from exacta.front.bounded_parallel import few_at_once

def test_it():
    few_at_once([lambda ended: ctypes.string_at(0)], 1, lambda: None)
"""
KILLED = """
import os

def test_it():
    os.kill(os.getpid(), 9)
"""


def run(folder: Path, *texts: str) -> tuple[int, str]:
    """Run tests, each in a file of its own, by one process of pytest-xdist; return exit code and what is printed."""
    (folder / "conftest.py").write_text(CONFTEST)
    for number, text in enumerate(texts):
        (folder / f"test_{number}.py").write_text(text)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-n",
        "1",
        "--rootdir",
        str(folder),
        "-p",
        "no:cacheprovider",
        str(folder),
    ]
    environment = {name: value for name, value in os.environ.items() if name not in OF_XDIST}
    root = str(Path(__file__).parents[1])
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (root, environment.get("PYTHONPATH"))))
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env=environment, timeout=120, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_a_clients_crash_is_told_and_its_test_runs_once_more(tmp_path: Path) -> None:
    code, printed = run(tmp_path, ONCE_IN_A_CLIENTS_THREAD)
    assert code == 0, printed
    for told in (f"1 {PASSED_AFTER}", "SIGABRT", "Extension modules", "1 passed in"):
        assert told in printed


def test_every_other_crash_is_an_error_that_shows_where_it_was(tmp_path: Path) -> None:
    """So is the second crash of a client in one run."""
    code, printed = run(tmp_path, ONCE_IN_A_CLIENTS_THREAD, ONCE_IN_A_CLIENTS_THREAD, IN_A_CALL_OF_OURS, KILLED)
    assert code == 1, printed
    assert f"3 failed, 1 {PASSED_AFTER}" in printed
    for told in ("SIGSEGV", "in few_at_once", "SIGKILL, perhaps for want of memory", "It has left no traceback."):
        assert told in printed
    assert printed.count("A client's library has crashed") == 1


@pytest.mark.parametrize(
    ("current", "modules", "is_theirs"),
    [
        ("", "_pulsar", True),
        ("", "confluent_kafka.cimpl, uvloop.loop", True),
        ("", "uvloop.loop", False),
        ('  File "/x/tests/test_x.py", line 1 in test_x', "_pulsar", True),
        ("  <no Python frame>", "_pulsar", True),
        (f'  File "{Path(exacta.__file__).parent}/engine/engine.py", line 1 in submit', "_pulsar", False),
    ],
)
def test_a_crash_is_a_clients_where_none_of_our_code_ran(current: str, modules: str, *, is_theirs: bool) -> None:
    ours = f'  File "{exacta.__file__}", line 1 in other'
    threads = [f"Thread 0x01 (most recent call first):\n{ours}"]
    if current:
        threads.insert(0, f"Current thread 0x02 (most recent call first):\n{current}")
    text = "Fatal Python error: Aborted\n\n" + "\n\n".join(threads) + f"\n\nExtension modules: {modules} (total: 9)\n"
    assert is_of_client(text) is is_theirs
