"""The alarm before the disk is full: every cell of its table, and that a server looks at its disk."""

import logging
import signal
from pathlib import Path

import pytest

from exacta.server.free_space import AGAIN_SECONDS, FreeSpaceAlarm
from tests.docstring_tables import docstring_table
from tests.server.test_server import Start, start  # noqa: F401  # a fixture

FULL, ROOM, UNKNOWN = (1000, 40), (1000, 50), (-1, -1)


TABLE = docstring_table("exacta.server.free_space", "little is free")
WARNING, AGAIN = "WARNING the disk of /data is almost full", "INFO the disk of /data has room again"


@pytest.mark.parametrize(("row", "column", "cell"), TABLE.cells())
def test_the_table(caplog: pytest.LogCaptureFixture, row: str, column: str, cell: str) -> None:
    now = 0.0
    alarm = FreeSpaceAlarm(Path("/data"), 5, lambda: now)

    def said(space: tuple[int, int]) -> str | None:
        caplog.clear()
        alarm.look(space)
        lines = [f"{each.levelname} {each.getMessage().split(':')[0]}" for each in caplog.records]
        assert len(lines) <= 1
        return lines[0] if lines else None

    space = {"yes": FULL, "no": ROOM}[row]
    with caplog.at_level(logging.INFO, "exacta.server"):
        said({"little was free": FULL, "there was room": ROOM}[column])
        assert said(UNKNOWN) is None
        match cell:
            case "a warning, at times":
                assert said(space) is None
                now += AGAIN_SECONDS
                assert said(space) == WARNING
            case _:
                assert said(space) == {"a warning": WARNING, "there is room again": AGAIN, "-": None}[cell]


def test_a_server_looks_at_its_disk(start: Start) -> None:  # noqa: F811
    server = start("--set", "disk.free.alarm.percent=100", "--log-level", "warning")
    assert server.process.stderr is not None
    line = server.process.stderr.readline()
    assert " WARNING exacta.server the disk of /" in line
    assert "disk.free.alarm.percent=100" in line
    server.end(signal.SIGTERM)


def test_an_alarm_at_nothing_is_off(start: Start) -> None:  # noqa: F811
    _, errors = start("--set", "disk.free.alarm.percent=0", "--log-level", "warning").end(signal.SIGTERM)
    assert errors == ""
