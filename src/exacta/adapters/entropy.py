"""The operating system's source of entropy."""

import secrets
import uuid


class SystemEntropy:
    """See `exacta.ports.entropy.Entropy`."""

    def new_uuid(self) -> uuid.UUID:
        """Return an id that nothing else has (UUID version 4)."""
        return uuid.uuid4()

    def below(self, bound: int) -> int:
        """Return a number from 0 on, and below `bound`."""
        return secrets.randbelow(bound)
