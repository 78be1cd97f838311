"""The documentation keeps to what is there: its links lead somewhere, and the tests that it names exist."""

import re
from pathlib import Path

import pytest

from tests.pages.blocks import PAGES, ROOT


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\(([^)\s#]+)(?:#[^)]*)?\)", page.read_text())
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_tests_that_are_named_exist(page: Path) -> None:
    named = set(re.findall(r"`(test_\w+)`", page.read_text()))
    if named:
        code = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
        assert named <= set(re.findall(r"^def (test_\w+)", code, re.MULTILINE))
