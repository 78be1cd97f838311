"""The reference of options and settings, made from their tables: `python -m exacta.spark.options.reference`.

Owns the form of `docs/reference/spark-options.md` (`make docs` writes it); what it says stands in the tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from exacta.spark.options.connection import CONNECTION
from exacta.spark.options.foreach_batch import FOREACH_BATCH
from exacta.spark.options.parsing import Option
from exacta.spark.options.sink import SINK
from exacta.spark.options.source import SOURCE
from exacta.spark.session import SETTINGS

_HEAD = """# Options of `format("exacta")`

Made from the tables in the code by `make docs`; do not edit. The format itself: [format("exacta") for Spark](spark.md).

Names are those of Spark's own Kafka connector, without regard to case; options that only we have bear no `kafka.`. An
option that is unknown, or would have no effect, is refused with one sentence."""


def reference() -> str:
    """Return the page."""
    own = [(title, [each for each in table if each not in CONNECTION]) for title, table in _SIDES]
    parts = [_HEAD, "## Source and sink", _options(CONNECTION)]
    for title, table in own:
        parts += [f"## {title}", _options(table)]
    settings = [[f"`{name}`", f"`{setting.value}`", setting.why] for name, setting in SETTINGS.items()]
    parts += [
        "## Settings of `exacta.spark.session`",
        "What it sets, under whatever its argument `settings` says. A session of your own may leave out all of them.",
        _table(("Setting", "Value", "Why"), settings),
    ]
    return "\n\n".join(parts) + "\n"


_SIDES: Sequence[tuple[str, Sequence[Option]]] = (
    ("Source", SOURCE),
    ("Sink", SINK),
    ("`exacta.spark.write`, besides those of the sink", FOREACH_BATCH),
)


def _options(table: Iterable[Option]) -> str:
    return _table(("Option", "Default", ""), [[f"`{each.name}`", each.default, each.about] for each in table])


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |".replace("  |", " |") for cells in lines)


if __name__ == "__main__":
    print(reference(), end="")  # noqa: T201
