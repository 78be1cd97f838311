"""The ways to copy a data directory that docs/how-to/backup.md names: a copy starts, with all acknowledged records."""

import os
import shutil
import signal
import threading
from pathlib import Path

from exacta.adapters.local.damage.inspection import SoundGroup, Verdict, inspect
from exacta.adapters.local.files import PosixFiles
from exacta.engine.schema import SCHEMA
from tests.kafka.wire import Wire, values_in
from tests.server.test_server import Process, Start, fetch_request, produce
from tests.server.test_server import start as start  # a fixture

SETTINGS = ("--set", "log.segment.bytes=1048576")


def all_values(wire: Wire) -> list[bytes]:
    values: list[bytes] = []
    while found := values_in(wire.ask(fetch_request(len(values)), 11).responses[0].partitions[0].records):
        values += found
    return values


def numbered(number: int) -> bytes:
    return b"%d" % number + bytes(20_000)


def is_sound(data: Path) -> bool:
    """Return whether a crash explains all that is found."""
    found = inspect(PosixFiles(data / "journal"), SCHEMA)
    return all(isinstance(each, SoundGroup) or each.verdict is not Verdict.DAMAGED for each in found)


def test_a_copy_of_a_stopped_server(start: Start, tmp_path: Path) -> None:
    server = start(*SETTINGS)
    wire = server.connect()
    for number in range(100):
        produce(wire, numbered(number))
    assert server.end(signal.SIGTERM)[0] == 0
    shutil.copytree(tmp_path / "data", tmp_path / "copy")
    produce(start().connect(), b"later")
    assert is_sound(tmp_path / "copy")
    assert all_values(start(data=tmp_path / "copy").connect()) == [numbered(each) for each in range(100)]


def test_a_copy_of_a_server_that_is_held_still(start: Start, tmp_path: Path) -> None:
    """Somebody writes all the time, so that it is held somewhere between a write and its answer."""
    server = start(*SETTINGS)
    acknowledged: list[int] = []
    enough, is_over = threading.Event(), threading.Event()

    def write(wire: Wire) -> None:
        while not is_over.is_set():
            produce(wire, numbered(len(acknowledged)))
            acknowledged.append(len(acknowledged))
            if len(acknowledged) == 150:
                enough.set()

    writing = threading.Thread(target=write, args=(server.connect(),))
    writing.start()
    try:
        assert enough.wait(60)
        server.process.send_signal(signal.SIGSTOP)
        os.waitpid(server.process.pid, os.WUNTRACED)
        before = len(acknowledged)
        shutil.copytree(tmp_path / "data", tmp_path / "copy")
        server.process.send_signal(signal.SIGCONT)
    finally:
        is_over.set()
        writing.join()
    assert is_sound(tmp_path / "copy")
    copied = all_values(start(data=tmp_path / "copy").connect())
    assert copied == [numbered(each) for each in range(len(copied))]
    assert len(copied) >= before


def test_the_servers_are_others(start: Start, tmp_path: Path) -> None:
    """A copy is a directory of its own: the one it was made of may be served beside it."""
    first: Process = start()
    produce(first.connect(), b"v")
    assert first.end(signal.SIGTERM)[0] == 0
    shutil.copytree(tmp_path / "data", tmp_path / "copy")
    assert all_values(start().connect()) == all_values(start(data=tmp_path / "copy").connect()) == [b"v"]
