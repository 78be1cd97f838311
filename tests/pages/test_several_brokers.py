"""The page of several brokers: each row of its table of failures names tests that are there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "several-brokers.md"


def test_the_tests_that_hold_a_row_are_there():
    rows = [line for line in PAGE.read_text().split("## What fails")[1].splitlines() if line.startswith("| ")][2:]
    texts = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    defined = set(re.findall(r"def (test_\w+)", texts))
    named = [set(re.findall(r"`(test_\w+)`", row)) for row in rows]
    assert rows
    assert all(named)
    assert set().union(*named) <= defined
