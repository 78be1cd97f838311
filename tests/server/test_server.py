"""`exacta serve` as a process, and the parts of the composition root."""

import contextlib
import json
import logging
import os
import pty
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import pytest

import exacta
from exacta.adapters.local import format_file
from exacta.adapters.local.format import VERSION
from exacta.engine.schema import SCHEMA
from exacta.front.doors import Endpoint
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from exacta.protocol.kafka.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from exacta.protocol.kafka.messages.k35_describe_log_dirs import DescribeLogDirsRequest
from exacta.server.listeners import parse_endpoint
from exacta.server.log_lines import OneLine
from tests.kafka.test_configs import BROKER, SET, changes, describe
from tests.kafka.wire import Wire, batch, values_in
from tests.signals import heard

EXIT_SECONDS = 30
TAKES_A_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(int(sys.argv[1]), termios.TIOCSCTTY, 0)
os.execv(sys.argv[2], sys.argv[2:])
"""


class Process:
    """A server of its own, listening."""

    def __init__(
        self,
        data: Path,
        *arguments: str,
        listen: str | None = "127.0.0.1:0",
        heeds: Collection[int] = (),
        terminal: bool = False,
    ) -> None:
        command = [sys.executable, "-m", "exacta.cli", "serve", "--data", str(data), *arguments]
        command += [] if listen is None else ["--listen", listen]
        self._terminal = [*pty.openpty()] if terminal else []
        if terminal:  # a program between, since a terminal is taken by the process that is to have it
            command = [sys.executable, "-c", TAKES_A_TERMINAL, str(self._terminal[1]), *command]
        with heard(*heeds):
            self.process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,  # it has no terminal, wherever the tests run
                pass_fds=self._terminal[1:],
            )
        assert self.process.stdout is not None
        self.ready_line = self.process.stdout.readline()
        self.wires: list[Wire] = []

    def connect(self, host: str | None = None) -> Wire:
        """Return a new connection to it."""
        self.wires.append(Wire((host or self.address[0], self.address[1])))
        return self.wires[-1]

    @property
    def address(self) -> tuple[str, int]:
        """Where it says that it listens."""
        endpoint = parse_endpoint(self.ready_line.split("listening on ")[1].split(",")[0])
        return endpoint.host, endpoint.port

    def end(self, number: int | None = None) -> tuple[int, str]:
        """Send a signal, if any; wait for the end; return exit code and what was written to stderr."""
        if number is not None:
            self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=EXIT_SECONDS)
        return self.process.returncode, errors

    def clean_up(self) -> None:
        """Leave neither connections nor a process."""
        for wire in self.wires:
            wire.socket.close()
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
        for each in self._terminal:
            os.close(each)


Start = Callable[..., Process]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start servers on one data directory; they end with the test."""
    started: list[Process] = []

    def starting(
        *arguments: str,
        listen: str | None = "127.0.0.1:0",
        data: Path = tmp_path / "data",
        heeds: Collection[int] = (),
        terminal: bool = False,
    ) -> Process:
        started.append(Process(data, *arguments, listen=listen, heeds=heeds, terminal=terminal))
        return started[-1]

    yield starting
    for each in started:
        each.clean_up()


def produce(wire: Wire, value: bytes) -> None:
    assert wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9).topics[0].error_code == 0
    data = PartitionProduceData(index=0, records=batch(value))
    request = ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="t", partition_data=[data])])
    answer = wire.ask(request, 9).responses[0].partition_responses[0]
    assert answer.error_code == ErrorCode.NONE


def fetch_request(offset: int = 0, max_wait_ms: int = 0) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic="t", partitions=[partition])]
    return FetchRequest(topics=topics, max_wait_ms=max_wait_ms, min_bytes=1)


def consume(wire: Wire) -> list[bytes]:
    return values_in(wire.ask(fetch_request(), 11).responses[0].partitions[0].records)


class TestLife:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
    def test_it_says_where_it_listens_and_stops_cleanly(self, start: Start, tmp_path: Path, number: int) -> None:
        server = start(heeds=[number], terminal=number == signal.SIGHUP)
        host, port = server.address
        assert server.ready_line == f"exacta: listening on {host}:{port}, data in {tmp_path / 'data'}\n"
        produce(server.connect(), b"kept")
        code, errors = server.end(number)
        assert code == 0
        assert "ERROR" not in errors
        assert consume(start().connect()) == [b"kept"]

    @pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
    def test_what_is_ignored_when_it_starts_does_not_end_it(self, start: Start, number: int) -> None:
        """By nohup it outlives the terminal; and Ctrl-C is not for a script's job in the background."""
        before = signal.signal(number, signal.SIG_IGN)  # the server inherits it
        try:
            server = start()
        finally:
            signal.signal(number, before)
        server.process.send_signal(number)
        produce(server.connect(), b"goes on")
        assert server.end(signal.SIGTERM)[0] == 0

    def test_without_a_terminal_a_hangup_lets_it_read_its_files_again(self, start: Start, tmp_path: Path) -> None:
        file = tmp_path / "exacta.toml"
        file.write_text("log_level = 'info'\n")
        server = start("--config", str(file), heeds=[signal.SIGHUP])
        assert server.process.stderr is not None
        for written, expected in (
            ("log_level = 'debug'\n", "the level of the log was read again: it is debug"),
            ("log_level = 'loud'\n", "the level of the log stays: "),
            ("", "the level of the log was read again: it is info"),
        ):
            file.write_text(written)
            server.process.send_signal(signal.SIGHUP)
            assert any(expected in line for line in server.process.stderr)
        produce(server.connect(), b"goes on")
        assert server.end(signal.SIGTERM)[0] == 0

    def test_what_was_acknowledged_survives_a_kill(self, start: Start) -> None:
        server = start()
        produce(server.connect(), b"kept")
        server.end(signal.SIGKILL)
        again = start()
        assert consume(again.connect()) == [b"kept"]
        assert again.end(signal.SIGTERM)[0] == 0

    def test_stopping_answers_who_waits_for_records(self, start: Start) -> None:
        server = start()
        wire = server.connect()
        produce(wire, b"v")
        waits = fetch_request(offset=1, max_wait_ms=60_000)
        sent = wire.send(waits, 11)
        other = server.connect()
        # Answered after the broker has seen the fetch: connections are served in the order in which bytes came.
        other.ask(MetadataRequest(topics=[]), 9)
        server.process.send_signal(signal.SIGTERM)
        correlation_id, response = wire.receive(waits, 11)
        assert correlation_id == sent
        assert response.responses[0].partitions[0].error_code == ErrorCode.NONE
        assert server.end()[0] == 0

    def test_a_journal_that_fails_ends_it_without_an_answer(self, start: Start) -> None:
        server = start()
        wire = server.connect()
        produce(wire, b"v")
        limit = 1 << 20  # no file of it may grow beyond this any more
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (limit, limit))
        data = PartitionProduceData(index=0, records=batch(b"x" * 1_000_000))
        request = ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="t", partition_data=[data])])
        for _ in range(3):
            wire.send(request, 9)
        answers = 0
        with contextlib.suppress(ConnectionError):
            while True:
                wire.receive(request, 9)
                answers += 1
        assert answers < 3
        code, errors = server.end()
        assert code == 1
        assert errors.splitlines()[-1].startswith("exacta: stopped at once")
        again = start()
        assert consume(again.connect())[0] == b"v"

    def test_the_cluster_id_stays(self, start: Start) -> None:
        server = start()
        cluster_id = server.connect().ask(MetadataRequest(topics=[]), 9).cluster_id
        assert len(cluster_id) == 22
        server.end(signal.SIGTERM)
        assert start().connect().ask(MetadataRequest(topics=[]), 9).cluster_id == cluster_id


class TestRefusals:
    def test_a_second_server_on_the_directory(self, start: Start) -> None:
        start()
        second = start()
        assert second.ready_line == ""
        code, errors = second.end()
        assert code == 1
        assert len(errors.splitlines()) == 1
        assert "in use" in errors

    def test_a_port_that_is_taken(self, start: Start, tmp_path: Path) -> None:
        _, port = start().address
        code, errors = start(listen=f"127.0.0.1:{port}", data=tmp_path / "other").end()
        assert (code, errors) == (1, f"exacta: cannot listen on 127.0.0.1:{port}: address already in use\n")

    def test_a_host_that_is_not_ours(self, start: Start) -> None:
        code, errors = start(listen="192.0.2.1:0").end()
        assert code == 1
        assert errors.startswith("exacta: cannot listen on 192.0.2.1:0: ")

    def test_a_data_directory_that_cannot_be(self, start: Start, tmp_path: Path) -> None:
        file = tmp_path / "file"
        file.write_text("not a directory")
        code, errors = start(data=file).end()
        assert (code, errors) == (1, f"exacta: the data directory {file} is not a directory\n")

    def test_a_data_directory_that_cannot_be_made(self, start: Start, tmp_path: Path) -> None:
        code, errors = start(data=Path("/proc/nowhere")).end()
        assert code == 1
        assert errors.startswith("exacta: cannot make the data directory /proc/nowhere: ")
        assert errors.endswith("; name another with --data\n")
        code, errors = start(data=tmp_path / ("x" * 300)).end()
        assert (code, len(errors.splitlines())) == (1, 1)

    @pytest.mark.parametrize("name", ["notes.txt", "journal/ours.txt", "bootstrap.checkpoint"])
    def test_a_directory_of_other_files(self, start: Start, tmp_path: Path, name: str) -> None:
        file = tmp_path / "data" / name
        file.parent.mkdir(parents=True)
        file.touch()
        (tmp_path / "data" / "meta.properties").write_text("version=1\ncluster.id=x\nnode.id=1\n")  # of Apache Kafka
        code, errors = start().end()
        assert (code, errors) == (
            1,
            f"exacta: {tmp_path / 'data'} holds other files ({Path(name).parts[0]}) and no data of Exacta: name a new "
            "or empty directory with --data\n",
        )
        assert file.exists()

    @pytest.mark.parametrize(
        "names",
        [
            ["lost+found/", ".DS_Store", ".gitkeep"],
            ["journal/"],
            ["journal/lock"],
            ["journal/format.tmp"],
            ["journal/lock", "meta.new", "notes.txt"],
        ],
    )
    def test_mount_points_and_what_a_crash_in_the_first_start_leaves_are_taken(
        self, start: Start, tmp_path: Path, names: list[str]
    ) -> None:
        for name in names:
            path = tmp_path / "data" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.mkdir() if name.endswith("/") else path.touch()
        produce(start().connect(), b"v")

    def test_a_directory_of_a_newer_schema(self, start: Start, tmp_path: Path) -> None:
        """An older version would drop what it does not know, and a later start would miss it."""
        start().end(signal.SIGTERM)
        file = tmp_path / "data" / "journal" / "format"
        assert format_file.unpack(file.read_bytes()) == format_file.Format(VERSION, SCHEMA.writes)
        file.write_bytes(format_file.pack(format_file.Format(VERSION, "events 999, snapshot 1")))
        code, errors = start().end()
        reads = " or ".join(f"'exacta journal {VERSION}, {schema}'" for schema in (SCHEMA.writes, *SCHEMA.reads))
        assert (code, errors) == (
            1,
            f"exacta: {file} says 'exacta journal {VERSION}, events 999, snapshot 1', and this version of Exacta reads "
            f"{reads}. Use the version that wrote the directory, or a later one "
            "that reads it, or begin with a new directory; nothing was changed\n",
        )

    @pytest.mark.parametrize("content", [b"version=99\ncluster.id=x\n", b"\xff\xfe", b""])
    def test_meta_data_of_another_version(self, start: Start, tmp_path: Path, content: bytes) -> None:
        start().end(signal.SIGTERM)
        meta = tmp_path / "data" / "meta.properties"
        meta.write_bytes(content)
        code, errors = start().end()
        assert (code, errors) == (1, f"exacta: {meta} was not written by this version of Exacta\n")


class TestModes:
    def test_the_data_directory_is_made_for_its_owner_and_a_wider_one_is_warned_of(
        self, start: Start, tmp_path: Path
    ) -> None:
        data = tmp_path / "data"
        before = os.umask(0)
        try:
            _, errors = start().end(signal.SIGTERM)
        finally:
            os.umask(before)
        assert "data directory (its mode" not in errors
        made = [data, *data.rglob("*")]
        assert len(made) > 3
        assert [str(each) for each in made if each.stat().st_mode & 0o077] == []
        data.chmod(0o750)
        _, errors = start().end(signal.SIGTERM)
        assert f"may look into the data directory (mode 0750): chmod 700 {data}" in errors


class TestLogins:
    def test_an_address_that_others_reach_is_warned_of(self, start: Start) -> None:
        _, errors = start("--set", "allow.anonymous=PLAINTEXT", listen="0.0.0.0:0").end(signal.SIGTERM)
        [warning] = [line for line in errors.splitlines() if " WARNING " in line]
        assert "other machines reach PLAINTEXT on 0.0.0.0:" in warning

    def test_one_of_this_machine_is_not(self, start: Start) -> None:
        assert "other machines" not in start(listen="localhost:0").end(signal.SIGTERM)[1]


class TestAdvertising:
    def advertised(self, server: Process) -> tuple[str, int]:
        [broker] = server.connect().ask(MetadataRequest(topics=[]), 9).brokers
        return broker.host, broker.port

    def test_what_is_listened_on(self, start: Start) -> None:
        server = start(listen="localhost:0")
        assert server.address[0] == "localhost"
        assert self.advertised(server) == server.address

    def test_what_is_given(self, start: Start) -> None:
        assert self.advertised(start("--advertise", "kafka.example:1234")) == ("kafka.example", 1234)

    def test_every_address_means_the_one_that_was_used(self, start: Start) -> None:
        server = start("--set", "allow.anonymous=PLAINTEXT", listen="0.0.0.0:0")
        _, port = server.address
        [broker] = server.connect("127.0.0.1").ask(MetadataRequest(topics=[]), 9).brokers
        assert (broker.host, broker.port) == ("127.0.0.1", port)


def test_serving_loads_neither_typer_nor_spark(tmp_path: Path) -> None:
    """They would cost more than the start itself."""
    loaded = subprocess.run(
        [sys.executable, "-c", "import exacta.cli.serve, sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    others = {"typer", "rich", "pyspark", "pyarrow", "aiokafka", "confluent_kafka", "exacta.spark"}
    others |= {"asyncpg", "obstore", "exacta.adapters.postgres", "exacta.adapters.objects"}
    of_tls = {"cryptography", "exacta.key_stores", "exacta.security.tls", "exacta.server.tls"}
    of_files = {"tomllib", "exacta.config.kafka_keys", "exacta.server.configuration_file"}
    assert not (others | of_tls | of_files) & set(loaded)


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        ("127.0.0.1:9092", Endpoint("127.0.0.1", 9092)),
        (":0", Endpoint("", 0)),
        ("[::1]:9092", Endpoint("::1", 9092)),
        ("a.host:65535", Endpoint("a.host", 65535)),
    ],
)
def test_endpoints(text: str, endpoint: Endpoint) -> None:
    assert parse_endpoint(text) == endpoint
    assert parse_endpoint(str(endpoint)) == endpoint


@pytest.mark.parametrize("text", ["localhost", "9092", "::1:9092", "a:b", "a:65536", "a:-1", ""])
def test_what_is_no_endpoint(text: str) -> None:
    with pytest.raises(ValueError, match="expected HOST:PORT"):
        parse_endpoint(text)


def test_a_log_record_is_one_line() -> None:
    try:
        raise ValueError("a\nb")
    except ValueError:
        record = logging.LogRecord("n", logging.ERROR, "", 0, "what\nhappened", None, sys.exc_info())
    line = OneLine().format(record)
    assert "\n" not in line
    assert "ERROR n what | happened | Traceback" in line


def test_listening_on_ipv6(start: Start) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    server = start(listen="[::1]:0")
    assert server.ready_line.startswith("exacta: listening on [::1]:")
    assert server.connect().ask(MetadataRequest(topics=[]), 9).brokers[0].host == "::1"


def test_the_folder_in_which_everything_lies(start: Start, tmp_path: Path) -> None:
    wire = start().connect()
    response = wire.ask(DescribeLogDirsRequest(topics=None), 4)
    [folder] = response.results
    assert Path(folder.log_dir).is_relative_to(tmp_path)
    assert folder.total_bytes > folder.usable_bytes > 0


def test_the_log_tells_of_the_start_and_the_end(start: Start) -> None:
    server = start("--set", "num.partitions=7", "--set", "transaction.sync.every.write=true", "--log-format", "json")
    code, errors = server.end(signal.SIGTERM)
    lines = [json.loads(line) for line in errors.splitlines() if line.startswith("{")]
    assert code == 0
    begins, recovered, serving, *end = [line["message"] for line in lines if line["level"] == "INFO"]
    assert begins.startswith(f"exacta {exacta.__version__} begins: pid {server.process.pid}, data in /")
    assert set(begins.rsplit(", ", 2)[1:]) == {"num.partitions=7", "transaction.sync.every.write=true"}
    assert recovered.startswith("recovered in ")
    assert lines[1]["values"]["topics"] == 0
    assert serving == f"serving clients on 127.0.0.1:{server.address[1]}"
    assert end == ["stopping", "stopped"]


def test_a_log_of_a_higher_level_has_no_lines_of_a_lower_one(start: Start) -> None:
    code, errors = start("--log-level", "error").end(signal.SIGTERM)
    assert (code, errors) == (0, "")


def test_a_log_in_json_ends_with_the_reason_in_json(start: Start) -> None:
    start()
    code, errors = start("--log-format", "json").end()
    [line] = map(json.loads, errors.splitlines())
    assert (code, line["level"]) == (1, "CRITICAL")
    assert "is in use by another journal" in line["message"]


def test_a_second_server_is_refused_also_where_the_lock_file_was_removed(start: Start, tmp_path: Path) -> None:
    first = start()
    (tmp_path / "data" / "journal" / "lock").unlink()
    code, errors = start().end()
    assert code == 1
    assert "journal is in use by another journal: stop the server that has it, or name another directory" in errors
    produce(first.connect(), b"goes on")


def test_a_server_whose_directory_is_moved_stops_and_says_so(start: Start, tmp_path: Path) -> None:
    server = start()
    wire = server.connect()
    produce(wire, b"acknowledged")
    (tmp_path / "data").rename(tmp_path / "moved")
    with pytest.raises(ConnectionError):
        produce(wire, b"not acknowledged")
    code, errors = server.end()
    assert code == 1
    assert "was taken away or replaced while it was in use" in errors
    assert "put it back as it was, then start again" in errors
    assert b"acknowledged" in consume(start(data=tmp_path / "moved").connect())


def test_a_start_drops_what_was_set_at_run_time(start: Start) -> None:
    def sources(server: Process) -> dict[str, int]:
        found = describe(server.connect(), BROKER, "0", keys=["message.max.bytes", "log.retention.ms"])
        return {each.name: each.config_source for each in found.configs}

    def stop(server: Process) -> str:
        for wire in server.wires:
            wire.socket.close()
        code, errors = server.end(signal.SIGTERM)
        assert code == 0
        return errors

    first = start()
    for name, option in (("", "message.max.bytes"), ("0", "log.retention.ms")):
        assert changes(first.connect(), (option, SET, "77"), kind=BROKER, name=name).error_code == ErrorCode.NONE
    assert sources(first) == {"message.max.bytes": 3, "log.retention.ms": 2}
    stop(first)
    dropped = {"message.max.bytes": 5, "log.retention.ms": 5}
    second = start("--drop-run-time-options")
    assert sources(second) == dropped
    errors = stop(second)
    assert "options that are set at run time for all brokers: none" in errors
    assert "options that are set at run time for broker 0: none" in errors
    assert sources(start()) == dropped
