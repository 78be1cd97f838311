"""A server whose disk fills: records are refused, all else goes on, it starts again, and a deletion makes room."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from exacta.adapters.local.space.reserve import SHARE
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from exacta.protocol.kafka.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from exacta.protocol.kafka.messages.k20_delete_topics import DeleteTopicsRequest
from exacta.server.listeners import parse_endpoint
from exacta.server.process import EXIT_DISK_FULL
from tests.kafka.wire import Wire, batch
from tests.waiting import wait_until

MIB = 1 << 20
DISK_BYTES = 16 * MIB
WHOLE_BYTES = DISK_BYTES // SHARE
VALUE = os.urandom(100_000)
SETTINGS = ("--set", "log.cleaner.backoff.ms=100", "--set", "log.segment.bytes=1048576")
LISTEN = ("--listen", "127.0.0.1:0", "--web-listen", "127.0.0.1:0")
END_SECONDS = 60


class Server:
    """A server on a small disk, of which `fill` says how much others have taken."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "tests.small_disk_server", str(DISK_BYTES), str(folder / "fill")]
        self.process = subprocess.Popen(
            [*command, "--data", str(folder / "data"), *LISTEN, *SETTINGS],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[1],
        )
        assert self.process.stdout is not None
        self.ready_line = self.process.stdout.readline()
        self.url = f"http://{self.process.stdout.readline().split()[-1]}" if self.ready_line else ""
        self.wire: Wire | None = None

    def connect(self) -> "Server":
        endpoint = parse_endpoint(self.ready_line.split("listening on ")[1].split(",")[0])
        self.wire = Wire((endpoint.host, endpoint.port))
        return self

    def told(self) -> tuple[float, float, str]:
        """Return what the metrics say of the disk and its reserve, and what health says."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=30) as answer:
            lines = [line.split() for line in answer.read().decode().splitlines()]
        found = {line[0]: float(line[1]) for line in lines if line[0].startswith("exacta_disk_")}
        with urllib.request.urlopen(f"{self.url}/health/ready", timeout=30) as answer:
            health: str = json.load(answer)["disk"]
        return found["exacta_disk_full"], found["exacta_disk_reserve_bytes"], health

    def ask(self, request: object, version: int) -> object:
        assert self.wire is not None
        return self.wire.ask(request, version)  # type: ignore[arg-type]

    def create(self, *topics: str) -> None:
        assert self.wire is not None
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=each) for each in topics])
        assert {each.error_code for each in self.wire.ask(asked, 9).topics} == {ErrorCode.NONE}

    def produce(self, topic: str, value: bytes = VALUE) -> ErrorCode:
        assert self.wire is not None
        data = PartitionProduceData(index=0, records=batch(value))
        request = ProduceRequest(acks=-1, topic_data=[TopicProduceData(name=topic, partition_data=[data])])
        code: ErrorCode = self.wire.ask(request, 9).responses[0].partition_responses[0].error_code
        return code

    def commit(self, group: str = "g") -> ErrorCode:
        assert self.wire is not None
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        topics = [OffsetCommitRequestTopic(name="kept", partitions=[partition])]
        answer = self.wire.ask(OffsetCommitRequest(group_id=group, topics=topics), 8)
        code: ErrorCode = answer.topics[0].partitions[0].error_code
        return code

    def delete(self, topic: str) -> None:
        assert self.wire is not None
        assert self.wire.ask(DeleteTopicsRequest(topic_names=[topic]), 5).responses[0].error_code == ErrorCode.NONE

    def end(self, number: int | None = None) -> tuple[int, str]:
        if self.wire is not None:
            self.wire.socket.close()
            self.wire = None
        if number is not None:
            self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=END_SECONDS)
        return self.process.returncode, errors


class Machine:
    """A disk, and the servers that run on it one after another."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.fill(0)
        self.servers: list[Server] = []

    def start(self) -> Server:
        self.servers.append(Server(self.folder))
        return self.servers[-1]

    def fill(self, size: int) -> None:
        beside = self.folder / "fill.new"
        beside.write_text(str(size))
        beside.replace(self.folder / "fill")

    def fill_up(self) -> None:
        """Let others take all that is free, and keep it."""
        sizes = sum(each.stat().st_size for each in (self.folder / "data" / "journal").iterdir())
        self.fill(DISK_BYTES - sizes)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    yield machine
    for server in machine.servers:
        if server.process.poll() is None:
            server.end(signal.SIGKILL)


def filled(server: Server, most: int = 1_000) -> int:
    """Produce into two topics, one in ten records into `kept`, until it is refused; return how many were taken."""
    server.create("dropped", "kept")
    count, code = 0, ErrorCode.NONE
    while count < most and (code := server.produce("dropped" if count % 10 else "kept")) == ErrorCode.NONE:
        count += 1
    assert code == (ErrorCode.NONE if count == most else ErrorCode.KAFKA_STORAGE_ERROR)
    return count


def test_a_full_disk_refuses_records_and_a_deletion_makes_room(machine: Machine) -> None:
    server = machine.start().connect()
    assert server.told() == (0, WHOLE_BYTES, "has room")
    assert filled(server) > 100
    assert server.told()[::2] == (1, "full: records are refused")
    assert server.produce("kept", b"small") == ErrorCode.KAFKA_STORAGE_ERROR, "it would overtake what was refused"
    assert server.commit() == ErrorCode.NONE
    server.delete("dropped")
    wait_until(lambda: server.produce("kept") == ErrorCode.NONE, END_SECONDS)
    wait_until(lambda: server.told() == (0, WHOLE_BYTES, "has room"), END_SECONDS)
    code, errors = server.end(signal.SIGTERM)
    assert code == 0
    assert errors.count("ERROR exacta.server the disk is full: no records are taken any more") == 1


def test_it_goes_on_and_starts_again_where_others_have_taken_all(machine: Machine) -> None:
    server = machine.start().connect()
    filled(server, 50)
    machine.fill_up()
    assert filled(server) < 10, "the first may be taken out of the reserve"
    for number in (signal.SIGTERM, signal.SIGKILL):
        assert {server.commit(f"{number}-{each}") for each in range(50)} == {ErrorCode.NONE}
        assert server.end(number)[0] in (0, -signal.SIGKILL)
        server = machine.start()
        assert server.ready_line, server.end()
        server.connect()
        assert server.produce("kept") == ErrorCode.KAFKA_STORAGE_ERROR
    server.delete("dropped")
    machine.fill(0)
    wait_until(lambda: server.produce("kept") == ErrorCode.NONE, END_SECONDS)


def test_what_frees_space_is_taken_when_the_reserve_is_used_up_too(machine: Machine) -> None:
    server = machine.start().connect()
    filled(server)
    code = ErrorCode.NONE
    for number in range(10_000):
        if number % 20 == 0:
            machine.fill_up()
        if (code := server.commit(f"{number}")) != ErrorCode.NONE:
            break
    assert code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    level, left, health = server.told()
    assert level == 2
    assert left < WHOLE_BYTES // 4
    assert "commits and acknowledgements are refused" in health
    server.end(signal.SIGKILL)
    machine.fill_up()
    server = machine.start()
    assert server.ready_line, server.end()
    server.connect().delete("dropped")
    machine.fill(0)
    wait_until(lambda: server.produce("kept") == ErrorCode.NONE, END_SECONDS)
    assert server.commit() == ErrorCode.NONE
    code_, errors = server.end(signal.SIGTERM)
    assert code_ == 0
    assert "its reserve is used up" in errors


def test_where_nothing_can_be_written_the_exit_code_keeps_supervisors_from_starting_it(
    machine: Machine,
) -> None:
    machine.fill(DISK_BYTES)
    code, errors = machine.start().end()
    assert code == EXIT_DISK_FULL
    assert "make room on its file system, then start again" in errors
    unit = Path(__file__).parents[1] / "packaging" / "systemd" / "exacta.service"
    [line] = [line for line in unit.read_text().splitlines() if line.startswith("RestartPreventExitStatus=")]
    assert str(EXIT_DISK_FULL) in line.partition("=")[2].split()
