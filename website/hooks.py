"""MkDocs calls these functions while it builds the site, so that the pages stay what a code host shows.

- A link that leaves `docs/` (to a test, to an example) becomes one to the code host (`code_host` in `mkdocs.yml`).
- A heading has the anchor that a code host gives it, so that a link to a section works in both places.
- A list is one where CommonMark says so. MkDocs reads pages by Python-Markdown, which wants an empty line before a
  list, and four spaces before what belongs to an item. So both are put in, and a page fails the build if it has other
  lists, tables or blocks of code on the site than by CommonMark.
- A `|` in code within a table, which a code host wants escaped, loses its backslash.
- Code within a table may be broken after a dot or the like, so that tables with long names fit.
- A page that would load a script, a style, a font or a picture from elsewhere fails the build.

The functions know nothing of MkDocs: they take its objects as they come.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

_COMMON_MARK = MarkdownIt().enable("table")
_INDENTS = {"bullet_list_open": 2, "ordered_list_open": 3}
"""The blanks by which the pages indent what belongs to an item."""
_ELSEWHERE = r"[^>]*?\b{}=[\"']?((?:https?:)?//[^\"'\s>]+)"
_LOADED = re.compile(f"<(?:script|img|iframe|source){_ELSEWHERE.format('src')}|<link{_ELSEWHERE.format('href')}")
_CELL = re.compile(r"<td.*?</td>", re.DOTALL)
_CODE = re.compile(r"(?<=<code>).*?(?=</code>)", re.DOTALL)
_JOINT = re.compile(r"(?<=\w)[._=,/](?=\w)")
_LINK = re.compile(r"(\]\()((?:\.\./)+[^)\s]*)(\))")


def anchor(heading: str, separator: str = "-") -> str:
    """Return the anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", separator)


def to_the_code_host(markdown: str, page: str, root: Path, address: str) -> str:
    """Let links of a page that leave `docs/` lead to files at `address`. `page` is its path in `docs/`.

    Raises FileNotFoundError for a link to a file that is not in the repository.
    """

    def target(found: re.Match[str]) -> str:
        path, mark, section = found[2].partition("#")
        leads_to = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), path))
        if leads_to.startswith("docs/"):
            return found[0]
        if not (root / leads_to).exists():
            raise FileNotFoundError(f"{page} links to {leads_to}, which is not there")
        return f"{found[1]}{address}/{leads_to}{mark}{section}{found[3]}"

    return _LINK.sub(target, markdown)


def with_plain_lists(markdown: str) -> str:
    """Return the text with its lists written so that Python-Markdown finds them as CommonMark does."""
    lines = markdown.split("\n")
    begins = set()
    for token in _COMMON_MARK.parse(markdown):
        if token.type in _INDENTS and token.level == 0 and token.map is not None:
            first, end = token.map
            indent = _INDENTS[token.type]
            begins |= {first} if first > 0 and lines[first - 1].strip() else set()
            for at in range(first, end):
                if lines[at].startswith(" " * indent):
                    lines[at] = "    " + lines[at][indent:]
    return "\n".join(f"\n{line}" if at in begins else line for at, line in enumerate(lines))


def differences(markdown: str, html: str) -> dict[str, tuple[int, int]]:
    """Return of what a page has another number by CommonMark than in `html`: the tag, and both numbers."""
    common = _COMMON_MARK.render(markdown)
    counts = {tag: (common.count(tag), html.count(tag)) for tag in ("<li>", "<pre>", "<table", "<td")}
    return {tag: both for tag, both in counts.items() if both[0] != both[1]}


def with_bare_pipes(html: str) -> str:
    """Return the page with `|` for each `\\|` in a table, which Python-Markdown leaves as it is in code."""
    return _CELL.sub(lambda cell: cell[0].replace("\\|", "|"), html)


def with_breaks(html: str) -> str:
    """Return the page with a place to break after each dot, underscore or `=` of code in a table: names are long."""
    return _CELL.sub(lambda cell: _CODE.sub(lambda code: _JOINT.sub(r"\g<0><wbr>", code[0]), cell[0]), html)


def loaded_from_elsewhere(html: str) -> list[str]:
    """Return the addresses on other machines from which a browser would load parts of a page."""
    return [address for pair in _LOADED.findall(html) for address in pair if address]


# --- what MkDocs calls ---


def on_config(config: Any) -> Any:
    """Give headings their anchors."""
    config["mdx_configs"].setdefault("toc", {})["slugify"] = anchor
    return config


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Mend the links and the lists of one page."""
    markdown = with_plain_lists(markdown)
    return to_the_code_host(
        markdown, page.file.src_uri, Path(config.config_file_path).parent, config.extra["code_host"]
    )


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Mend the tables of a page; refuse one that is another one here than on the code host. Raises ValueError."""
    if found := differences(page.markdown, html):
        raise ValueError(f"{page.file.src_uri} is another page by CommonMark: {found}")
    return with_breaks(with_bare_pipes(html))


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Refuse a page that is not whole by itself. Raises ValueError."""
    if loaded := loaded_from_elsewhere(output):
        raise ValueError(f"{page.file.src_uri} loads from elsewhere: {', '.join(loaded)}")
    return output
