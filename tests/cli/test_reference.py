"""The page of all commands is what the commands say."""

from pathlib import Path

from exacta.cli.reference import page

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "commands.md"


def test_the_page_is_not_stale() -> None:
    assert PAGE.read_text() == page(), "make docs writes it anew"


def test_a_command_is_told_with_what_it_takes() -> None:
    told = page()
    assert "`exacta consume [OPTIONS] TOPIC...`" in told
    assert "| `--isolation read_committed\\|read_uncommitted` | " in told
    assert "| `--offset WHERE`, `-o` | " in told
    assert "| `--bootstrap-server" not in told
    assert "### `exacta log repair`" in told
