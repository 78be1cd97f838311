"""The data directory that commands take if none is named."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from exacta.config.configuration import Configuration

DEFAULT_DATA = Path("exacta-data")
"""A module of its own has it: `exacta serve` does without typer, and `exacta log` does without the server."""


def default_data(configuration: "Configuration") -> Path:
    """Return the directory that a server has if none is named: a broker of a cluster has a cache of its own there."""
    return Path(f"exacta-cache-{configuration.node_id}") if configuration.postgres else DEFAULT_DATA
