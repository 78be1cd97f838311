"""The source of fresh ids. A simulation hands in its own source, so that a seed decides them."""

import uuid
from typing import Protocol


class Entropy(Protocol):
    """Draws that nobody can foresee."""

    def new_uuid(self) -> uuid.UUID:
        """Return an id that nothing else has (UUID version 4)."""

    def below(self, bound: int) -> int:
        """Return a number from 0 on, and below `bound`."""
