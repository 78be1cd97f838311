"""The reference page of anomalies, made from their definitions."""

from collections.abc import Iterable

from exacta.verify.analysis.anomalies import Kind

_TERMS = """\
A transaction is *committed* if its commit was acknowledged. It is *aborted* if its abort was acknowledged, if its
commit was never asked for, or if its commit was asked for after a successor had been given its transactional id. Else
it is *unknown*. A *final read* is everything that a reader got of a partition from its first offset to its end, after
all clients had ended and every transactional id had been taken over once more. A Pulsar reader is a read_committed
reader, too, if Pulsar's clients take part.
"""


def page() -> str:
    """Return the page, as Markdown."""
    return "\n".join(
        [
            "# What `exacta verify` looks for",
            "",
            "These are the faults that `exacta verify` finds in what clients have written and read.",
            "[Check a cluster](../how-to/verify.md) says how to run it.",
            "",
            *_TERMS.splitlines(),
            "",
            "## Anomalies",
            "",
            *_table(kind for kind in Kind if not kind.information),
            "",
            "## Allowed: shown as information",
            "",
            "Every Kafka shows these. They are no anomalies unless `--strict` says so, or the topics are Exacta's",
            "sidecar topics (`--transaction-buffer sidecar`). There a read_uncommitted reader gets committed records",
            "only, and is a read_committed reader, too.",
            "",
            *_table(kind for kind in Kind if kind.information),
            "",
        ]
    )


def _table(kinds: Iterable[Kind]) -> list[str]:
    return ["| kind | definition |", "|---|---|", *(f"| `{kind.title}` | {kind.definition} |" for kind in kinds)]
