"""The reference of options and settings, made from their tables.

This module owns the form of `docs/reference/spark-options.md`. The tables hold its content.
"""

from collections.abc import Iterable, Sequence

from exacta.spark.options.connection import CONNECTION
from exacta.spark.options.foreach_batch import FOREACH_BATCH
from exacta.spark.options.kafka_clients import COMMON_REFUSED, CONSUMER_REFUSED, PRODUCER_REFUSED
from exacta.spark.options.parsing import Option
from exacta.spark.options.sink import SINK
from exacta.spark.options.source import SOURCE
from exacta.spark.session import SETTINGS

_HEAD = """# Options of `format("exacta")`

All options of the source and of the sink. The page [format("exacta") for Spark](spark.md) describes the format itself.

The names are those of Spark's own Kafka connector, without regard to case. Options that only Exacta has do not begin
with `kafka.`.

An option that is not known is refused, and so is one that another option leaves without effect. Of the options of
Kafka's clients in Java, those that would change what is read or written are
[refused](#refused-options-of-kafkas-clients), and all others [have no effect](#options-without-effect). One error names
everything that is wrong with the options, and says what to do."""


def page() -> str:
    """Return the page."""
    own = [(title, [each for each in table if each not in CONNECTION]) for title, table in _SIDES]
    parts = [_HEAD, "## Source and sink", _options(CONNECTION)]
    for title, options in own:
        parts += [f"## {title}", _options(options)]
    parts += ["## Options without effect", _WITHOUT_EFFECT]
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
An option that begins with `kafka.`, and is not on this page, is accepted whatever its value, so that a job can keep
what it has set for Kafka's clients in Java. The logger `exacta.spark` names all of these once, as a warning. Refused
are a name that is almost one of this page, and unknown names that begin with `kafka.ssl.` or `kafka.security.`.
`groupIdPrefix`, `kafkaConsumer.pollTimeoutMs`, `fetchOffset.numRetries` and `fetchOffset.retryIntervalMs` are accepted,
too. A batch accepts `maxOffsetsPerTrigger`, `minOffsetsPerTrigger` and `maxTriggerDelay`."""

_REFUSED = "Leaving such an option out without a word would change what is read or written, or who may see it."

_REFUSALS: Sequence[tuple[str, Sequence[Option]]] = (
    ("Source and sink", COMMON_REFUSED),
    ("Source", CONSUMER_REFUSED),
    ("Sink", PRODUCER_REFUSED),
)


def _options(table: Iterable[Option]) -> str:
    return _table(
        ("Option", "What it does", "Default"), [[f"`{each.name}`", each.about, each.default] for each in table]
    )


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |".replace("  |", " |") for cells in lines)
