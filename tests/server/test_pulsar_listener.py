"""The listener for Pulsar's clients: nothing of it is loaded unless it is asked for, and what a server says of it."""

import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

import exacta
from exacta.extras import install_extra
from exacta.server.errors import ServerError
from tests.pulsar.wire import Wire
from tests.server.test_server import Process


def test_nothing_of_pulsar_is_loaded_unless_it_is_asked_for() -> None:
    script = """
import sys, exacta
with exacta.Broker() as broker:
    pass
asked_for = ("google.protobuf", "exacta.pulsar", "exacta.protocol.pulsar", "exacta.web", "exacta.metrics",
    "starlette", "uvicorn", "h11", "prometheus_client")
print([name for name in sys.modules if name.startswith(asked_for)])
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_without_protobuf_one_line_says_what_to_install(tmp_path: Path) -> None:
    script = """
import sys
import urllib.request
sys.modules["google.protobuf"] = sys.modules["google.protobuf.message"] = None
from exacta.cli.serve import run
sys.exit(run(["--data", sys.argv[1], "--listen", "127.0.0.1:0", "--pulsar-listen", "127.0.0.1:0"]))
"""
    data = tmp_path / "data"
    found = subprocess.run([sys.executable, "-c", script, str(data)], capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert found.stderr == f"exacta: Pulsar's clients need protobuf: install it by {install_extra('pulsar')}\n"
    assert not data.exists()


def test_a_server_says_where_it_listens_and_ends_cleanly(tmp_path: Path) -> None:
    server = Process(tmp_path, "--pulsar-listen", "127.0.0.1:0", "--pulsar-advertise", "broker.example:6650")
    try:
        assert server.process.stdout is not None
        said = server.process.stdout.readline()
        assert said.startswith("exacta: listening for Pulsar's clients on 127.0.0.1:")
        wire = Wire(f"pulsar://{said.split()[-1]}")
        assert isinstance(wire.open_producer("t").producer_name, str)
        assert wire.lookup("t").broker_service_url == "pulsar://broker.example:6650"
        code, errors = server.end(signal.SIGTERM)
        assert (code, "WARNING" in errors) == (0, False)
        assert wire.is_closed()
        wire.close()
    finally:
        server.clean_up()


def test_whoever_can_be_reached_by_others_is_warned_about(tmp_path: Path) -> None:
    server = Process(tmp_path, "--pulsar-listen", ":0", "--set", "allow.anonymous=PULSAR")
    try:
        _, errors = server.end(signal.SIGTERM)
        [warning] = [line for line in errors.splitlines() if "WARNING" in line]
        assert "other machines reach PULSAR on :" in warning
        assert "allow.anonymous lets everybody in" in warning
    finally:
        server.clean_up()


def test_a_port_that_is_taken_is_one_line(tmp_path: Path) -> None:
    with exacta.Broker(pulsar=True) as first:
        port = int(first.pulsar_url.rpartition(":")[2])
        second = exacta.Broker(pulsar=True, pulsar_port=port)
        with pytest.raises(ServerError, match=f"cannot listen on 127.0.0.1:{port}"):
            second.start()


def test_the_url_of_an_embedded_broker() -> None:
    broker = exacta.Broker()
    with pytest.raises(ServerError, match="pulsar=True"):
        _ = broker.pulsar_url
    broker = exacta.Broker(pulsar=True)
    with pytest.raises(ServerError, match="not been started"):
        _ = broker.pulsar_url
    with broker:
        url = broker.pulsar_url
        assert broker.restart().pulsar_url == url
    with pytest.raises(ValueError, match="port must be"):
        exacta.Broker(pulsar=True, pulsar_port=70_000)


def test_doors_that_others_reach_are_closed_unless_they_are_opened_by_name(tmp_path: Path) -> None:
    doors = ["--pulsar-listen", "127.0.0.1:0", "--web-listen", "0.0.0.0:0"]
    closed = Process(tmp_path, *doors, "--set", "allow.anonymous=PLAINTEXT", listen="0.0.0.0:0")
    code, errors = closed.end()
    assert code == 1
    assert errors.startswith("exacta: other machines reach WEB on 0.0.0.0:")
    assert errors.endswith(", or let everybody in by --set allow.anonymous=PLAINTEXT,WEB\n")
    for more in ([], ["--set", "web.allow.anonymous=true"]):
        server = Process(tmp_path, *doors, "--set", "allow.anonymous=plaintext,WEB", *more, listen="0.0.0.0:0")
        try:
            code, errors = server.end(signal.SIGTERM)
            assert (code, errors.count("allow.anonymous lets everybody in: who")) == (0, 2)
            assert ("web.allow.anonymous has no effect any more: allow.anonymous=WEB" in errors) is bool(more)
        finally:
            server.clean_up()


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("allow.anonymous=WEB", "exacta: allow.anonymous: there is no door WEB; the doors are PLAINTEXT\n"),
        ("allow.anonymous=", "exacta: allow.anonymous is empty: give it a value, or leave it out\n"),
        ("alow.anonymous=WEB", "exacta: unknown option alow.anonymous; did you mean allow.anonymous?\n"),
        (
            "ssl.client.auth=require",
            "exacta: ssl.client.auth cannot be 'require': it is none or requested or required\n",
        ),
        (
            "ssl.key.password=abc",
            "exacta: ssl.key.password is a secret, and the list of processes shows the command line: give it in a file "
            "(--config)\n",
        ),
    ],
)
def test_a_security_option_that_means_nothing_is_refused(tmp_path: Path, option: str, message: str) -> None:
    code, errors = Process(tmp_path, "--set", option).end()
    assert (code in (1, 2), errors) == (True, message)


@pytest.mark.parametrize(
    ("module", "package"), [("starlette", "starlette"), ("prometheus_client", "prometheus-client")]
)
def test_without_a_web_server_one_line_says_what_to_install(tmp_path: Path, module: str, package: str) -> None:
    script = """
import sys
import urllib.request
sys.modules[sys.argv[2]] = None
from exacta.cli.serve import run
listen = ["--listen", "127.0.0.1:0", "--pulsar-listen", "127.0.0.1:0", "--web-listen", "127.0.0.1:0"]
sys.exit(run(["--data", sys.argv[1], *listen]))
"""
    found = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "data"), module], capture_output=True, text=True, check=False
    )
    assert found.returncode == 1
    assert found.stderr == f"exacta: the web front needs {package}: install it by {install_extra('web')}\n"


def test_a_server_says_where_it_listens_for_http(tmp_path: Path) -> None:
    server = Process(tmp_path, "--pulsar-listen", "127.0.0.1:0", "--web-listen", "127.0.0.1:0")
    try:
        assert server.process.stdout is not None
        said = [server.process.stdout.readline() for _ in range(2)]
        assert said[1].startswith("exacta: listening for HTTP on 127.0.0.1:")
        with urllib.request.urlopen(f"http://{said[1].split()[-1]}/status.html", timeout=20) as answer:
            assert answer.read() == b"ok"
        assert server.end(signal.SIGTERM)[0] == 0
    finally:
        server.clean_up()
