"""The data directory of an embedded broker: what stays in it, and that a temporary one goes."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import exacta
from exacta.server.errors import ServerError
from exacta.server.listeners import parse_endpoint
from tests.testing.clients import consume, produce


def test_a_given_directory_is_kept(tmp_path: Path) -> None:
    with exacta.Broker(tmp_path / "data") as broker:
        produce(broker, b"kept")
    with exacta.Broker(str(tmp_path / "data")) as broker:
        assert consume(broker) == [b"kept"]


@pytest.mark.parametrize("ends", ["del broker", "pass"])
def test_without_a_close_nothing_is_left_once_nobody_has_it(ends: str) -> None:
    """Neither where the object goes first, nor where the process ends; and no warning is given."""
    code = f"""if True:
        import gc, os, exacta
        broker = exacta.Broker().start()
        directory = broker.data
        broker.stop()
        assert directory.exists()
        print(directory, flush=True)
        {ends}
        gc.collect()
        assert directory.exists() is ("{ends}" == "pass")
    """
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert not Path(run.stdout.strip()).exists()
    assert run.stderr == ""


def test_a_close_that_was_interrupted_can_be_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = exacta.Broker().start()
    data = broker.data

    def interrupted(path: Path, ignore_errors: bool) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("exacta.testing.directory.shutil.rmtree", interrupted)
        with pytest.raises(KeyboardInterrupt):
            broker.close()
    broker.close()
    assert not data.exists()


def test_a_relative_directory_stays_the_same_where_the_working_directory_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with exacta.Broker("data") as broker:
        produce(broker, b"kept")
        monkeypatch.chdir("/")
        broker.restart()
        assert broker.data == tmp_path / "data"
        assert [each.value for each in broker.records("t")] == [b"kept"]


def test_a_process_that_was_forked_removes_nothing() -> None:
    code = """if True:
        import os, sys, exacta
        with exacta.Broker() as broker:
            child = os.fork()
            if not child:
                del broker
                sys.exit()
            os.waitpid(child, 0)
            assert broker.data.exists()
    """
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=60)


def test_a_first_start_that_fails_leaves_no_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with exacta.Broker() as first:
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        second = exacta.Broker(port=parse_endpoint(first.bootstrap_servers).port)
        with pytest.raises(ServerError, match="address already in use"):
            second.start()
    assert os.listdir(tmp_path) == []
