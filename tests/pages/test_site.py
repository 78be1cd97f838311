"""The site's navigation has every page, the list of pages names them all, and the pages made from code are up to date.

`make docs-site` builds the site itself, which takes MkDocs; nothing here does.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from website.hooks import (
    anchor,
    differences,
    loaded_from_elsewhere,
    to_the_code_host,
    with_bare_pipes,
    with_breaks,
    with_plain_lists,
)
from website.pages import made, python_api
from website.widths import lines

from tests.pages.blocks import ROOT
from tests.pages.test_references import anchors

SITE = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
DOCS = ROOT / "docs"
INDEX = DOCS / "README.md"
HOST = "https://example.org/blob/main"


def entries(navigation: Any) -> Iterator[str]:
    """Yield the pages of a navigation, in their order."""
    if isinstance(navigation, str):
        yield navigation
    else:
        for each in navigation.values() if isinstance(navigation, dict) else navigation:
            yield from entries(each)


def linked(page: Path) -> set[str]:
    """Return the pages in `docs/` that a page links to."""
    paths = re.findall(r"\]\(([^)\s#:]+\.md)", page.read_text())
    found = {(page.parent / path).resolve() for path in paths}
    return {str(each.relative_to(DOCS)) for each in found if each.is_relative_to(DOCS)}


def test_every_page_is_in_the_navigation_once_and_every_entry_is_a_page() -> None:
    pages = sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))
    assert sorted(entries(SITE["nav"])) == pages


def test_the_list_of_pages_has_them_all() -> None:
    single_decisions = {str(each.relative_to(DOCS)) for each in (DOCS / "decisions").glob("[0-9]*.md")}
    assert {*entries(SITE["nav"])} - single_decisions - {"README.md"} - linked(INDEX) == set()


def test_the_readme_leads_to_the_list() -> None:
    assert INDEX.name in linked(ROOT / "README.md")


def test_a_browser_is_sent_nowhere_else() -> None:
    assert SITE["theme"]["font"] is False
    assert SITE["plugins"] == ["search"]
    assert "repo_url" not in SITE


def test_every_public_name_has_an_entry() -> None:
    text = (DOCS / "reference" / "python-api.md").read_text()
    for package in python_api.PACKAGES:
        names = __import__(package, fromlist=["__all__"]).__all__
        paths = {python_api.ELSEWHERE.get(f"{package}.{name}", f"{package}.{name}") for name in names} - {""}
        assert [path for path in paths if f" `{path}`\n" not in text] == []


def test_a_link_that_leaves_the_pages_leads_to_the_code_host() -> None:
    text = "[a](../tests/pages/test_site.py), [b](limits.md), [d](https://example.com)"
    shown = to_the_code_host(text, "README.md", ROOT, HOST)
    assert shown == text.replace("../tests/pages/test_site.py", f"{HOST}/tests/pages/test_site.py")
    with pytest.raises(FileNotFoundError, match=r"no-such-file\.py"):
        to_the_code_host("[a](../tests/no-such-file.py)", "README.md", ROOT, HOST)


def test_headings_have_the_anchors_of_the_code_host() -> None:
    assert anchor("`exacta.spark.write`: Update mode") == "exactasparkwrite-update-mode"
    page = DOCS / "reference" / "journal-format.md"
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    assert {anchor(heading) for heading in headings} == anchors(page)


def test_lists_are_written_as_python_markdown_wants_them() -> None:
    text = "Rejected:\n- a\n  b\n- c\n\n1. d\n   ```\n   e\n   ```\n\n```\nf\n- g\n```\n"
    wanted = "Rejected:\n\n- a\n    b\n- c\n\n1. d\n    ```\n    e\n    ```\n\n```\nf\n- g\n```\n"
    assert with_plain_lists(text) == wanted


def test_a_page_that_has_lost_a_list_is_found() -> None:
    assert differences("Rejected:\n- a\n- b", "<p>Rejected:\n- a\n- b</p>") == {"<li>": (2, 0)}
    assert differences("Rejected:\n- a", '<p>Rejected:</p>\n<ul><li>a <a href="x">b</a></li></ul>') == {}


@pytest.mark.parametrize(
    "html",
    [
        '<script src="https://cdn.example.org/a.js"></script>',
        '<link rel="stylesheet" href="//fonts.example.org/css">',
        '<img alt="b" src=http://example.org/b.png>',
    ],
)
def test_a_page_that_is_not_whole_by_itself_is_found(html: str) -> None:
    assert loaded_from_elsewhere(html)


def test_a_link_that_a_reader_follows_loads_nothing() -> None:
    assert loaded_from_elsewhere('<a href="https://example.org/">x</a><script src="../assets/a.js">') == []


def test_a_pipe_in_code_within_a_table_has_no_backslash():
    assert (
        with_bare_pipes(r"<td><code>a\|b</code></td><code>c\|d</code>") == r"<td><code>a|b</code></td><code>c\|d</code>"
    )


def test_a_long_name_in_a_table_may_be_broken_at_its_dots() -> None:
    html = "<td><code>a.b_c</code> d.e</td><code>f.g</code>"
    assert with_breaks(html) == "<td><code>a.<wbr>b_<wbr>c</code> d.e</td><code>f.g</code>"


def test_what_is_too_wide_is_told_in_one_line_with_its_page() -> None:
    found = {"/a/index.html": ["390 px: the page is 5 px too wide"], "/b/index.html": []}
    assert list(lines(found)) == ["/a/: 390 px: the page is 5 px too wide"]


@pytest.mark.parametrize("page", made.PAGES, ids=lambda page: page.name)
def test_a_page_made_from_code_begins_with_what_a_reader_wants_to_know(page: Path) -> None:
    first = page.read_text().split("\n## ")[0]
    assert [words for words in ("make docs", "do not edit", "made from", "from code") if words in first.lower()] == []
