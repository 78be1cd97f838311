"""Tables of what clients have named, and who holds their readers back."""

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

import typer

from exacta.cli.lines import one_line

if TYPE_CHECKING:
    from exacta.readmodel.groups import BlockingTransaction

_WIDTH_ELSEWHERE = 1000
"""The width of a table in a pipe, where a row is a line however long its names are."""


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], to_the_right: Collection[str] = ()) -> None:
    """Print a table on stdout."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for name in columns:
        table.add_column(name, justify="right" if name in to_the_right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(one_line(cell)) for cell in row))  # text, for Rich would take brackets for commands
    console = Console(highlight=False)
    if console.is_terminal:
        console.print(table)
        return
    console.width = _WIDTH_ELSEWHERE
    with console.capture() as printed:
        console.print(table)
    for line in printed.get().splitlines():
        typer.echo(line.rstrip())  # a table fills its last column with blanks, which a pipe need not get


def held_by(transactions: Sequence["BlockingTransaction"]) -> str:
    """Return the oldest of the transactions that hold readers back, and how many more there are."""
    if not transactions:
        return ""
    oldest, more = transactions[0], len(transactions) - 1
    seconds = oldest.open_for_ms / 1000
    return f"{oldest.transactional_id}, for {seconds:.1f} s" + (f", and {more} more" if more else "")
