"""The data directory that commands take if none is named."""

from pathlib import Path

DEFAULT_DATA = Path("exacta-data")
"""A module of its own has it: `exacta serve` does without typer, and `exacta log` does without the server."""
