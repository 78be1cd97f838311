"""What the operating system may refuse, and when: one behaviour each, nothing acknowledged lost, and advice.

The table of docs/reliability.md, "What the operating system may refuse", row by row.
"""

import contextlib
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

import pytest

from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from exacta.server.advice import with_advice
from exacta.server.listeners import parse_endpoint
from tests.kafka.wire import Wire, batch, values_in
from tests.server.test_server import fetch_request
from tests.shares import share_of

VALUE = b"x" * 200_000
SETTINGS = (
    "log.segment.bytes=1048576",
    "log.retention.ms=-1",
    "log.retention.bytes=600000",
    "log.retention.check.interval.ms=20",
    "log.cleaner.backoff.ms=20",
)
END_SECONDS = 30


class Then(Enum):
    """The behaviours."""

    IS_REFUSED = "does not start: exit code 1, one line"
    STOPS = "stops at once: exit code 1, or 3 where the disk is full, its last line says why"
    GOES_ON = "goes on, with a warning"
    RETRIABLE = "answers KAFKA_STORAGE_ERROR, and goes on"


READ_ONLY, DENIED, FULL, BROKEN, QUOTA = "EROFS", "EACCES", "ENOSPC", "EIO", "EDQUOT"

# When, the call to the disk that it is, and on which files.
AT_START = {
    "the directory is locked": ("lock", "*"),
    "the directory is listed": ("names", "*"),
    "the journal is read": ("open", "*.log"),
    "the end is made durable": ("sync", "*.log"),
    "names are made durable": ("sync_directory", "*"),
}
RUNNING = {
    "a batch is written": ("write", "*.log", Then.STOPS),
    "a batch is synced": ("sync_data", "*.log", Then.STOPS),
    "a segment is begun": ("create", "*.log", Then.STOPS),
    "a segment's name is synced": ("sync_directory", "*", Then.STOPS),
    "an index is written": ("create", "*.index.tmp", Then.GOES_ON),
    "a snapshot is written": ("create", "*.snapshot.*tmp", Then.GOES_ON),
    "a snapshot is put in place": ("rename", "*.snapshot.*tmp", Then.GOES_ON),
    "space is freed": ("create", "*.log.*tmp", Then.GOES_ON),
    "freed files are removed": ("remove", "*.log", Then.GOES_ON),
    "a batch is read": ("read", "*.log", Then.RETRIABLE),
}
ADVICE = {
    READ_ONLY: "read-only",
    DENIED: "let the user",
    FULL: "make room",
    BROKEN: "the disk fails",
    QUOTA: "quota",
}


OF_A_RUNNING_SERVER = [
    *((when, READ_ONLY) for when in RUNNING if when != "a batch is read"),
    *((when, DENIED) for when in ("a segment is begun", "a snapshot is written", "space is freed")),
    *((when, FULL) for when in ("a batch is written", "a segment is begun", "a snapshot is written")),
    ("a batch is written", QUOTA),
    ("a batch is synced", BROKEN),
    ("a batch is read", BROKEN),
]


class Faulty:
    """A server whose disk refuses a call while the switch is on."""

    def __init__(self, data: Path, switch: Path, call: str, name: str, number: str) -> None:
        self.switch = switch
        settings = [part for setting in SETTINGS for part in ("--set", setting)]
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.faulty_server", str(switch), call, name, number),
                *("--data", str(data), "--listen", "127.0.0.1:0", *settings),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[1],
        )
        assert self.process.stdout is not None
        self.errors: list[str] = []
        self._warned = threading.Event()
        self._reading = threading.Thread(target=self._read)
        self._reading.start()
        self.ready_line = self.process.stdout.readline()
        self.wire: Wire | None = None

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.errors.append(line.rstrip("\n"))
            if " WARNING " in line and "[Errno" in line:
                self._warned.set()

    def connect(self) -> Wire:
        endpoint = parse_endpoint(self.ready_line.split("listening on ")[1].split(",")[0])
        self.wire = Wire((endpoint.host, endpoint.port))
        asked = MetadataRequest(topics=[MetadataRequestTopic(name="t"), MetadataRequestTopic(name="kept")])
        assert [each.error_code for each in self.wire.ask(asked, 9).topics] == [0, 0]
        return self.wire

    def produce(self, topic: str, value: bytes) -> bool:
        """Return whether it was acknowledged; it may also be cut off."""
        assert self.wire is not None
        data = PartitionProduceData(index=0, records=batch(value))
        request = ProduceRequest(acks=-1, topic_data=[TopicProduceData(name=topic, partition_data=[data])])
        try:
            answer = self.wire.ask(request, 9).responses[0].partition_responses[0]
        except (ConnectionError, TimeoutError):
            return False
        assert answer.error_code == ErrorCode.NONE
        return True

    def wait_for_warning(self) -> None:
        """Wait until it has said that something was refused."""
        assert self._warned.wait(END_SECONDS), self.errors

    def end(self, number: int | None = None) -> tuple[int, list[str]]:
        """Wait for the end, after a signal if there is one; return exit code and what it said."""
        if number is not None:
            self.process.send_signal(number)
        code = self.process.wait(END_SECONDS)
        self._reading.join(END_SECONDS)
        return code, self.errors

    def clean_up(self) -> None:
        if self.wire is not None:
            self.wire.socket.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reading.join(END_SECONDS)
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()


@contextlib.contextmanager
def serving(data: Path, switch: Path, call: str = "none", name: str = "*", number: str = "EIO") -> Iterator[Faulty]:
    server = Faulty(data, switch, call, name, number)
    try:
        yield server
    finally:
        server.clean_up()


def check_nothing_lost(data: Path, switch: Path, acknowledged: int) -> None:
    switch.unlink(missing_ok=True)
    with serving(data, switch) as server:
        wire = server.connect()
        partition = wire.ask(fetch_request_of("kept"), 11).responses[0].partitions[0]
        assert len(values_in(partition.records)) >= acknowledged
        assert server.produce("kept", b"on")
        assert server.end(signal.SIGTERM)[0] == 0


def fetch_request_of(topic: str):
    request = fetch_request()
    request.topics[0].topic = topic
    return request


@pytest.mark.parametrize(
    ("when", "number"), share_of([(when, number) for when in AT_START for number in (READ_ONLY, DENIED, BROKEN)])
)
def test_refused_at_the_start(when: str, number: str, tmp_path: Path) -> None:
    data, switch = tmp_path / "data", tmp_path / "switch"
    with serving(data, switch) as server:
        server.connect()
        assert server.produce("kept", b"v")
        server.process.kill()
    switch.touch()
    with serving(data, switch, *AT_START[when], number) as server:
        assert server.ready_line == ""
        code, errors = server.end()
        assert code == 1
        assert errors[-1].startswith("exacta: ")
        assert [line for line in errors if " WARNING " not in line] == errors[-1:]
        assert ADVICE[number] in errors[-1]
        assert str(data) in errors[-1]
    check_nothing_lost(data, switch, 1)


@pytest.mark.parametrize(
    ("when", "number"),
    share_of(OF_A_RUNNING_SERVER),
)
def test_refused_while_it_runs(when: str, number: str, tmp_path: Path) -> None:
    call, name, then = RUNNING[when]
    data, switch = tmp_path / "data", tmp_path / "switch"
    with serving(data, switch, call, name, number) as server:
        wire = server.connect()
        assert server.produce("kept", b"before")
        acknowledged = 1
        switch.touch()
        if then is Then.RETRIABLE:
            answer = wire.ask(fetch_request_of("kept"), 11).responses[0].partitions[0]
            assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            switch.unlink()
            answer = wire.ask(fetch_request_of("kept"), 11).responses[0].partitions[0]
            assert values_in(answer.records) == [b"before"]
            assert server.end(signal.SIGTERM)[0] == 0
        elif then is Then.STOPS:
            while server.produce("t", VALUE):
                pass
            code, errors = server.end()
            assert code == (3 if number in (FULL, QUOTA) else 1), "3: no supervisor starts it again"
            assert errors[-1].startswith("exacta: stopped at once, nothing unwritten was acknowledged: ")
            assert ADVICE[number] in errors[-1]
        else:
            for _ in range(30):  # several segments: indexes, snapshots, and space to free
                assert server.produce("t", VALUE)
            server.wait_for_warning()
            assert server.produce("kept", b"after")
            acknowledged += 1
            switch.unlink()
            assert server.end(signal.SIGTERM)[0] == 0
    check_nothing_lost(data, switch, acknowledged)


def test_the_directory_is_removed_under_a_running_server(tmp_path: Path) -> None:
    """What is acknowledged is in a file that has a name: without one it would be gone when the server ends."""
    with serving(tmp_path / "data", tmp_path / "switch") as server:
        server.connect()
        assert server.produce("kept", b"before")
        shutil.rmtree(tmp_path / "data")
        assert not server.produce("kept", b"into nothing")
        code, errors = server.end()
        assert code == 1
        assert "it was taken away or replaced while it was in use" in errors[-1]
        assert "put it back as it was, then start again" in errors[-1]


def test_the_directory_is_moved_under_a_running_server(tmp_path: Path) -> None:
    data, switch = tmp_path / "data", tmp_path / "switch"
    with serving(data, switch) as server:
        server.connect()
        assert server.produce("kept", b"before")
        data.rename(tmp_path / "moved")
        assert not server.produce("kept", b"after"), "the next start looks for it where the directory was"
        code, errors = server.end()
        assert code == 1
        assert "it was taken away or replaced while it was in use" in errors[-1]
    check_nothing_lost(tmp_path / "moved", switch, 1)


def test_a_second_server_on_the_directory_is_told_what_to_do(tmp_path: Path) -> None:
    with serving(tmp_path / "data", tmp_path / "switch"), serving(tmp_path / "data", tmp_path / "switch") as second:
        code, errors = second.end()
        assert (code, len(errors)) == (1, 1)
        assert "stop the server that has it" in errors[0]


def test_advice_is_for_what_the_operating_system_refused() -> None:
    assert with_advice("nothing of the kind") == "nothing of the kind"
    assert with_advice("[Errno 9999] unheard of") == "[Errno 9999] unheard of"
