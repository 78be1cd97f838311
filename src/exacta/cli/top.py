"""`exacta top`: what a cluster does, live on a terminal; on any Kafka cluster.

Theory of operation. Every few seconds one look is taken at the whole cluster (`exacta.client.overview`); rates are the
difference of two looks. What does not fit on the screen is counted below. In a pipe each look is one line of JSON.
"""

import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from exacta.cli.cluster import CommandConfig, Servers, client_of
from exacta.cli.lines import counted, one_line
from exacta.cli.output import Output, OutputFormat, cell, json_text
from exacta.cli.times import now_ms

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import Group
    from rich.table import Table

    from exacta.client.overview import Overview
    from exacta.client.routing import Client

_MOST_GROUPS = 100
"""The groups that are asked for: each costs requests of its own at every look."""

_LONGEST_S = 86_400.0
"""The longest time between two looks: a system sleeps for no time that is infinite."""

_LINES_AROUND = 4
"""The lines that a table has beside its rows: a heading, what is left out, and room between two tables."""


def top(
    interval: Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="Look again after this time.")] = 2,
    count: Annotated[
        int | None,
        typer.Option("--count", "-c", min=1, metavar="N", help="Exit after this many looks.", show_default=False),
    ] = None,
    output: Output = OutputFormat.TABLE,
    bootstrap_servers: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Show live how fast topics grow, how far groups are behind, and which transactions are open.

    Rates are in offsets a second. Those that grow fastest, are farthest behind and are open longest come first. It ends
    by Ctrl-C. With --output json each look is one line.
    """
    with client_of(bootstrap_servers, command_config, "exacta-top") as client, suppress(KeyboardInterrupt):
        shown = (as_shown(each, client.bootstrap) for each in _looks(client, interval, count))
        if output is OutputFormat.JSON:
            for told in shown:
                typer.echo(json_text(told))
                sys.stdout.flush()
        else:
            _live(shown)


def _looks(client: "Client", interval: float, count: int | None) -> "Iterator[tuple[Overview, Mapping[str, float]]]":
    """Yield looks with the rates since the one before; the first one has none."""
    from exacta.client.overview import look, rates

    before: Overview | None = None
    taken = 0
    while True:
        now = look(client, _groups(client))
        yield now, {} if before is None else rates(before, now)
        before, taken = now, taken + 1
        if taken == count:
            return
        time.sleep(min(interval, _LONGEST_S))


def _groups(client: "Client") -> list[str]:
    """Return the groups to look at: those of Spark queries' replay markers are none that read."""
    from exacta.client.group_administration import listed_groups
    from exacta.spark.owners import owners_of_groups

    found = listed_groups(client)
    owners = owners_of_groups(client, [each.group for each in found if not each.protocol_type])
    return [each.group for each in found if each.group not in owners][:_MOST_GROUPS]


def as_shown(taken: "tuple[Overview, Mapping[str, float]]", bootstrap: str) -> dict[str, Any]:
    """Return a look as records, what matters most first."""
    view, rates = taken
    at_ms = now_ms()
    topics = sorted(view.topics.items(), key=lambda each: (-rates.get(each[0], 0), each[0]))
    groups = sorted(view.groups.items(), key=lambda each: (-each[1].unread, each[0]))
    return {
        "cluster": bootstrap,
        "at_ms": at_ms,
        "brokers": view.brokers,
        "topics": [
            {
                "topic": name,
                "partitions": each.partitions,
                "per_second": None if name not in rates else round(rates[name], 1),
                "end_offsets": each.end_offsets,
                "held_back": each.held_back,
            }
            for name, each in topics
        ],
        "groups": [
            {
                "group": name,
                "unread": each.unread,
                "held_back": each.held_back,
                "in": "records" if each.is_exact else "offsets",
            }
            for name, each in groups
        ],
        "transactions": [
            {
                "transaction": each.transaction,
                "open_for_s": None if each.start_ms is None else max(0, at_ms - each.start_ms) // 1000,
                "partitions": each.partitions,
            }
            for each in view.transactions
        ],
    }


def _live(shown: "Iterator[dict[str, Any]]") -> None:
    """Show each look in place of the one before, or below it where there is no terminal."""
    from rich.console import Console
    from rich.live import Live

    console = Console(highlight=False)
    if not console.is_terminal:
        for told in shown:
            console.print(screen(told, most_rows=sys.maxsize))
        return
    with Live(console=console, screen=True, auto_refresh=False) as live:
        for told in shown:
            rows = max(1, (console.height - 3) // 3 - _LINES_AROUND)
            live.update(screen(told, most_rows=rows), refresh=True)


def screen(told: "Mapping[str, Any]", most_rows: int) -> "Group":
    """Return what is shown of a look: at most this many rows of each table."""
    from rich.console import Group
    from rich.text import Text

    nouns = {"topics": "topic", "groups": "group", "transactions": "open transaction"}
    sizes = [counted(told["brokers"], "broker"), *(counted(len(told[name]), noun) for name, noun in nouns.items())]
    parts: list[Any] = [Text(one_line(f"{told['cluster']}: {', '.join(sizes)}")), Text("")]
    for name, noun in nouns.items():
        records = told[name]
        if not records:
            continue
        parts.append(_table(records[:most_rows]))
        more = f"and {counted(len(records) - most_rows, noun)} more" if len(records) > most_rows else ""
        parts.append(Text(f"{more}\n" if more else ""))
    return Group(*parts)


def _table(records: "Sequence[Mapping[str, Any]]") -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for place, name in enumerate(records[0]):
        table.add_column(name.replace("_", " "), justify="right" if place and name != "in" else "left", no_wrap=True)
    for record in records:
        table.add_row(*(Text(one_line(cell(value))) for value in record.values()))
    return table
