"""A job in a process of its own: what it returns and raises comes back, and it never outlives who asked for it."""

import os
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from exacta.adapters.local.child_process import NICENESS, ChildProcess, Interrupted
from exacta.adapters.local.files import Files, PosixFiles
from exacta.ports.journal import JournalDamaged
from simulation.disk.in_place import InPlace


def names_and(files: Files, other: str) -> list[str]:
    print("what a job prints is no part of its answer")
    return sorted([*files.names(), other])


def damaged(files: Files) -> None:
    raise JournalDamaged("it is")


def process_id(files: Files) -> int:
    return os.getpid()


def standing(files: Files) -> tuple[bool, int, int]:
    """Return whether the process leads a group of its own, its session, and its niceness."""
    return os.getpgrp() == os.getpid(), os.getsid(0), os.getpriority(os.PRIO_PROCESS, 0)


def die(files: Files) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def run_for_ever(files: Files) -> None:
    (files.directory / "begun").write_text(str(os.getpid()))
    threading.Event().wait()


@pytest.mark.parametrize("kind", ["child", "in place"])
def test_what_a_job_returns_or_raises_comes_back(tmp_path: Path, kind: str) -> None:
    (tmp_path / "a").touch()
    process = ChildProcess(tmp_path) if kind == "child" else InPlace(PosixFiles(tmp_path))
    assert process.run(names_and, "b") == ["a", "b"]
    with pytest.raises(JournalDamaged, match="it is"):
        process.run(damaged)


def test_it_is_another_process(tmp_path: Path) -> None:
    assert ChildProcess(tmp_path).run(process_id) != os.getpid()


def test_it_yields_to_its_session_and_hears_nothing_from_the_keyboard(tmp_path: Path) -> None:
    """Where Linux groups processes by session, niceness counts within one only."""
    niceness = min(19, os.getpriority(os.PRIO_PROCESS, 0) + NICENESS)
    assert ChildProcess(tmp_path).run(standing) == (True, os.getsid(0), niceness)


def test_a_process_that_dies_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="run die ended without an answer"):
        ChildProcess(tmp_path).run(die)


def wait_for(path: Path) -> int:
    """Return the process id in the file, once it is there."""
    while not (path.exists() and path.read_text()):
        time.sleep(0.01)
    return int(path.read_text())


def test_stopping_ends_the_job_and_takes_no_other(tmp_path: Path) -> None:
    process = ChildProcess(tmp_path)
    outcome: list[object] = []

    def run() -> None:
        try:
            process.run(run_for_ever)
        except Interrupted as error:
            outcome.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    child = wait_for(tmp_path / "begun")
    process.stop()
    thread.join()
    assert isinstance(outcome[0], Interrupted)
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
    with pytest.raises(Interrupted):
        process.run(process_id)


def test_a_job_ends_with_the_process_that_asked_for_it(tmp_path: Path) -> None:
    command = f"from {__name__} import *; ChildProcess(Path({str(tmp_path)!r})).run(run_for_ever)"
    asking = subprocess.Popen([sys.executable, "-c", command])
    child = wait_for(tmp_path / "begun")
    handle = os.pidfd_open(child)
    asking.kill()
    asking.wait()
    assert select.select([handle], [], [], 60)[0], "it has ended"
    os.close(handle)
