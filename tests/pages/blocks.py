"""The pages, and their examples, taken from where they are printed.

Of the libraries that test examples none covers blocks of every language and fails for one that it does not run; finding
them is all that is left to do, and markdown-it-py does it as CommonMark says.
"""

from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
ARCHITECTURE = ROOT / "docs/explanation/architecture.md"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


class Block(NamedTuple):
    """An example, or its output."""

    page: str
    """The path from the root of the repository."""
    section: str
    """The nearest heading before it."""
    line: int
    """The number of its first line in the page."""
    language: str
    """Empty where the page does not say any."""
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    """Return the blocks of code of a page in their order, whether fenced or indented."""
    found, section, name = [], "", str(page.relative_to(ROOT))
    tokens = MarkdownIt().parse(page.read_text())
    for before, token in pairwise(tokens):
        if before.type == "heading_open":
            section = token.content
        elif token.type in ("fence", "code_block"):
            assert token.map is not None
            first = token.map[0] + (2 if token.type == "fence" else 1)
            found.append(Block(name, section, first, token.info.strip(), token.content))
    return found


def inline_code(page: Path) -> list[str]:
    """Return what stands between backticks in a page's text."""
    inlines = [token.children or [] for token in MarkdownIt().enable("table").parse(page.read_text())]
    return [child.content for children in inlines for child in children if child.type == "code_inline"]
