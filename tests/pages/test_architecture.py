"""The architecture page is a map of the folders that there are, and names only what exists."""

import re
from pathlib import Path

from tests.pages.blocks import ARCHITECTURE, ROOT, blocks_of, inline_code

DECISIONS = ROOT / "docs" / "decisions"
PACKAGE = ROOT / "src" / "exacta"
CODE = inline_code(ARCHITECTURE)


def test_every_folder_is_on_the_map() -> None:
    on_the_map = {code.strip("/") for code in CODE}
    modules = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if path.name != "__init__.py"]
    folders = {module.parent for module in modules} - {Path()}
    # What lies in a folder that is on the map belongs to it, except where others of its kind are on the map, too.
    missing = [folder for folder in folders if str(folder) not in on_the_map and len(folder.parts) < 3]
    told_apart = {folder.parent for folder in folders if str(folder) in on_the_map} - {Path()}
    assert [str(folder) for folder in missing if len(folder.parts) == 1 or folder.parent in told_apart] == []


def test_every_path_on_the_page_exists() -> None:
    paths = [code for code in CODE if re.fullmatch(r"[\w./-]+(/|\.py|\.md|\.toml)", code)]
    drawn = re.findall(r"\b\w[\w/]*/(?= )|\b\w+\.py\b", blocks_of(ARCHITECTURE)[0].text)
    assert len(paths) > 50
    assert len(drawn) > 10
    there = {
        f"/{path.relative_to(ROOT)}"
        for folder in ("benchmarks", "docs", "packaging", "simulation", "src", "tests")
        for path in (ROOT / folder, *(ROOT / folder).rglob("*"))
    } | {"/pyproject.toml"}
    assert [path for path in (*paths, *drawn) if not any(each.endswith(f"/{path}".rstrip("/")) for each in there)] == []


def test_every_decision_record_is_in_the_index() -> None:
    index = (DECISIONS / "README.md").read_text()
    assert [path.name for path in sorted(DECISIONS.glob("0*.md")) if f"]({path.name})" not in index] == []
