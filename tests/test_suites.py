"""The table of suites names folders, variables and modules that exist, and is the one on the page."""

import re
from pathlib import Path

import pytest

from tests.suites import SUITES, commands, main

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
each_suite = pytest.mark.parametrize("name", SUITES)


@each_suite
def test_what_a_suite_runs_is_there(name: str) -> None:
    for _, command in commands(SUITES[name], []):
        named = [word for word in command[3:] if word.startswith("tests")]
        assert all((ROOT / word).exists() for word in named)
        if command[1:3] != ["-m", "pytest"]:
            assert (ROOT / command[2].replace(".", "/")).with_suffix(".py").exists()
        else:
            assert named, "a suite runs a part of the tests"


@each_suite
def test_a_test_reads_each_variable_that_a_suite_sets(name: str) -> None:
    text = "".join(path.read_text() for path in (ROOT / "tests").rglob("*.py") if path.name != "suites.py")
    for environment, _ in commands(SUITES[name], []):
        assert [variable for variable in environment.keys() - {"SHARE"} if f'"{variable}"' not in text] == []


@each_suite
def test_the_page_tells_of_a_suite_what_the_table_does(name: str) -> None:
    suite = SUITES[name]
    size = ", ".join(f"`{key}={value}`" for key, value in suite.variables.items() if "://" not in value)
    assert f"| `{name}` | {suite.proves} | {suite.takes} | {suite.needs} | {size} |" in PAGE


def test_the_caller_says_how_much_of_a_suite_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KILLS", "7")
    monkeypatch.delenv("SHARE", raising=False)
    [(environment, command)] = commands(SUITES["streams"], ["-x"])
    assert environment == {"SHARE": "all", "EXACTA_TEST_STREAMS": "1", "EXACTA_TEST_KILLS": "7"}
    assert command[1:] == ["-m", "pytest", "tests/streams", "-x"]


def test_a_suite_that_is_not_there_is_told_with_those_that_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["frobnicate"]) == 2
    told = capsys.readouterr().out
    assert told.startswith("there is no suite 'frobnicate'.")
    assert re.findall(r"^  (\S+)", told, re.MULTILINE) == list(SUITES)
