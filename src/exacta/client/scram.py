"""The client's side of SCRAM: four texts and their proofs (RFC 5802; RFC 7677 for SHA-256).

The module is pure except for the nonce.

As Apache Kafka has it (KIP-84): names and passwords are taken as they are, in UTF-8, without the preparation of
RFC 4013; no channel binding; fewer than 4096 iterations are refused.

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

FEWEST_ITERATIONS = 4096

MOST_ITERATIONS = 10_000_000
"""This many iterations are some seconds of work. A server that asks for more wants to keep us busy."""

_NO_CHANNEL_BINDING = "n,,"


class ScramError(Exception):
    """The server's text is not what it must be; the message is one sentence."""


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
        return (_NO_CHANNEL_BINDING + self._first_bare).encode()

    def final(self, server_first: bytes) -> bytes:
        """Return the client's final message, with the proof; raises `ScramError`."""
        text = _text(server_first)
        attributes = _attributes(text)
        nonce, salt, iterations = attributes.get("r", ""), _decoded(attributes.get("s", "")), attributes.get("i", "")
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
        stored_key = hashlib.new(self._algorithm, client_key).digest()
        channel_binding = base64.b64encode(_NO_CHANNEL_BINDING.encode()).decode()
        without_proof = f"c={channel_binding},r={nonce}"
        signed = f"{self._first_bare},{text},{without_proof}".encode()
        self._server_signature = self._hmac(self._hmac(salted, b"Server Key"), signed)
        proof = bytes(a ^ b for a, b in zip(client_key, self._hmac(stored_key, signed), strict=True))
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def verify(self, server_final: bytes) -> None:
        """Check the server's signature; raises `ScramError`."""
        attributes = _attributes(_text(server_final))
        if "e" in attributes:
            raise ScramError(f"it says '{attributes['e']}'")
        if not self._server_signature or not hmac.compare_digest(
            _decoded(attributes.get("v", "")), self._server_signature
        ):
            raise ScramError("its signature is wrong: it does not know this user's password")

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._algorithm)


# Some milliseconds for each new connection, of which a task opens several.
@lru_cache(maxsize=8)
def _salted(algorithm: str, password: str, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac(algorithm, password.encode(), salt, iterations)


def _text(message: bytes) -> str:
    try:
        return bytes(message).decode()
    except UnicodeDecodeError:
        raise ScramError("it sent something that is not text") from None


def _attributes(text: str) -> dict[str, str]:
    return {part[0]: part[2:] for part in text.split(",") if part[1:2] == "="}


def _decoded(value: str) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return b""
