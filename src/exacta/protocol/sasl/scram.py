"""SCRAM: the client's side of its four texts, and the keys that both sides derive (RFC 5802; RFC 7677 for SHA-256).

The module is pure except for the nonce. `scram_server.py` is the other side.

As Apache Kafka has it (KIP-84): names and passwords are taken as they are, in UTF-8, without the preparation of
RFC 4013; no channel binding; fewer than 4096 iterations are refused. Packages that prepare them (SASLprep) refuse
passwords that Kafka's users have, which is why this is our own.

Theory of operation: both sides derive the same keys from the salted password. The client proves that it has the
password, without showing it; the server's signature proves that the server has it too, or rather what it had stored.
A server that cannot sign is not the one that knows us, and is refused like a wrong password.
"""

import base64
import binascii
import hashlib
import hmac
import secrets
from functools import lru_cache
from typing import Any

from msgspec import Struct

FEWEST_ITERATIONS = 4096

USUAL_ITERATIONS = 8_192
"""The iterations of new users here: twice the least that is allowed (RFC 7677), half of the most that Kafka takes."""
USUAL_SALT_BYTES = 32

MOST_ITERATIONS = 10_000_000
"""This many iterations are some seconds of work. A server that asks for more wants to keep us busy."""

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


class Scram:
    """One login: `first` is sent, `final` answers the server's first text, `verify` checks its final one."""

    def __init__(self, algorithm: str, username: str, password: str, nonce: str | None = None) -> None:
        self._algorithm = algorithm
        self._password = password
        self._nonce = nonce or secrets.token_urlsafe(24)
        # A comma ends an attribute, and the equals sign escapes it.
        name = username.replace("=", "=3D").replace(",", "=2C")
        self._first_bare = f"n={name},r={self._nonce}"
        self._server_signature = b""

    def first(self) -> bytes:
        """Return the client's first message."""
        return (NO_CHANNEL_BINDING + self._first_bare).encode()

    def final(self, server_first: bytes) -> bytes:
        """Return the client's final message, with the proof; raises `ScramError`."""
        text = text_of(server_first)
        attributes = attributes_of(text)
        nonce, salt, iterations = attributes.get("r", ""), decoded(attributes.get("s", "")), attributes.get("i", "")
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce):
            raise ScramError("its nonce does not continue ours")
        if not salt or not iterations.isascii() or not iterations.isdigit():
            raise ScramError("its first message has no salt or no number of iterations")
        if not FEWEST_ITERATIONS <= int(iterations) <= MOST_ITERATIONS:
            raise ScramError(
                f"it wants {iterations} iterations: fewer than {FEWEST_ITERATIONS} are not safe, and more than "
                f"{MOST_ITERATIONS} would keep the client busy"
            )
        salted = _salted(self._algorithm, self._password, salt, int(iterations))
        client_key = self._hmac(salted, b"Client Key")
        keys = keys_from_salted(self._algorithm, salted, salt, int(iterations))
        channel_binding = base64.b64encode(NO_CHANNEL_BINDING.encode()).decode()
        without_proof = f"c={channel_binding},r={nonce}"
        signed = f"{self._first_bare},{text},{without_proof}".encode()
        self._server_signature = self._hmac(keys.server_key, signed)
        proof = xor(client_key, self._hmac(keys.stored_key, signed))
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def verify(self, server_final: bytes) -> None:
        """Check the server's signature; raises `ScramError`."""
        attributes = attributes_of(text_of(server_final))
        if "e" in attributes:
            raise ScramError(f"it says '{attributes['e']}'")
        if not self._server_signature or not hmac.compare_digest(
            decoded(attributes.get("v", "")), self._server_signature
        ):
            raise ScramError("its signature is wrong: it does not know this user's password")

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._algorithm)


# A task opens several connections.
_salted = lru_cache(maxsize=8)(salted_password)


def xor(one: bytes, other: bytes) -> bytes:
    """Return two texts of one length, added bit by bit."""
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


def text_of(message: bytes) -> str:
    """Return a message's text; raises `ScramError`."""
    try:
        return bytes(message).decode()
    except UnicodeDecodeError:
        raise ScramError("it sent something that is not text") from None


def attributes_of(text: str) -> dict[str, str]:
    """Return the values of a message's attributes by their letters."""
    return {part[0]: part[2:] for part in text.split(",") if part[1:2] == "="}


def decoded(value: str) -> bytes:
    """Return the bytes of an attribute in base64; none where it is not that."""
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return b""
