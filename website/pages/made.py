"""The list of the pages that are made from code."""

from collections.abc import Callable
from pathlib import Path

from exacta.cli.configuration_reference import reference
from website.pages import (
    anomalies,
    ask,
    commands,
    limits,
    metrics,
    protocol,
    python_api,
    several_brokers,
    spark_options,
    transaction_errors,
)

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


def _limits() -> str:
    """Return the page of limits as it stands, with its tables as the code has them."""
    return limits.with_reference((REFERENCE / "limits.md").read_text(encoding="utf-8"))


PAGES: dict[Path, Callable[[], str]] = {
    REFERENCE / "anomalies.md": anomalies.page,
    REFERENCE / "ask.md": ask.page,
    REFERENCE / "commands.md": commands.page,
    REFERENCE / "configuration.md": reference,
    REFERENCE / "limits.md": _limits,
    REFERENCE / "metrics.md": metrics.page,
    REFERENCE / "protocol.md": protocol.page,
    REFERENCE / "python-api.md": python_api.page,
    REFERENCE / "several-brokers.md": several_brokers.page,
    REFERENCE / "spark-options.md": spark_options.page,
    REFERENCE / "transaction-errors.md": transaction_errors.page,
}
