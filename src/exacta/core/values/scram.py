"""The keys by which a server checks a login by SCRAM (RFC 5802, KIP-84); of a password nothing else is kept.

A thief of them cannot log in by them, but can pretend to be the server, or guess passwords at leisure. So they are
`Secret`s.
"""

from enum import IntEnum
from typing import Final

from msgspec import Struct

from exacta.core.values.secret import Secret


class ScramMechanism(IntEnum):
    """A mechanism by its number in Kafka's requests (KIP-554)."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def sasl_name(self) -> str:
        """Return the name of the mechanism in SASL, as `SCRAM-SHA-256`."""
        return self.name.replace("_", "-")


MIN_ITERATIONS: Final = 4_096
"""The least work of a guess (RFC 7677)."""
MAX_ITERATIONS: Final = 16_384
"""Kafka's bound: a client does them at each login."""


class ScramKey(Struct, frozen=True, array_like=True):
    """The part that a server keeps of one user's password for one mechanism."""

    mechanism: ScramMechanism
    salt: bytes
    iterations: int
    stored_key: Secret
    """H(HMAC(salted password, "Client Key"))."""
    server_key: Secret
    """HMAC(salted password, "Server Key")."""


class ScramAlteration(Struct, frozen=True):
    """A user's new key for a mechanism, or no key any more; a mechanism that nobody knows is None."""

    user: str
    mechanism: ScramMechanism | None
    key: ScramKey | None = None
    """None: the user shall have none of this mechanism."""
