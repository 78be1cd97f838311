"""The configuration that says where a topic's transactions lie until they end."""

from typing import Final

TRANSACTION_BUFFER: Final = "transaction.buffer"
"""The name of the configuration: its values are `MARKER` and `SIDECAR` (PIP-31)."""
MARKER: Final = "marker"
SIDECAR: Final = "sidecar"
