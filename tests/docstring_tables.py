"""Tables of rules as they stand in docstrings: tests take their cells from here (decision 0064).

A table is a block of lines in a docstring, in one of two forms.

- Aligned: the block is indented, and columns begin where the cells of its first line begin, two spaces apart. A line
  that is indented further than the first one goes on with the row above it.
- Between bars, as in Markdown.

The first row has the names of the columns; its first cell is the *corner*, by which a table is known in its module.
Footnote stars are left out. `tests/test_tidy.py` finds every table, and every call of `docstring_table`.
"""

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

GAP = re.compile(r"(?<=\S) {2,}(?=\S)")
"""What parts two cells of an aligned line."""
STARS = re.compile(r" ?\*+(?=,|$)")


@dataclass(frozen=True)
class Table:
    """Hold the cells of a table by the names of their row and column."""

    corner: str
    columns: tuple[str, ...]
    rows: dict[str, tuple[str, ...]]

    def __getitem__(self, place: tuple[str, str]) -> str:
        """Return the cell at (row, column)."""
        row, column = place
        return self.rows[row][self.columns.index(column)]

    def cells(self) -> list[tuple[str, str, str]]:
        """Return all cells, each with the names of its row and column before it."""
        return [(row, *each) for row, cells in self.rows.items() for each in zip(self.columns, cells, strict=True)]

    def column(self, name: str) -> dict[str, str]:
        """Return the cells of one column by the names of their rows."""
        return {row: self[row, name] for row in self.rows}


def docstring_table(module: str, corner: str) -> Table:
    """Return the table of a module's docstring that has this corner."""
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    text = ast.get_docstring(ast.parse(Path(spec.origin).read_text()))
    return table_in(text or "", corner)


def table_in(text: str, corner: str) -> Table:
    """Return the table of a text that has this corner."""
    (found,) = (table for table in tables_in(text) if table.corner == corner)
    return found


def tables_in(text: str) -> Iterator[Table]:
    """Return all tables of a docstring, or of a Markdown page."""
    for block in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        lines = [line.rstrip() for line in block.splitlines()]
        if all(line.startswith("|") for line in lines):
            rows = [
                [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines if line[:4] != "|---"
            ]
        elif all(line.startswith("    ") for line in lines) and sum(bool(GAP.search(line)) for line in lines) > 1:
            rows = _aligned(lines)
        else:
            continue
        corner, *columns = (STARS.sub("", cell) for cell in rows[0])
        named = {STARS.sub("", name): tuple(STARS.sub("", cell) for cell in cells) for name, *cells in rows[1:]}
        assert len(named) == len(rows) - 1, f"two rows have the same name: {corner}"
        yield Table(corner, tuple(columns), named)


def _aligned(lines: list[str]) -> list[list[str]]:
    indent = len(lines[0]) - len(lines[0].lstrip())
    starts = [indent, *(gap.end() for gap in GAP.finditer(lines[0])), None]
    rows: list[list[str]] = []
    for line in lines:
        cells = [line[begin:end].strip() for begin, end in pairwise(starts)]
        if len(line) - len(line.lstrip()) > indent:
            rows[-1] = [f"{above} {cell}".strip() for above, cell in zip(rows[-1], cells, strict=True)]
        else:
            rows.append(cells)
    return rows
