"""The page of several brokers: each row of its table of failures names tests, which `test_named_tests.py` looks for."""

import re

from tests.pages.blocks import ROOT


def test_each_row_of_what_fails_names_its_tests() -> None:
    page = (ROOT / "docs" / "explanation" / "several-brokers.md").read_text()
    rows = [line for line in page.split("## What fails")[1].splitlines() if line.startswith("| ")][2:]
    assert rows
    assert [row for row in rows if not re.search(r"`test_\w+`", row)] == []
