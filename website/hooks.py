"""MkDocs calls these functions while it builds the site, so that the pages stay what a code host shows.

- A link that leaves `docs/` (to a test, to an example) becomes one to the code host (`code_host` in `mkdocs.yml`).
- A heading has the anchor that a code host gives it, so that a link to a section works in both places.
- A page that would load a script, a style, a font or a picture from elsewhere fails the build.

The functions know nothing of MkDocs: they take its objects as they come.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

_ELSEWHERE = r"[^>]*?\b{}=[\"']?((?:https?:)?//[^\"'\s>]+)"
_LOADED = re.compile(f"<(?:script|img|iframe|source){_ELSEWHERE.format('src')}|<link{_ELSEWHERE.format('href')}")
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


def loaded_from_elsewhere(html: str) -> list[str]:
    """Return the addresses on other machines from which a browser would load parts of a page."""
    return [address for pair in _LOADED.findall(html) for address in pair if address]


# --- what MkDocs calls ---


def on_config(config: Any) -> Any:
    """Give headings their anchors."""
    config["mdx_configs"].setdefault("toc", {})["slugify"] = anchor
    return config


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Mend the links of one page."""
    return to_the_code_host(
        markdown, page.file.src_uri, Path(config.config_file_path).parent, config.extra["code_host"]
    )


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Refuse a page that is not whole by itself. Raises ValueError."""
    if loaded := loaded_from_elsewhere(output):
        raise ValueError(f"{page.file.src_uri} loads from elsewhere: {', '.join(loaded)}")
    return output
