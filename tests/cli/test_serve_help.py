"""`exacta serve --help` has the fifteen options that matter, as their page has them; `--help-all` has every option."""

import re
from pathlib import Path

import pytest

from exacta.cli.serve import MATTERING_FLAGS, MATTERING_KEYS, run
from exacta.config.options import options

PAGE = Path(__file__).parents[2] / "docs/how-to/options.md"


def printed(capsys: pytest.CaptureFixture[str], argument: str) -> tuple[set[str], set[str]]:
    """Return the flags and the keys that a help text has."""
    with pytest.raises(SystemExit) as ended:
        run([argument])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    return {*re.findall(r"^  (?:-\w, )?(--[\w-]+)", out, re.M)}, {*re.findall(r"^  ([\w.]+)=", out, re.M)}


@pytest.mark.parametrize("argument", ["-h", "--help"])
def test_help_has_the_fifteen_options_that_matter(capsys: pytest.CaptureFixture[str], argument: str) -> None:
    flags, keys = printed(capsys, argument)
    assert flags == {*MATTERING_FLAGS, "--set", "--help", "--help-all"}
    assert keys == {*MATTERING_KEYS}
    assert len(MATTERING_FLAGS) + len(MATTERING_KEYS) == 15


def test_the_rest_is_in_help_all(capsys: pytest.CaptureFixture[str]) -> None:
    flags, keys = printed(capsys, "--help-all")
    assert keys == options().keys()
    assert flags > {*MATTERING_FLAGS, "--pulsar-tls-listen", "--drop-run-time-options"}


def test_the_page_tells_of_each() -> None:
    rows = re.findall(r"^\| It [^|]+ \| `([\w.-]+)` \|", PAGE.read_text(), re.M)
    assert rows == [*MATTERING_FLAGS, *MATTERING_KEYS]
