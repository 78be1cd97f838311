"""Each page that is made from code is what the code says."""

from pathlib import Path

import pytest
from website.pages import commands
from website.pages.limits import BEGIN, END
from website.pages.made import PAGES, REFERENCE

from exacta.core.state.tables import BOUNDS


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_the_page_is_not_stale(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == PAGES[path](), "run `make docs`"


def test_a_command_is_told_with_what_it_takes() -> None:
    told = commands.page()
    assert "`exacta consume [OPTIONS] TOPIC...`" in told
    assert "| `--isolation read_committed\\|read_uncommitted` | " in told
    assert "| `--offset WHERE`, `-o` | " in told
    assert "| `--bootstrap-server" not in told
    assert "### `exacta log repair`" in told


def test_the_page_of_limits_names_every_table() -> None:
    _, _, rest = (REFERENCE / "limits.md").read_text(encoding="utf-8").partition(BEGIN)
    tables, _, _ = rest.partition(END)
    assert all(f"| {bound.name} |" in tables for bound in BOUNDS)
