"""The reference of options and settings, made from their tables.

This module owns the form of `docs/reference/spark-options.md`. The tables hold its content.
"""

from collections.abc import Iterable, Sequence

from exacta.spark.options.connection import CONNECTION
from exacta.spark.options.foreach_batch import FOREACH_BATCH
from exacta.spark.options.kafka_clients import (
    COMMON_HARMLESS,
    COMMON_REFUSED,
    CONSUMER_HARMLESS,
    CONSUMER_REFUSED,
    PRODUCER_HARMLESS,
    PRODUCER_REFUSED,
)
from exacta.spark.options.parsing import Option
from exacta.spark.options.sink import SINK
from exacta.spark.options.source import SOURCE
from exacta.spark.session import SETTINGS

_HEAD = """# Options of `format("exacta")`

All options of the source and of the sink. The page [format("exacta") for Spark](spark.md) describes the format itself.

The names are those of Spark's own Kafka connector, without regard to case. Options that only Exacta has do not begin
with `kafka.`.

An option that is not known is refused, and so is one that another option leaves without effect. Kafka's clients in Java
have options that mean nothing here. Those that [have no effect](#options-without-effect) are accepted, and one line of
the log names them. Those that would change what is read or written are [refused](#refused-options-of-kafkas-clients).
One error names everything that is wrong with the options, and says what to do."""


def page() -> str:
    """Return the page."""
    own = [(title, [each for each in table if each not in CONNECTION]) for title, table in _SIDES]
    parts = [_HEAD, "## Source and sink", _options(CONNECTION)]
    for title, options in own:
        parts += [f"## {title}", _options(options)]
    parts += ["## Options without effect", _WITHOUT_EFFECT, _harmless()]
    parts += ["## Refused options of Kafka's clients", _REFUSED]
    for title, refused in _REFUSALS:
        parts.append(_table((title, ""), [[f"`{each.name}`", each.about] for each in refused]))
    settings = [[f"`{name}`", setting.why, f"`{setting.value}`"] for name, setting in SETTINGS.items()]
    parts += [
        "## Settings of `exacta.spark.session`",
        "`exacta.spark.session` sets these, and its argument `settings` overrides them. A session of your own may "
        "leave out all of them.",
        _table(("Setting", "Why", "Value"), settings),
    ]
    return "\n\n".join(parts) + "\n"


_SIDES: Sequence[tuple[str, Sequence[Option]]] = (
    ("Source", SOURCE),
    ("Sink", SINK),
    ("`exacta.spark.write`, besides the options of the sink", FOREACH_BATCH),
)


_WITHOUT_EFFECT = """\
They are accepted, whatever their value, so that a job can keep them. The logger `exacta.spark` names them once, at
level INFO. A writer also accepts every option of Kafka's consumers, and a reader every option of its producers: Kafka's
clients pass over them too. A batch accepts `maxOffsetsPerTrigger`, `minOffsetsPerTrigger` and `maxTriggerDelay`."""

_REFUSED = "Leaving such an option out without a word would change what is read or written, or who may see it."

_REFUSALS: Sequence[tuple[str, Sequence[Option]]] = (
    ("Source and sink", COMMON_REFUSED),
    ("Source", CONSUMER_REFUSED),
    ("Sink", PRODUCER_REFUSED),
)


def _harmless() -> str:
    sides = (("both", COMMON_HARMLESS), ("source", CONSUMER_HARMLESS), ("sink", PRODUCER_HARMLESS))
    rows = [[", ".join(f"`{name}`" for name in each.names), side, each.why] for side, table in sides for each in table]
    return _table(("Options", "Side", "Why they have no effect"), rows)


def _options(table: Iterable[Option]) -> str:
    return _table(
        ("Option", "What it does", "Default"), [[f"`{each.name}`", each.about, each.default] for each in table]
    )


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |".replace("  |", " |") for cells in lines)
