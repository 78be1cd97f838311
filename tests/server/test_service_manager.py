"""A service manager is told when clients can connect, and that the server stops."""

import logging
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from exacta.server.service_manager import READY, notify

VARIABLE = "NOTIFY_SOCKET"
TIMEOUT_S = 30


def listening(address: str) -> socket.socket:
    """Return a service manager's socket."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    sock.settimeout(TIMEOUT_S)
    sock.bind(address)
    return sock


def test_without_a_service_manager_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    notify(READY)


def test_it_hears_what_it_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    monkeypatch.setenv(VARIABLE, address)
    with listening(address) as manager:
        notify(READY)
        assert manager.recv(100) == b"READY=1"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has abstract names")
def test_its_name_may_be_abstract(monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"exacta-test-{os.getpid()}"
    monkeypatch.setenv(VARIABLE, f"@{name}")
    with listening(f"\0{name}") as manager:
        notify(READY)
        assert manager.recv(100) == b"READY=1"


def test_one_that_does_not_listen_is_no_obstacle(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "nowhere"))
    with caplog.at_level(logging.WARNING):
        notify(READY)
    assert [record.getMessage() for record in caplog.records] == [
        "the service manager could not be told READY=1: No such file or directory"
    ]


def test_a_server_says_that_clients_can_connect_and_that_it_stops(tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    command = [sys.executable, "-m", "exacta.cli", "serve", "--data", str(tmp_path / "data"), "--listen", "127.0.0.1:0"]
    with (
        listening(address) as manager,
        subprocess.Popen(command, env={**os.environ, VARIABLE: address}, stdout=subprocess.PIPE, text=True) as server,
    ):
        try:
            assert manager.recv(100) == b"READY=1"
            assert server.stdout is not None
            port = int(server.stdout.readline().split(",")[0].rpartition(":")[2])
            socket.create_connection(("127.0.0.1", port), TIMEOUT_S).close()
            server.send_signal(signal.SIGTERM)
            assert manager.recv(100) == b"STOPPING=1"
            assert server.wait(TIMEOUT_S) == 0
        finally:
            server.kill()
