"""`exacta verify`: what is said, with which exit code, and what is left behind."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import exacta
from exacta.cli import main
from exacta.client.routing import Client
from exacta.extras import install_extra
from exacta.verify.history import encode
from tests.conformance.brokers import free_port
from tests.verify import planted
from tests.verify.model import clean_history


def call(*arguments: object) -> "subprocess.CompletedProcess[str]":
    program = [sys.executable, "-m", "exacta.cli", "verify", *map(str, arguments)]
    return subprocess.run(program, capture_output=True, text=True, check=False)


def written(path: Path, history: list) -> Path:
    path.write_bytes(b"".join(encode(op) for op in history))
    return path


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give one of --bootstrap-server and --analyze"),
        (["--bootstrap-server", "h:1", "--analyze", "x"], "give one of --bootstrap-server and --analyze"),
        (["--bootstrap-server", "h:1", "--workload", "x"], "--workload: expected one of append, transfer, etl"),
        (
            ["--bootstrap-server", "h:1", "--transaction-buffer", "x"],
            "--transaction-buffer: expected one of marker, sidecar",
        ),
        (["--bootstrap-server", "h:1", "--kill", "no-such-file"], "--kill: [Errno 2] No such file"),
        (["--bootstrap-server", "h:1", "--kill", "1"], "--kill: 1 names no process to kill"),
        (["--bootstrap-server", "h:1", "--output", "."], "--output: . is not empty"),
        (["--bootstrap-server", "h:1", "--command-config", "none"], "'none' cannot be read"),
        (["--bootstrap-server", "h:1", "--pulsar-url", "h:1"], "--pulsar-url: expected pulsar://HOST:PORT, not 'h:1'"),
        (["--bootstrap-server", "h:1", "--strict", "x"], "--strict: x is none of g0, g1c-by-writes, partly-visible"),
    ],
)
def test_wrong_calls_are_one_line_and_exit_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    (tmp_path / "something").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["exacta", "verify", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    said = capsys.readouterr()
    assert said.err.startswith(f"exacta: {message}")
    assert (said.out, said.err.count("\n")) == ("", 1)


def test_a_cluster_that_is_not_there_is_one_line_and_exit_1(tmp_path: Path) -> None:
    called = call("--bootstrap-server", f"127.0.0.1:{free_port()}", "--output", tmp_path / "out")
    assert called.returncode == 1
    waiting, gave_up = called.stderr.splitlines()
    assert waiting.endswith("Connection refused; trying for 14 s more")
    assert gave_up.startswith("exacta: gave up after 15 s")
    assert not (tmp_path / "out").exists()


def test_a_broken_history_is_one_line_and_exit_1(tmp_path: Path) -> None:
    (tmp_path / "history").write_text("nonsense\n")
    called = call("--analyze", tmp_path / "history")
    assert (called.returncode, called.stderr.count("\n")) == (1, 1)
    assert "line 1, is no operation of a history" in called.stderr


def test_a_history_is_analysed_again_to_the_same_end(tmp_path: Path) -> None:
    clean = written(tmp_path / "clean.jsonl", clean_history(1))
    first, second = call("--analyze", clean), call("--analyze", clean)
    assert first.returncode == 0
    assert first.stdout == second.stdout
    assert first.stdout.splitlines()[-1] == "no anomaly found"
    page = (tmp_path / "clean.html").read_text()
    bad = written(tmp_path / "bad.jsonl", planted.hanging(planted.lost(clean_history(1))))
    found = call("--analyze", bad)
    assert found.returncode == 1
    assert "lost-write, 1 ×: A record of a committed transaction" in found.stdout
    assert found.stdout.splitlines()[-1] == "2 anomalies of 2 kinds"
    assert (tmp_path / "bad.html").read_text() != page
    vacuous = written(tmp_path / "vacuous.jsonl", clean_history(1)[:1])
    assert call("--analyze", vacuous).returncode == 1


def test_a_run_leaves_history_and_report(tmp_path: Path) -> None:
    with exacta.Broker(group_initial_rebalance_delay_ms=0) as broker:
        called = call(
            *("--bootstrap-server", broker.bootstrap_servers, "--workload", "transfer", "--duration", 5),
            *("--producers", 1, "--seed", 7, "--output", tmp_path / "out"),
        )
    assert called.returncode == 0, called.stdout + called.stderr
    assert "no anomaly found" in called.stdout
    assert "seed 7" in called.stdout
    assert (tmp_path / "out" / "report.html").read_text().startswith("<!doctype html>")
    assert call("--analyze", tmp_path / "out" / "history.jsonl").returncode == 0


def test_a_run_that_is_ended_deletes_its_topics(tmp_path: Path) -> None:
    with exacta.Broker(group_initial_rebalance_delay_ms=0) as broker:
        arguments = ["--bootstrap-server", broker.bootstrap_servers, "--workload", "append", "--producers", "1"]
        arguments += ["--duration", "300", "--kill-clients-every", "0.1", "--output", str(tmp_path / "out")]
        program = [sys.executable, "-m", "exacta.cli", "verify", *arguments]
        with subprocess.Popen(program, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            assert any(line.startswith("client killed") for line in process.stderr), "it is at work"
            process.send_signal(signal.SIGTERM)
            process.stderr.read()
            assert process.wait(60) == 128 + signal.SIGTERM
        with Client(broker.bootstrap_servers) as client:
            assert client.topic_names() == []


@pytest.mark.parametrize(
    ("arguments", "code"), [(["--analyze", "clean.jsonl"], 0), (["--bootstrap-server", "127.0.0.1:1"], 2)]
)
def test_only_a_run_needs_librdkafka(tmp_path: Path, arguments: list[str], code: int) -> None:
    written(tmp_path / "clean.jsonl", clean_history(1))
    (tmp_path / "confluent_kafka.py").write_text("raise AssertionError")
    hidden = "import importlib.util; importlib.util.find_spec = lambda name: None"
    program = [sys.executable, "-c", f"{hidden}; from exacta.cli import main; main()", "verify", *arguments]
    called = subprocess.run(program, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert called.returncode == code, called.stderr
    if code:
        assert called.stderr == f"exacta: confluent-kafka is not installed: {install_extra('verify')}\n"


HIDES_PULSAR = """
import importlib.util as util
real = util.find_spec
util.find_spec = lambda name: None if name == "pulsar" else real(name)
from exacta.cli import main
main()
"""


def test_a_run_with_pulsars_clients_needs_their_package(tmp_path: Path) -> None:
    program = [sys.executable, "-c", HIDES_PULSAR, "verify"]
    program += ["--bootstrap-server", "127.0.0.1:1", "--pulsar-url", "pulsar://127.0.0.1:2"]
    called = subprocess.run(program, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert called.returncode == 2
    assert called.stderr == f"exacta: pulsar-client is not installed: {install_extra('verify-pulsar')}\n"
