"""SCRAM: the client's side of one login (RFC 5802, section 5). It is pure except for the nonce.

Theory of operation: both sides derive the same keys from the salted password. The client proves that it has the
password, without showing it; the server's signature proves that the server has it too, or rather what it had stored.
A server that cannot sign is not the one that knows us, and is refused like a wrong password. So is one that wants
fewer than 4096 iterations (KIP-84).
"""

import base64
import hmac
import secrets
from functools import lru_cache

from exacta.protocol.sasl.scram import (
    NO_CHANNEL_BINDING,
    ScramError,
    decoded,
    keys_from_salted,
    salted_password,
    text_of,
    xor,
)

FEWEST_ITERATIONS = 4096
MOST_ITERATIONS = 10_000_000
"""This many iterations are some seconds of work. A server that asks for more wants to keep us busy."""


class ScramClient:
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
        attributes = _attributes(text)
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
        attributes = _attributes(text_of(server_final))
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


def _attributes(text: str) -> dict[str, str]:
    """Return the values of a message's attributes by their letters."""
    return {part[0]: part[2:] for part in text.split(",") if part[1:2] == "="}
