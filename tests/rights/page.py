"""The tables of docs/how-to/permissions.md, as the tests read them: a row says what is done, and by which rights.

The page is the one table: what stands there is run, and nothing else is.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.rights.place import Right

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "permissions.md"
_KINDS = {"topic": "Topic", "group": "Group", "transactional id": "TransactionalId"}
_RIGHTS = re.compile(r"(?P<operations>\w+(?:(?:, | and )\w+)*) on (?:the cluster|(?P<kind>[a-z ]+?)s? `(?P<name>.+?)`)")


class Row(NamedTuple):
    """What is done, what it needs, and what lets it show more."""

    task: str
    needs: tuple[Right, ...]
    more: tuple[Right, ...]


def rows(section: str) -> list[Row]:
    """Return the rows of the tables in a section, which its heading begins with."""
    text = PAGE.read_text(encoding="utf-8")
    [found] = re.findall(rf"^## {re.escape(section)}.*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    lines = [line.strip("|").split(" | ") for line in found.splitlines() if line.startswith("| ")]
    cells = [[cell.strip(" |") for cell in line] for line in lines if "needs" not in line]
    return [Row(task, tuple(rights(needs)), tuple(rights("".join(more)))) for task, needs, *more in cells]


def rights(cell: str) -> Iterator[Right]:
    """Yield the rights that a cell names, one operation each."""
    if cell in ("", "–"):
        return
    for part in cell.split("; "):
        found = _RIGHTS.fullmatch(part)
        assert found, f"no rights: {part!r}"
        kind, name = ("Cluster", "kafka-cluster") if found["kind"] is None else (_KINDS[found["kind"]], found["name"])
        for operation in re.split(", | and ", found["operations"]):
            yield Right(operation, kind, name.removesuffix("*"), name.endswith("*"))
