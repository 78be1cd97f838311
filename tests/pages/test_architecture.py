"""The architecture page is a map of the folders that there are, and names only what exists."""

import re

from tests.pages.blocks import ROOT, blocks_of, inline_code

PAGE = ROOT / "docs" / "explanation" / "architecture.md"
DECISIONS = ROOT / "docs" / "decisions"
PACKAGE = ROOT / "src" / "exacta"
CODE = inline_code(PAGE)


def test_every_folder_is_on_the_map() -> None:
    on_the_map = {code.strip("/") for code in CODE}
    # What lies deeper belongs to the folder above it.
    folders = [path.parent.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py")]
    expected = {str(folder) for folder in folders if len(folder.parts) in (1, 2, 3)}
    inner = {"core/groups/classic", "core/groups/consumer", "protocol/kafka/messages"}
    assert expected - on_the_map - inner <= {"protocol", "adapters"}


def test_every_path_on_the_page_exists() -> None:
    paths = [code for code in CODE if re.fullmatch(r"[\w./-]+(/|\.py|\.md|\.toml)", code)]
    drawn = re.findall(r"\b[\w/]+/(?= )|\b\w+\.py\b", blocks_of(PAGE)[0].text)
    assert len(paths) > 50
    assert len(drawn) > 10
    places = (ROOT, PACKAGE, PACKAGE / "core" / "groups")
    assert [path for path in (*paths, *drawn) if not any((place / path).exists() for place in places)] == []


def test_every_decision_record_is_in_the_index() -> None:
    index = (DECISIONS / "README.md").read_text()
    assert [path.name for path in sorted(DECISIONS.glob("0*.md")) if f"]({path.name})" not in index] == []
