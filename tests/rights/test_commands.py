"""Each command does its work with exactly the rights that the page names, and says which is missing with one less."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from exacta.cli.app import app
from tests.rights.page import Row, is_named, rows
from tests.rights.place import Place, furnished, skip_on_kafka

ROWS = rows("Commands")
LINES = "figs\ndates\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret").write_text("another password")
    with furnished(tmp_path) as place:
        yield place


def run(place: Place, row: Row) -> tuple[int, str, str]:
    """Run the command; return its exit code, its output, and what it said beside that."""
    [command] = re.findall("`exacta (.*)`", row.task)
    reached = ["--bootstrap-server", place.address, "--config", place.properties]
    done = CliRunner().invoke(app, [*shlex.split(command), *reached], input=LINES)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


def commands(group: Any, path: str = "") -> Iterator[str]:
    """Yield the commands that ask a cluster, by their names."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{name} ")
        elif any("--bootstrap-server" in each.opts for each in command.params):
            yield f"{path}{name}"


def test_the_page_has_every_command() -> None:
    told = [row.task.strip("`").removeprefix("exacta ") for row in [*ROWS, *rows("Spark")]]
    assert [
        each for each in commands(typer.main.get_command(app)) if not any(task.startswith(each) for task in told)
    ] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.task.strip("`").removeprefix("exacta "))
def test_a_command_needs_what_the_page_says(place: Place, row: Row) -> None:
    skip_on_kafka(row.task)
    for missing in row.needs:
        place.allow({*row.needs, *row.more} - {missing})
        code, out, err = run(place, row)
        assert code == 1, (missing, out, err)
        is_unseen = missing.resource == "Topic" and "that user 'alice' may describe" in err
        looks = missing._replace(operation="Describe")  # which comes with most rights, and is asked about first
        assert is_unseen or is_named(missing, err) or is_named(looks, err), (missing, err)
    outputs = []
    for missed in [None, *row.more]:
        rights = [*row.needs, *(each for each in row.more if each != missed)]
        place.allow(rights)
        code, out, err = run(place, row)
        assert code == 0, (rights, out, err)
        outputs.append(out)
    assert outputs[0] not in outputs[1:], "a right that shows nothing more"
