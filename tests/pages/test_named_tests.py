"""The documentation keeps to what is there: the tests that it names exist. `test_references.py` follows its links."""

import re
from pathlib import Path

import pytest

from tests.pages.blocks import PAGES, ROOT


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_tests_that_are_named_exist(page: Path) -> None:
    named = set(re.findall(r"`(test_\w+)`", page.read_text()))
    if named:
        code = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
        assert named <= set(re.findall(r"^ *def (test_\w+)", code, re.MULTILINE))
