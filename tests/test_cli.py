"""The command line: what is said, and with which exit code."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from typer.testing import CliRunner

import exacta
from exacta import __version__
from exacta.cli import main
from exacta.cli.app import app
from exacta.cli.serve import run
from exacta.config.configuration import Configuration
from exacta.config.options import options
from exacta.front.doors import Door, Endpoint
from exacta.server.door_options import doors_of
from tests import repairing


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "num.partition=3"], "unknown option num.partition; did you mean num.partitions?"),
        (["--set", "num.partitions=x"], "num.partitions must be a whole number, not 'x'"),
        (["--set", "num.partitions"], "argument --set: expected key=value, not 'num.partitions'"),
        (["--listen", "nonsense"], "argument --listen: expected HOST:PORT, not 'nonsense'"),
        (
            ["--listen", "127.0.0.1:99999"],
            "argument --listen: expected HOST:PORT with a port of at most 65535, not '127.",
        ),
        (
            ["--set", "listeners=PLAINTEXT://:9092"],
            "unknown option listeners: give --listen HOST:PORT to `exacta serve`",
        ),
        (["--config", "no-such-file"], "cannot read no-such-file: No such file or directory"),
        (["--data", ""], "argument --data: expected a directory, not an empty name"),
        (["--frobnicate"], "unrecognized arguments: --frobnicate"),
        (["surplus"], "unrecognized arguments: surplus"),
    ],
)
def test_wrong_calls_are_one_line_and_exit_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"exacta: {message}")
    assert err.count("\n") == 1


def test_the_command_line_wins_over_the_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "options"
    file.write_text("group_max_size=5\n")
    assert run(["--config", str(file), "--set", "group.max.size=0"]) == 2
    assert capsys.readouterr().err == "exacta: group.max.size must be between 1 and 2147483647, not 0\n"


def served(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[Configuration, Path, list[Door]]:
    """Return what `exacta serve` with these arguments would serve, and where."""
    calls: list[Any] = []

    def serve(*call: object, **_: object) -> int:
        calls.append(call)
        return 0

    monkeypatch.setattr("exacta.cli.serve.serve", serve)
    assert run(arguments) == 0
    (call,) = calls
    return call


def test_without_a_file_it_is_served_on_kafkas_port_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    listen = Endpoint("127.0.0.1", 9092)
    assert served(monkeypatch) == (Configuration(), Path("exacta-data"), doors_of({"listen": listen}))


def test_a_file_says_where_to_serve_and_the_command_line_wins(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "server.properties"
    file.write_text(
        "listeners=PLAINTEXT://:1\nadvertised.listeners=PLAINTEXT://b:2\nlog.dirs=/d\nnum.partitions=3\n"
        "min.insync.replicas=2\nnum.io.threads=8\nnum.network.threads=3\nweb.listen=127.0.0.1:3\n"
    )
    doors = doors_of({"listen": Endpoint("", 1), "advertise": Endpoint("b", 2), "web_listen": Endpoint("127.0.0.1", 3)})
    assert served(monkeypatch, "--config", str(file)) == (Configuration(num_partitions=3), Path("/d"), doors)
    assert capsys.readouterr().err == (
        f"exacta: {file}: min.insync.replicas=2 is not kept: there is one replica\n"
        f"exacta: {file}: 2 keys are unknown here, and have no effect: num.io.threads, num.network.threads\n"
    )
    arguments = ["--config", str(file), "--listen", "h:4", "--data", "e", "--set", "num_partitions=5"]
    configuration, data, doors = served(monkeypatch, *arguments)
    assert (configuration.num_partitions, data, doors[0].endpoint) == (5, Path("e"), Endpoint("h", 4))
    assert doors[0].advertised == Endpoint("b", 2)


SEVERAL = "listeners=IN://:1,OUT://h:2\nlistener.security.protocol.map=IN:PLAINTEXT,OUT:PLAINTEXT\n"


def test_a_file_names_several_listeners_and_the_command_line_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "server.properties"
    file.write_text(SEVERAL + "advertised.listeners=IN://in:3,OUT://out:4\nweb.listen=127.0.0.1:5\n")
    arguments = ["--config", str(file)]
    _, _, doors = served(monkeypatch, *arguments)
    assert [(each.front, each.name, str(each.endpoint), str(each.told)) for each in doors] == [
        ("kafka", "IN", ":1", "in:3"),
        ("kafka", "OUT", "h:2", "out:4"),
        ("web", "WEB", "127.0.0.1:5", "127.0.0.1:5"),
    ]
    _, _, doors = served(monkeypatch, *arguments, "--listen", "h:6", "--advertise", "a:7")
    assert [(each.front, str(each.endpoint), str(each.told)) for each in doors] == [
        ("kafka", "h:6", "a:7"),
        ("web", "127.0.0.1:5", "127.0.0.1:5"),
    ]
    assert run([*arguments, "--advertise", "a:7"]) == 2
    assert capsys.readouterr().err == (
        "exacta: advertise names one address, and the listeners IN and OUT have one each: name them by "
        "advertised.listeners\n"
    )


def test_a_file_says_how_to_log_and_the_command_line_wins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "exacta.toml"
    file.write_text('log_level = "debug"\n"log.format" = "json"\n')
    asked: list[dict[str, Any]] = []

    def serve(*_: object, **log: Any) -> int:
        asked.append(log)
        return 0

    monkeypatch.setattr("exacta.cli.serve.serve", serve)
    for arguments in ([], ["--config", str(file)], ["--config", str(file), "--log-level", "error"]):
        assert run(arguments) == 0
    said = [("info", "text"), ("debug", "json"), ("error", "json")]
    assert [(each["log_level"], each["log_format"]) for each in asked] == said
    file.write_text('log_level = "warning"\n')
    assert [each["level_now"]() for each in asked] == ["info", "warning", "error"]


def test_a_file_with_mistakes_is_not_served(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=0\nmin.insync.replica=2\nnum.io.threads=8\n")
    assert run(["--config", str(file)]) == 2
    assert capsys.readouterr().err == (
        f"exacta: {file}:1: num.partitions must be between 1 and 10000, not 0 "
        f"(and 1 more: exacta config check {file})\n"
    )


def test_help_all_of_serve_names_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        run(["--help-all"])
    assert exit_.value.code == 0
    shown = capsys.readouterr().out
    assert "Kafka clients, and to Pulsar clients" in " ".join(shown.split())
    for option in options().values():
        assert f"{option.name}={str(option.default).lower()}" in shown


def test_version_and_help(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for argument, expected in (("--version", f"exacta {__version__}"), ("--help", "serve")):
        monkeypatch.setattr(sys, "argv", ["exacta", argument])
        with pytest.raises(SystemExit) as exit_:
            main()
        assert exit_.value.code == 0
        assert expected in capsys.readouterr().out


def test_an_unknown_command_exits_2() -> None:
    called = subprocess.run([sys.executable, "-m", "exacta.cli", "frobnicate"], capture_output=True, text=True)
    assert called.returncode == 2
    assert "frobnicate" in called.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["frobnicate"], "no such command 'frobnicate' (exacta --help shows how)"),
        (["topics", "create"], "missing argument 'TOPIC' (exacta topics create --help shows how)"),
        (["topics", "list", "-x"], "no such option: -x (exacta topics list --help shows how)"),
        (["consume", "t", "-c", "0"], "invalid value for '--count' / '--max-messages' / '-c': "),
    ],
)
def test_a_wrong_call_is_told_in_one_line(arguments: list[str], message: str) -> None:
    called = CliRunner().invoke(app, arguments, prog_name="exacta")
    assert (called.exit_code, called.stdout, called.stderr.count("\n")) == (2, "", 1)
    assert called.stderr.startswith(f"exacta: {message}")


def test_a_question_that_nobody_answers_changes_nothing() -> None:
    with exacta.Broker() as broker:
        where = ["--bootstrap-server", broker.bootstrap_servers]
        assert CliRunner().invoke(app, ["topics", "create", "t", *where]).exit_code == 0
        called = CliRunner().invoke(app, ["topics", "delete", "t", *where])
        assert (called.exit_code, called.stderr) == (1, "\nexacta: nobody has answered: nothing was changed\n")
        assert "t" in CliRunner().invoke(app, ["topics", "list", *where]).stdout.split()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_an_output_that_cannot_be_written_is_told_in_one_line() -> None:
    with open("/dev/full", "w") as full:
        program = [sys.executable, "-m", "exacta.cli", "config", "reference"]
        called = subprocess.run(program, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    told = "exacta: the output cannot be written: No space left on device\n"
    assert (called.returncode, called.stderr) == (1, told)


@pytest.mark.parametrize(
    "command", [["verify"], ["groups", "lag"], ["transactions", "list"], ["transactions", "abort"], ["spark", "clean"]]
)
def test_clusters_are_named_as_for_kafkas_tools_and_the_plural_is_understood(command: list[str]) -> None:
    shown = CliRunner().invoke(app, [*command, "--help"]).stdout
    assert "--bootstrap-server " in shown
    assert "--bootstrap-servers" not in shown
    arguments = {"abort": ["id"], "lag": ["group"], "clean": ["--query", "q"]}.get(command[-1], [])
    for option in ("--bootstrap-server", "--bootstrap-servers"):
        refused = CliRunner().invoke(app, [*command, *arguments, option, "nowhere"])
        assert (refused.exit_code, refused.stderr) == (2, "exacta: --bootstrap-server: 'nowhere' is not host:port\n")


def test_the_demo_keeps_its_files_in_an_empty_directory_only(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for keep in (tmp_path, tmp_path / "file"):
        refused = CliRunner().invoke(app, ["demo", "--keep", str(keep)])
        assert (refused.exit_code, refused.stderr) == (2, f"exacta: --keep: {keep} is not an empty directory\n")


def run_log(command: str, data: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    program = [sys.executable, "-m", "exacta.cli", "log", command, "--data", str(data), *options]
    return subprocess.run(program, capture_output=True, text=True, check=False)


def test_the_files_of_a_server_are_verified_and_dumped(tmp_path: Path) -> None:
    with exacta.Broker(data=tmp_path) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce("t", b"value")
        assert producer.flush(30) == 0
        del producer
        busy = run_log("verify", tmp_path)
        assert (busy.returncode, busy.stderr.count("\n")) == (1, 1)
        assert "stop the server first" in busy.stderr
    sound = run_log("verify", tmp_path)
    assert (sound.returncode, sound.stderr) == (0, "")
    assert "can be read; the last one ends at position" in sound.stdout
    dumped = [json.loads(line) for line in run_log("dump", tmp_path).stdout.splitlines()]
    assert {"TopicCreated", "BatchAppended"} <= {line["event"] for line in dumped}
    (appended,) = (line for line in dumped if line["event"] == "BatchAppended")
    assert appended["batches"][0]["record_count"] == 1
    segment = next((tmp_path / "journal").glob("*.log"))
    content = bytearray(segment.read_bytes())
    content[dumped[0]["byte"] + 70] ^= 1
    segment.write_bytes(content)
    damaged = run_log("verify", tmp_path)
    assert damaged.returncode == 1
    assert f"{segment.name}, byte {dumped[0]['byte']}: the group's checksum is wrong" in damaged.stdout
    assert "restore the directory from a copy" in damaged.stderr
    again = [json.loads(line) for line in run_log("dump", tmp_path).stdout.splitlines()]
    assert again[0]["verdict"] == "damaged"
    assert appended in again, "what can be read is"
    assert segment.read_bytes() == content


def test_what_is_staged_is_dumped_without_its_messages(tmp_path: Path) -> None:
    with exacta.Broker(data=tmp_path, transaction_buffer="sidecar") as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "x"})
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce("t", b"a secret" * 100)
        producer.commit_transaction(30)
    dumped = run_log("dump", tmp_path)
    assert "batch" not in dumped.stdout.replace("batches", "")
    lines = [json.loads(line) for line in dumped.stdout.splitlines()]
    (staged,) = (line for line in lines if line["event"] == "BatchStaged")
    (ended,) = (line for line in lines if line["event"] == "TransactionEnded")
    assert staged["size"] == ended["batches"][0]["size"]
    assert ended["entries"] == [[staged["partition_id"], 0, staged["producer_id"], 1]]


@pytest.mark.parametrize("command", ["verify", "dump", "repair"])
def test_a_journal_of_another_version_is_not_called_damaged(tmp_path: Path, command: str) -> None:
    journal = tmp_path / "journal"
    journal.mkdir()
    (journal / "format").write_bytes(b"exacta journal 5\n")
    (journal / "00000000000000000000.log").write_bytes(b"of another version")
    told = run_log(command, tmp_path)
    assert (told.returncode, told.stdout, told.stderr.count("\n")) == (1, "", 1)
    assert told.stderr.startswith(f"exacta: {journal / 'format'} says 'exacta journal 5', and this version")


def test_a_journal_is_repaired_by_what_the_operator_agrees_to(tmp_path: Path) -> None:
    data, journal = tmp_path / "data", tmp_path / "data" / "journal"
    repairing.write(data)
    assert (run_log("repair", data).returncode, run_log("repair", data).stdout) == (0, "nothing is damaged\n")
    segment = min(journal.glob("*.log"))
    content = bytearray(segment.read_bytes())
    content[20_000:20_100] = bytes(100)
    segment.write_bytes(content)
    before = {path.name: path.read_bytes() for path in journal.iterdir() if path.is_file()}

    told = run_log("repair", data)
    assert told.returncode == 1
    assert f"cannot be put right: {segment.name}, byte " in told.stdout
    assert "exacta log repair --mend: no remedy here" in told.stdout
    assert "exacta log repair --drop-damaged-batches: gives up\n    topic " in told.stdout
    assert "exacta log repair --truncate-at-damage: gives up\n" in told.stdout
    assert "nothing was changed" in told.stderr
    refused = run_log("repair", data, "--mend")
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert {path.name: path.read_bytes() for path in journal.iterdir() if path.is_file()} == before
    misused = run_log("repair", data, "--drop-damaged-batches", "--keep-in", str(data))
    assert (misused.returncode, misused.stderr.count("\n")) == (2, 1)

    done = run_log("repair", data, "--drop-damaged-batches", "--keep-in", str(tmp_path / "kept"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "given up: topic " in done.stdout
    assert "the journal is repaired" in done.stdout
    assert (tmp_path / "kept" / segment.name).read_bytes() == content
    assert "given up: topic " in (tmp_path / "kept" / "repair.txt").read_text()
    sound = run_log("verify", data)
    assert (sound.returncode, sound.stderr) == (0, "")
    assert repairing.consumed(data, "plain", 0)
    assert run_log("repair", data, "--mend").stdout == "nothing is damaged\n"

    newest = max(journal.glob("*.log"))
    content = bytearray(newest.read_bytes())
    content[70] ^= 4
    newest.write_bytes(content)
    mended = run_log("repair", data, "--mend")
    assert (mended.returncode, mended.stderr) == (0, "")
    assert f"put right: {newest.name}, byte 70: a flipped bit" in mended.stdout
    (kept,) = journal.glob("damaged-*")
    assert (kept / newest.name).read_bytes() == content
    assert repairing.consumed(data, "plain", 0)

    (journal / "repair").write_text('{"put": [], "remove": [], "kept_in": "there"}')
    assert "a repair was interrupted" in run_log("repair", data).stderr
    assert "was interrupted" in run_log("verify", data).stdout
    assert (
        "finished the repair that was interrupted; the old files are in there"
        in run_log("repair", data, "--mend").stdout
    )
    assert run_log("verify", data).returncode == 0


def test_where_there_is_no_journal_one_line_says_so(tmp_path: Path) -> None:
    for command in ("verify", "dump", "repair"):
        found = run_log(command, tmp_path)
        assert (found.returncode, found.stdout, found.stderr.count("\n")) == (1, "", 1)
        assert "there is no journal" in found.stderr
    assert list(tmp_path.iterdir()) == []


HOSTILE = "[/red]\n\x1b[2Jx"
"""Brackets, which Rich takes for a command, the end of a line, and a terminal's command to clear the screen."""


def test_names_that_clients_have_chosen_stay_on_their_lines() -> None:
    with exacta.Broker() as broker:
        where = ["--bootstrap-server", broker.bootstrap_servers]
        settings = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": HOSTILE}
        producer = Producer(settings)
        producer.init_transactions()
        producer.begin_transaction()
        producer.produce("t", b"x")
        producer.flush()
        consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": HOSTILE})
        consumer.commit(offsets=[TopicPartition("t", 0, 0)], asynchronous=False)
        consumer.close()
        for command in (["transactions", "list"], ["groups", "list"], ["groups", "lag", HOSTILE]):
            shown = CliRunner().invoke(app, [*command, *where])
            assert shown.exit_code == 0, command
            assert r"[/red]\n\x1b[2Jx" in shown.stdout, command
        producer.abort_transaction()
        del producer


@pytest.mark.parametrize("name", ["\udcff", "x" * 40_000])
def test_a_name_that_no_cluster_can_have_is_refused_in_one_line(name: str) -> None:
    with exacta.Broker() as broker:
        for command in (["transactions", "explain"], ["transactions", "abort"], ["groups", "lag"]):
            refused = CliRunner().invoke(app, [*command, name, "--bootstrap-server", broker.bootstrap_servers])
            assert (refused.exit_code, refused.stdout) == (2, "")
            assert refused.stderr.startswith("exacta: an argument cannot be said in Kafka's protocol: ")
            assert refused.stderr.count("\n") == 1
