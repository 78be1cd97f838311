"""SCRAM: the server's side of one login (RFC 5802, section 5), over keys that it has stored.

A user that nobody knows goes the same way, over keys that fit no password, and learns only at its end that the login
has failed. So the messages do not tell which users there are.

It reads bytes before a login.
"""

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable

from exacta.protocol.sasl.scram import NO_CHANNEL_BINDING, ScramError, ScramKeys, decoded, text_of, xor

_NAME = r"(?:[^=,\0]|=2C|=3D)+"
_NONCE = r"[!-+\--~]+"
_FIRST = re.compile(rf"(?P<header>[ny],(?:a=(?P<other>{_NAME}))?,)(?P<bare>n=(?P<name>{_NAME}),r=(?P<nonce>{_NONCE}))")
"""Channel binding is left out (`n`), or not offered by us (`y`). Extensions are none of ours: `tokenauth`, for one."""
_FINAL = re.compile(rf"(?P<unproved>c=(?P<binding>[A-Za-z0-9+/=]+),r=(?P<nonce>{_NONCE})),p=(?P<proof>[A-Za-z0-9+/=]+)")


class ScramServer:
    """One login. `first` and `final` answer the client's two messages; each raises `ScramError`.

    `keys_of` returns the keys of a user, also for one that there is not. `user` and its `keys` are known after `first`,
    and proved after `final`.
    """

    def __init__(self, algorithm: str, keys_of: Callable[[str], ScramKeys], nonce: str | None = None) -> None:
        self.user = ""
        self._algorithm = algorithm
        self._keys_of = keys_of
        self._own_nonce = nonce or secrets.token_urlsafe(24)
        self._header = NO_CHANNEL_BINDING
        self._nonce = ""
        self._first_texts = ""

    def first(self, message: bytes) -> bytes:
        """Return the server's first message, with salt and iterations."""
        found = _FIRST.fullmatch(text_of(message))
        if found is None:
            raise ScramError("its first message is malformed")
        self.user = _unescaped(found["name"])
        if found["other"] is not None and _unescaped(found["other"]) != self.user:
            raise ScramError("it asks to act for another user")
        self._header = found["header"]
        self.keys = self._keys_of(self.user)
        self._nonce = found["nonce"] + self._own_nonce
        salt = base64.b64encode(self.keys.salt).decode()
        own = f"r={self._nonce},s={salt},i={self.keys.iterations}"
        self._first_texts = f"{found['bare']},{own}"
        return own.encode()

    def final(self, message: bytes) -> bytes:
        """Check the client's proof, and return the server's final message, with its signature."""
        found = _FINAL.fullmatch(text_of(message))
        if found is None:
            raise ScramError("its final message is malformed")
        if found["nonce"] != self._nonce:
            raise ScramError("its nonce is not ours")
        if decoded(found["binding"]) != self._header.encode():
            raise ScramError("it changed its mind on channel binding")
        keys = self.keys
        signed = f"{self._first_texts},{found['unproved']}".encode()
        signature = hmac.digest(keys.stored_key, signed, self._algorithm)
        proof = decoded(found["proof"])
        if len(proof) != len(signature):
            raise ScramError("its proof is malformed")
        stored_key = hashlib.new(self._algorithm, xor(proof, signature)).digest()
        if not hmac.compare_digest(stored_key, keys.stored_key):
            raise ScramError("its proof is wrong")
        return b"v=" + base64.b64encode(hmac.digest(keys.server_key, signed, self._algorithm))


def _unescaped(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")
