"""The closing table of the demo."""

import io
from typing import Any

import pytest
from rich.console import Console

from exacta.demo.screen import Screen
from exacta.demo.verify import OutputVerdict


def verdict(**changes):
    right: dict[str, Any] = {
        "name": "flights",
        "expected": 1_000,
        "seen": 1_000,
        "lost": 0,
        "twice": 0,
        "wrong": 0,
        "aborted_seen": 0,
        "disordered": None,
        "aborted_in_log": 37,
        "undecided_in_log": 0,
    }
    return OutputVerdict(**(right | changes))


def shown(act):
    file = io.StringIO()
    act(Screen(Console(file=file, width=100)))
    return file.getvalue()


def test_the_table_holds_every_count_and_examples():
    faulty = verdict(seen=1_001, lost=2, twice=3, aborted_seen=4, disordered=5, examples=("lost: 17 [/x]",))
    lines = shown(lambda screen: screen.verdicts([faulty])).splitlines()
    cells = dict(line.strip("│ ").split("│") for line in lines if line.startswith("│"))
    counts = {name.strip(): count.strip() for name, count in cells.items()}
    assert counts == {
        "rows expected": "1,000",
        "rows seen": "1,001",
        "lost": "2",
        "twice": "3",
        "wrong": "0",
        "out of order within a key": "5",
        "aborted rows seen": "4",
        "aborted rows in the log": "37",
        "rows of transactions left open": "0",
    }
    assert lines[-1] == "  flights: lost: 17 [/x]"


@pytest.mark.parametrize(("exactly_once", "word"), [(True, "yes"), (False, "no")])
def test_the_last_line_is_the_verdict(exactly_once, word):
    assert shown(lambda screen: screen.outcome(exactly_once)) == f"exactly once: {word}\n"


def test_progress_is_told_each_minute_and_every_line_is_in_a_file(tmp_path):
    now = [0.0]
    file = io.StringIO()
    screen = Screen(Console(file=file, width=100), clock=lambda: now[0])
    with screen.copied_to(tmp_path / "demo.log"):
        screen.bar("flights loaded", 2_000)
        screen.bar("flights enriched", 2_000)
        screen.advance("flights loaded", 2_000)
        for now[0] in (30.0, 61.0, 90.0):
            screen.move("flights enriched", 1_500, "batch 3")
    lines = [
        f"a line of progress each minute: {tmp_path / 'demo.log'}",
        "1 min: flights loaded 2,000 of 2,000, flights enriched 1,500 of 2,000 in batch 3",
    ]
    assert file.getvalue().splitlines() == lines
    assert (tmp_path / "demo.log").read_text().splitlines() == lines
