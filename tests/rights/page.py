"""The tables of docs/how-to/permissions.md, as the tests read them: a row says what is done, and by which rights.

The page is the one table: what stands there is run, and nothing else is.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.rights.place import Right

PAGE = Path(__file__).parents[2] / "docs/how-to/permissions.md"
_KINDS = {"topic": "Topic", "group": "Group", "transactional id": "TransactionalId"}
_WORDS = {kind: word for word, kind in _KINDS.items()} | {"Cluster": "the cluster"}
_RIGHTS = re.compile(r"(?P<operations>\w+(?:(?:, | and )\w+)*) on (?:the cluster|(?P<kind>[a-z ]+?)s? `(?P<name>.+?)`)")
_SAID = re.compile(
    r"user 'alice' (?:needs the permission|lacks a permission on \S+: the sink needs) (.*?) on "
    r"(topic|group|transactional id|the cluster)s?([^(]*)"
)
_TOLD_OTHERWISE = {
    "Write on any topic, or IdempotentWrite on the cluster": Right("Write", "Topic", "copy"),
    "Read on each topic of subscription 'shop'": Right("Read", "Topic", "orders"),
}
"""What an error names where the request names no topic."""


class Row(NamedTuple):
    """What is done, with which clients, what it needs, and what lets it show more."""

    task: str
    clients: tuple[str, ...]
    needs: tuple[Right, ...]
    more: tuple[Right, ...]


def rows(section: str) -> list[Row]:
    """Return the rows of the tables in the section of this heading."""
    text = PAGE.read_text(encoding="utf-8")
    [found] = re.findall(rf"^## {re.escape(section)}$.*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    lines = [
        [cell.strip() for cell in line.strip("|").split(" | ")] for line in found.splitlines() if line.startswith("| ")
    ]
    result, header = [], []
    for line in lines:
        if "needs" in line:
            header = line
            continue
        cells = dict(zip(header, line, strict=True))
        clients = tuple(cells.get("clients", "").split(", "))
        more = tuple(rights(cells.get("shows more with", "")))
        result.append(Row(line[0], clients, tuple(rights(cells["needs"])), more))
    return result


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


def is_named(missing: Right, said: str) -> bool:
    """Return whether an error of ours names the right, or Describe, which comes with it and is asked for first."""
    if any(words in said and missing == right for words, right in _TOLD_OTHERWISE.items()):
        return True
    found = _SAID.search(said)
    if found is None:
        return False
    operation, kind, names = found.groups()
    is_it = kind == "the cluster" or missing.name in names
    comes_along = operation.startswith("Describe") and missing.operation != "Create"  # which brings no Describe
    return is_it and kind == _WORDS[missing.resource] and (missing.operation in operation or comes_along)
