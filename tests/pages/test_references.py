"""References to a document, a section, a decision, a rule or a module lead to one that is in this repository.

Owns the forms that references have here: links, names of pages, names of modules between backticks, `decision 0016`,
`decision D4`, `invariant 3`. A form that cannot be looked up (a document without a path, a section by its number) is
wrong by itself.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tests.pages.blocks import ARCHITECTURE, ROOT

FOLDERS = ("benchmarks", "docs", "examples", "simulation", "src", "tests", "website")
SUFFIXES = {".md", ".py", ".toml"}
FILES = sorted(
    path
    for found in (ROOT.iterdir(), *((ROOT / folder).rglob("*") for folder in FOLDERS))
    for path in found
    if (path.suffix in SUFFIXES or path.name == "Makefile") and path != Path(__file__)
)
SKETCH = "00NN"  # the number of a decision record that is still to be written

_MODULE = re.compile(r"`([\w./]+\.py)`")
_URL = re.compile(r"\w+://[^\s)>`]+")
_LINK = re.compile(r"\]\(([^)\s#]*)(#[^)\s]+)?\)")
_PAGE = re.compile(r"(?<![\w/*])([\w.][\w./-]*\.md)(#[\w-]+)?")
_NUMBER = r"(?:\d{4}|00NN|D\d+)"
_NEXT = r"(?:,\s+|\s+and\s+|\s+to\s+)?"
_DECISIONS = re.compile(rf"\bdecisions?[\s#:\"*]+((?:\[?{_NUMBER}(?:\]\([^)]*\))?{_NEXT})+)", re.I)
_RULES = re.compile(rf"\binvariants?\s+((?:\d+{_NEXT})+)", re.I)
_FOUNDING = re.compile(r"(?<![\w-])(D\d{1,2})\b")
_SECTION = re.compile(r"(?:§|\b[Ss]ection)\s*\d+")
_PUBLIC = re.compile(r"(?:RFC|KIP-|PIP-)\s?\d+,?\s*$")
_NOTES = re.compile(r"\b[A-Z]\d+ of (?:the|our) [\w-]+ (?:notes|page|paper|review|document)s?\b")
_ELSEWHERE = re.compile(r"\bDESIGN\b|\bcrash-safety notes\b")


def dangling(text: str, path: Path) -> Iterator[str]:
    """Yield every reference in a file's text that leads nowhere."""
    text = _URL.sub("", text)
    yield from (found[0] for found in _ELSEWHERE.finditer(text))
    yield from (found[0] for found in _NOTES.finditer(text))
    yield from (found[0] for found in _SECTION.finditer(text) if not _PUBLIC.search(text[: found.start()]))
    yield from (found[1] for found in _FOUNDING.finditer(text) if found[1].lower() not in anchors(ARCHITECTURE))
    for found in _DECISIONS.finditer(text):
        numbers = re.findall(rf"(?<![\w(/-]){_NUMBER}(?!-)", found[1])
        yield from (f"decision {number}" for number in numbers if not decision_exists(number))
    for found in _RULES.finditer(text):
        numbers = re.findall(r"\d+", found[1])
        yield from (f"invariant {each}" for each in numbers if f"invariant-{each}" not in anchors(ARCHITECTURE))
    yield from _dangling_pages(text, path)
    if path.parent != ROOT / "docs" / "decisions":  # these tell of the modules of their time
        for found in _MODULE.finditer(text):
            if f"\n# {found[1]}\n" not in text and not any(each.endswith(f"/{found[1]}") for each in _modules()):
                yield found[1]


@cache
def _modules() -> frozenset[str]:
    return frozenset(f"/{path.relative_to(ROOT)}" for path in (*FILES, Path(__file__)) if path.suffix == ".py")


def _dangling_pages(text: str, path: Path) -> Iterator[str]:
    if path.suffix == ".md":
        for found in _LINK.finditer(text):
            target = path.parent / found[1] if found[1] else path
            if not target.exists() or (found[2] and target.suffix == ".md" and found[2][1:] not in anchors(target)):
                yield found[0]
        text = _LINK.sub("", text)
    for found in _PAGE.finditer(text):
        # Code that writes a page of the reference has its links.
        places = (ROOT, path.parent, ROOT / "docs" / "reference", ROOT / "docs" / "decisions")
        targets = [place / found[1] for place in places if (place / found[1]).exists()]
        if found[1].startswith((f"docs/decisions/{SKETCH}", SKETCH)):
            continue
        if not targets or (found[2] and found[2][1:] not in anchors(targets[0])):
            yield found[0]


def decision_exists(number: str) -> bool:
    """Say whether there is a decision record of this number, or a founding decision."""
    if number.startswith("D"):
        return number.lower() in anchors(ARCHITECTURE)
    return number == SKETCH or any((ROOT / "docs" / "decisions").glob(f"{number}-*.md"))


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return what a page can be entered at: its ids, and its headings as GitHub names them."""
    text = page.read_text()
    found = set(re.findall(r"<a id=\"([\w-]+)\">", text))
    tokens = MarkdownIt().parse(text)
    for number, token in enumerate(tokens):
        if token.type == "heading_open":
            shown = "".join(child.content for child in tokens[number + 1].children or [] if child.content)
            name = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
            count = sum(re.fullmatch(rf"{re.escape(name)}(-\d+)?", each) is not None for each in found)
            found.add(f"{name}-{count}" if name in found else name)
    return frozenset(found)


def test_every_reference_leads_somewhere() -> None:
    found = {str(path.relative_to(ROOT)): list(dangling(path.read_text(), path)) for path in FILES}
    assert {path: references for path, references in found.items() if references} == {}


def test_many_files_are_looked_at() -> None:
    assert len(FILES) > 500
    assert {ROOT / "README.md", ROOT / "Makefile", ROOT / "pyproject.toml", ARCHITECTURE} <= set(FILES)


def test_every_founding_decision_and_rule_can_be_looked_up() -> None:
    expected = {f"d{number}" for number in range(1, 14)} | {f"invariant-{number}" for number in range(1, 9)}
    assert expected | {"invariants", "traps", "glossary"} <= anchors(ARCHITECTURE)


@pytest.mark.parametrize(
    "text",
    [
        "The single writer (DESIGN D4).",
        "see DESIGN.md §5",
        "Owns every rule of DESIGN section 2",
        "is final (B6 of the crash-safety notes)",
        "see section 7",
        "the prototype (§6)",
        "by decision 0999, it",
        "decisions 0016 and 0099",
        "decisions [0016](x.md), [0099](y.md)",
        "decision D14",
        "so it is (D0)",
        "invariant 19",
        "invariants 3 and 14",
        "docs/reference/no-such-page.md",
        "docs/explanation/architecture.md#d99",
        "`spark-on-kafka.md`",
        "see `no_such_module.py`",
    ],
)
@pytest.mark.parametrize("name", ["core/apply.py", "page.md"])
def test_what_is_not_there_is_found(text: str, name: str) -> None:
    assert list(dangling(text, ROOT / "src" / "exacta" / name))


@pytest.mark.parametrize(
    "text",
    [
        "[the end](../../docs/explanation/architecture.md#no-such-section)",
        "[the end](no-such-file.py)",
        "[the end](#nowhere)",
    ],
)
def test_a_link_that_leads_nowhere_is_found(text: str) -> None:
    assert list(dangling(text, ROOT / "docs" / "reference" / "limits.md"))


@pytest.mark.parametrize(
    "text",
    [
        "decision D4, with decisions 0016 and 0022: invariants 2 and 8; RFC 5802 §5, KIP-98 §Consumer",
        "decisions [0002](docs/decisions/README.md), [0022](docs/decisions/README.md)",
        "docs/explanation/architecture.md#traps and docs/decisions/README.md; `core/apply.py`, `apply.py`",
        "designed by DESIGNERS: https://example.org/docs/page.md#section and a glob of docs/*.md",
        "docs/decisions/00NN-what-is-decided.md",
    ],
)
def test_what_is_there_is_let_through(text: str) -> None:
    assert list(dangling(text, ROOT / "src" / "exacta" / "core" / "apply.py")) == []
