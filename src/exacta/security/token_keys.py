"""The public keys by which tokens are checked, as a JSON Web Key Set (RFC 7517) in a file or at an https address.

Loading blocks, and is done on a thread. Where it fails, the keys that were loaded last hold for an hour more.
"""

import json
import logging
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import jwt
from msgspec import Struct

logger = logging.getLogger("exacta.server")

TIMEOUT_S: Final = 10.0
MOST_BYTES: Final = 1 << 20
KEPT_S: Final = 3_600.0
"""The time for which keys hold after the last time that they were loaded, and their renewal has failed."""
SHORTEST_BETWEEN_S: Final = 10.0
"""A token with an unknown key makes the keys be loaded again at most so often."""

_ALGORITHMS: Final = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "P-256": ("ES256",),
    "P-384": ("ES384",),
    "P-521": ("ES512",),
    "Ed25519": ("EdDSA",),
}
"""The algorithms of each kind of key. A token's header chooses among those of the key, and never the kind."""

_PUBLIC: Final = ("kty", "crv", "n", "e", "x", "y")
"""The members of a key that make it another key (RFC 7518, section 6)."""


class KeysUnavailable(Exception):
    """The key set cannot be loaded, or is none; the message is one sentence."""


class Key(Struct, frozen=True):
    """One public key, and the algorithms by which it may be used."""

    key: jwt.PyJWK
    algorithms: tuple[str, ...]
    public: tuple[str, ...] = ()
    """The key itself, in a form in which equal ones are equal."""


class KeySet:
    """The keys at one address: `https://…`, or `file:///…`. `clock` gives seconds from any moment on."""

    def __init__(self, address: str, refresh_s: float, clock: Callable[[], float]) -> None:
        self.address = address
        self._refresh_s = refresh_s
        self._clock = clock
        self._keys: dict[str | None, Key] = {}
        self._loaded_s: float | None = None
        self._tried_s: float | None = None
        self._one_tries = threading.Lock()
        self._file: tuple[int, int, int] | None = None
        self.losses = 0
        """The number of times that keys were gone when they were read again."""

    def find(self, key_id: str | None) -> Key | None:
        """Return the key of this id; without an id the only one that there is."""
        if self._loaded_s is None or self._clock() - self._loaded_s >= self._refresh_s + KEPT_S:
            return None
        if key_id is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys.get(key_id)

    def should_renew(self, key_id: str | None) -> bool:
        """Return whether `renew` should be called before this key is looked for."""
        is_fresh = self._loaded_s is not None and self._clock() - self._loaded_s < self._refresh_s
        return not self._was_just_tried() and not (is_fresh and self.find(key_id) is not None)

    def has(self, key: Key) -> bool:
        """Return whether this key is still one by which tokens are taken."""
        return any(each.public == key.public for each in self._keys.values())

    def is_due(self) -> bool:
        """Return whether the keys should be read again though nobody asks for one: they are old, or other ones."""
        is_fresh = self._loaded_s is not None and self._clock() - self._loaded_s < self._refresh_s
        return self._state_of_file() != self._file or not (is_fresh or self._was_just_tried())

    def read_again(self) -> None:
        """Read the keys, on any thread; those of before hold on where that fails."""
        try:
            self.load()
        except KeysUnavailable as error:
            logger.warning("the keys of tokens are not renewed: %s", error)

    def _state_of_file(self) -> tuple[int, int, int] | None:
        """Return what changes with the file; None: the keys lie at an address, or are not there now."""
        parts = urlsplit(self.address)
        if parts.scheme != "file":
            return None
        try:
            state = Path(unquote(parts.path)).stat()
        except OSError:
            return None
        return state.st_mtime_ns, state.st_size, state.st_ino

    def renew(self) -> None:
        """Read the keys, on any thread, unless another thread has just begun to.

        They are taken here, and not where the client waits for them: it may be gone, and others need them.
        """
        with self._one_tries:
            if self._was_just_tried():
                return
            self._tried_s = self._clock()
        self.read_again()

    def load(self) -> None:
        """Read the keys, on any thread; raises `KeysUnavailable`."""
        self._tried_s = self._clock()
        self._file = self._state_of_file()
        before, self._keys = self._keys, _parsed(_read(self.address), self.address)
        self._loaded_s = self._clock()
        if not all(map(self.has, before.values())):
            self.losses += 1

    def _was_just_tried(self) -> bool:
        return self._tried_s is not None and self._clock() - self._tried_s < SHORTEST_BETWEEN_S


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: object, **more: object) -> None:
        """Follow nobody: the address is the operator's choice."""
        return


def _read(address: str) -> bytes:
    parts = urlsplit(address)
    try:
        if parts.scheme == "file":
            with Path(unquote(parts.path)).open("rb") as file:
                found = file.read(MOST_BYTES + 1)
        else:
            opener = urllib.request.build_opener(_NoRedirect)
            with opener.open(address, timeout=TIMEOUT_S) as response:  # its scheme is checked at the start
                found = response.read(MOST_BYTES + 1)
    except (OSError, ValueError, HTTPException) as error:
        raise KeysUnavailable(f"{address} cannot be read: {error}") from error
    if len(found) > MOST_BYTES:
        raise KeysUnavailable(f"{address} holds more than {MOST_BYTES} bytes")
    return bytes(found)


def _parsed(text: bytes, address: str) -> dict[str | None, Key]:
    try:
        entries = json.loads(text)["keys"]
        found = {}
        for entry in entries:
            algorithms = _ALGORITHMS.get(entry.get("kty") if entry.get("kty") == "RSA" else entry.get("crv"), ())
            named = entry.get("alg")
            allowed = tuple(each for each in algorithms if named in (None, each))
            if allowed and entry.get("use", "sig") == "sig":
                public = tuple(str(entry.get(each)) for each in _PUBLIC)
                found[entry.get("kid")] = Key(jwt.PyJWK(entry, algorithm=allowed[0]), allowed, public)
    except (ValueError, TypeError, KeyError, AttributeError, jwt.PyJWTError) as error:
        raise KeysUnavailable(f"{address} holds no JSON Web Key Set: {error}") from error
    if not found:
        raise KeysUnavailable(f"{address} holds no key by which signatures are checked (RSA, EC or Ed25519)")
    return found
