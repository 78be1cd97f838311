"""The log's lines: their forms, and that they are never a flood."""

import json
import logging
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from exacta.server.log_lines import MOST, WINDOW_SECONDS, Flood, JsonLine, OneLine


def record(text: str, *args: object, name: str = "exacta.kafka", level: int = logging.INFO) -> logging.LogRecord:
    return logging.LogRecord(name, level, "", 0, text, args, None)


class Log:
    """A log whose time the test decides."""

    def __init__(self) -> None:
        self.now = 0.0
        self.due: list[tuple[float, Callable[[], None]]] = []
        self.flood = Flood(lambda seconds, tell: self.due.append((self.now + seconds, tell)), lambda: self.now)

    def passes(self, text: str, *args: object, **more: object) -> bool:
        return self.flood.filter(record(text, *args, **more))  # type: ignore[arg-type]

    def wait(self, seconds: float) -> None:
        self.now += seconds
        ripe, self.due = [each for each in self.due if each[0] <= self.now], []
        for _, tell in ripe:
            tell()


def test_what_a_terminal_would_not_print_is_escaped() -> None:
    assert OneLine().format(record("topic '%s'", "a\x1b[2Jb")).endswith("topic 'a\\x1b[2Jb'")


def test_json_has_the_values_that_have_names() -> None:
    line = JsonLine().format(record("topic '%(topic)s' has %(partitions)d", {"topic": "a\nb", "partitions": 3}))
    assert "\n" not in line
    found = json.loads(line)
    assert found.pop("time").endswith("Z")
    assert found == {
        "level": "INFO",
        "logger": "exacta.kafka",
        "message": "topic 'a\nb' has 3",
        "values": {"topic": "a\nb", "partitions": 3},
    }


def test_json_has_the_exception() -> None:
    try:
        raise ValueError("so it is")
    except ValueError:
        failed = logging.LogRecord("n", logging.ERROR, "", 0, "failed", None, sys.exc_info())
    assert json.loads(JsonLine().format(failed))["exception"].endswith("ValueError: so it is")


def test_lines_of_one_kind_are_counted_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    log = Log()
    with caplog.at_level(logging.INFO, "exacta.log"):
        passed = [log.passes("closing %s", number) for number in range(MOST + 5)]
        assert passed == [True] * MOST + [False] * 5
        assert log.passes("another line")
        assert log.passes("closing %s", 1, name="exacta.pulsar")
        assert log.passes("closing %s", 1, level=logging.WARNING)
        assert len(log.due) == 1
        log.wait(WINDOW_SECONDS)
    assert [each.getMessage() for each in caplog.records] == ["5 lines more of exacta.kafka like this one: closing %s"]
    assert log.passes("closing %s", 1)
    assert not log.due


def test_no_line_of_the_audit_log_is_left_out() -> None:
    log = Log()
    assert all(log.passes("%s logged in", number, name="exacta.audit") for number in range(MOST + 5))


def test_a_line_now_and_then_is_never_left_out() -> None:
    log = Log()
    for number in range(MOST * 3):
        assert log.passes("closing %s", number)
        log.wait(WINDOW_SECONDS / MOST)


def test_texts_that_are_never_the_same_do_not_fill_the_memory() -> None:
    log = Log()
    for number in range(5_000):
        assert log.passes(f"line {number}")
        log.wait(WINDOW_SECONDS / 100)
    assert len(log.flood._kinds) < 2_000


def test_the_page_on_monitoring_names_every_area_of_the_log() -> None:
    """A process of its own has no loggers but those of a server with all of its fronts."""
    fronts = "import exacta.server.process, exacta.server.web_front, exacta.pulsar.front"
    asked = f"{fronts}, exacta.kafka.loggers; print(*exacta.kafka.loggers.names())"
    names = subprocess.run([sys.executable, "-c", asked], check=True, capture_output=True, text=True).stdout.split()
    areas = {name.split(".")[1] for name in names if name != "root"}
    page = (Path(__file__).parents[2] / "docs/how-to/monitoring.md").read_text()
    _, _, table = page.partition("| area | what it tells |")
    rows = re.findall(r"^\| (`.*?) \|", table.partition("\n\n")[0], re.MULTILINE)
    assert areas == {area for row in rows for area in re.findall(r"`(\w+)`", row)}
