"""Print records, as a table for people or as JSON for programs.

A command makes one mapping for each row, and both forms come of it: the keys are the fields of JSON, and the columns of
the table, there with blanks for underscores. Numbers are shown to the right, and `None` as a dash.
"""

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, TypeAlias

import typer
from msgspec import Struct, to_builtins

from exacta.cli.lines import say
from exacta.cli.tables import print_table

Record: TypeAlias = Mapping[str, Any]


class OutputFormat(StrEnum):
    """Name the form in which a command prints what it has found."""

    TABLE = "table"
    JSON = "json"


Output = Annotated[OutputFormat, typer.Option("--output", help="Print a table for people, or JSON for programs.")]


def print_records(records: Sequence[Record], output: OutputFormat, *, nothing: str) -> None:
    """Print one row, or one object of a JSON array, for each record; `nothing` is said where a table has no row."""
    if output is OutputFormat.JSON:
        print_json(list(records))
    elif records:
        columns = list(records[0])
        numbers = {name for name in columns if _is_of_numbers([each[name] for each in records])}
        rows = [[cell(each[name]) for name in columns] for each in records]
        headings = {name: name.replace("_", " ") for name in columns}
        print_table(list(headings.values()), rows, to_the_right=[headings[name] for name in numbers])
    else:
        say(nothing)


def _is_of_numbers(values: Sequence[object]) -> bool:
    given = [each for each in values if each is not None]
    return bool(given) and all(isinstance(each, int | float) and not isinstance(each, bool) for each in given)


def print_json(value: object) -> None:
    """Print a value as JSON of several lines."""
    typer.echo(json_text(value, indent=2))


def json_text(value: object, indent: int | None = None) -> str:
    """Return a value as JSON in which a terminal prints every character."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return "".join(each if each.isprintable() or each == "\n" else json.dumps(each)[1:-1] for each in text)


def plain(value: Any) -> Any:
    """Return a value of the client's as JSON takes it: its tuples with names and its structs become objects."""
    if isinstance(value, Struct):
        return to_builtins(value)
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: plain(each) for name, each in value._asdict().items()}
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    return value


def cell(value: object) -> str:
    """Return a value as a cell of a table shows it."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)
