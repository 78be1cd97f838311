"""SCRAM: what both sides derive from a password, and how they read texts (RFC 5802; RFC 7677 for SHA-256).

As Apache Kafka has it (KIP-84): names and passwords are taken as they are, in UTF-8, without the preparation of
RFC 4013; no channel binding. Packages that prepare them (SASLprep) refuse passwords that Kafka's users have, which is
why this is our own.

It reads bytes before a login.
"""

import base64
import binascii
import hashlib
import hmac
from typing import Any, Final

from msgspec import Struct

ALGORITHMS: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""The mechanisms, and the hash function of each by its name in `hashlib`."""
USUAL_ITERATIONS: Final = 8_192
"""The iterations of new users here: twice the least that is allowed (RFC 7677), half of the most that Kafka takes."""
USUAL_SALT_BYTES: Final = 32

NO_CHANNEL_BINDING = "n,,"


class ScramError(Exception):
    """The other side's text is not what it must be; the message is one sentence."""


class ScramKeys(Struct, frozen=True):
    """The facts that a server keeps of a password (RFC 5802, 3): enough to check a login, too little to make one."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes

    def __repr__(self) -> str:
        """Show no key: with one, somebody can pose as the server, or try passwords without asking it."""
        return f"ScramKeys(iterations={self.iterations})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Show no key in tracebacks either."""
        return [("iterations", self.iterations)]


def salted_password(algorithm: str, password: str, salt: bytes, iterations: int) -> bytes:
    """Return the salted password: some milliseconds of work, by which guessing becomes dear."""
    return hashlib.pbkdf2_hmac(algorithm, password.encode(), salt, iterations)


def keys_from_salted(algorithm: str, salted: bytes, salt: bytes, iterations: int) -> ScramKeys:
    """Return what a server keeps of a salted password."""
    client_key = hmac.digest(salted, b"Client Key", algorithm)
    stored_key = hashlib.new(algorithm, client_key).digest()
    return ScramKeys(salt, iterations, stored_key, hmac.digest(salted, b"Server Key", algorithm))


def xor(one: bytes, other: bytes) -> bytes:
    """Return the exclusive or of two texts of one length."""
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


def text_of(message: bytes) -> str:
    """Return a message's text; raises `ScramError`."""
    try:
        return bytes(message).decode()
    except UnicodeDecodeError:
        raise ScramError("it sent something that is not text") from None


def decoded(value: str) -> bytes:
    """Return the bytes of an attribute in base64; none where it is not that."""
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return b""
