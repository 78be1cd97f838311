"""Commands, options, targets and names that the pages mention exist, also where no example runs them."""

import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer

from exacta.cli.app import app
from exacta.cli.serve import _parser
from tests.pages.blocks import PAGES, ROOT, blocks_of, inline_code
from tests.suites import SUITES

MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = {*re.findall(r"^([a-z0-9.-]+):", MAKEFILE, re.MULTILINE), *(f"test-{name}" for name in SUITES)}
# Options that a page names alone, and that are other programs': spark-submit's, the simulation's, the benchmark's.
FOREIGN = {"--py-files", "--packages", "--canaries", "--warm-up", "--full-refresh"}

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def code_of(page: Path) -> list[str]:
    """Return inline code, and each line of the blocks."""
    return [*inline_code(page), *(line for block in blocks_of(page) for line in block.text.splitlines())]


# Typer brings a click of its own, so its classes are not asked for.
EXACTA: Any = typer.main.get_command(app)
SERVE = {option for action in _parser()._actions for option in action.option_strings}


def options_of(command: Any) -> set[str]:
    return {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)} | {
        "--help"
    }


def commands_of(command: Any) -> Mapping[str, Any]:
    return getattr(command, "commands", {})


def all_options(command: Any) -> set[str]:
    return options_of(command).union(*(all_options(each) for each in commands_of(command).values()))


def what_is_wrong(words: list[str]) -> str | None:
    """Return what of a call of `exacta` there is not."""
    command, path = EXACTA, "exacta"
    while commands_of(command) and words and not words[0].startswith("-"):
        name, *words = words
        if name not in commands_of(command):
            return f"{path} has no command {name}"
        command, path = commands_of(command)[name], f"{path} {name}"
    known = SERVE if path == "exacta serve" else options_of(command)
    given = [word.partition("=")[0].rstrip(":") for word in words if word.startswith("--")]
    missing = [option for option in given if option not in known]
    return f"{path} has no option {missing[0]}" if missing else None


@each_page
def test_commands_exist_and_have_the_options(page: Path) -> None:
    # `exacta journal 5` begins a file, and is no command.
    calls = [line.removeprefix("$ ").split() for line in code_of(page)]
    called = [call[1:] for call in calls if call[:1] == ["exacta"] and "journal" not in call[1:2]]
    assert [wrong for wrong in map(what_is_wrong, called) if wrong] == []


@each_page
def test_options_that_stand_alone_exist(page: Path) -> None:
    named = {code.split()[0] for code in inline_code(page) if code.startswith("--")}
    assert named - all_options(EXACTA) - SERVE - FOREIGN == set()


@each_page
def test_targets_and_their_variables_exist(page: Path) -> None:
    called = [re.match(r"(?:\S+=\S+ )*make ([a-z0-9.-]+)(.*)", code) for code in code_of(page)]
    for target, arguments in (found.groups() for found in called if found):
        assert target in TARGETS
        given = dict(re.findall(r"\b([A-Z_]+)=(\S*)", arguments))
        suite = SUITES.get(given.get("WHAT", target.removeprefix("test-")).strip("."))
        assert suite or "WHAT" not in given or given["WHAT"] == "...", given
        known = suite.variables if suite else {}
        assert all(f"$({name})" in MAKEFILE or name in {"SHARE", *known} for name in given), target


@each_page
def test_names_of_the_package_exist(page: Path) -> None:
    for code in inline_code(page):
        if name := re.match(r"exacta(?:\.\w+)+", code):
            first, *rest = name[0].split(".")
            found, path = import_module(first), first
            for part in rest:
                path = f"{path}.{part}"
                found = getattr(found, part, None) or import_module(path)


def test_what_is_not_there_is_found() -> None:
    assert what_is_wrong(["log", "verify", "--data", "d"]) is None
    assert what_is_wrong(["serve", "--listen", "h:1"]) is None
    assert what_is_wrong(["frobnicate"]) == "exacta has no command frobnicate"
    assert what_is_wrong(["log", "mend"]) == "exacta log has no command mend"
    assert what_is_wrong(["log", "repair", "--force"]) == "exacta log repair has no option --force"
    assert what_is_wrong(["serve", "--port", "1"]) == "exacta serve has no option --port"
