"""The passwords that were right a moment ago, so that a client that shows its own again costs no second derivation.

HTTP clients send theirs with each request, and others when they log in once more. A keyed hash of it is remembered
with the key that it fitted: nobody comes in by it whose password was changed, or who was removed.

It reads bytes before a login.
"""

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

FOR_S: Final = 60.0
MOST: Final = 1_000
"""The most passwords that are remembered; the one that was derived longest ago is forgotten for another."""


class RememberedPasswords:
    """Remembers passwords for a minute. `clock` gives seconds from any moment on."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._key = secrets.token_bytes(32)
        self._derived_s: OrderedDict[bytes, float] = OrderedDict()

    def knows(self, user: str, password: str, stored_key: bytes) -> bool:
        """Return whether this password has fitted this key within the last minute."""
        derived_s = self._derived_s.get(self._hash(user, password, stored_key))
        return derived_s is not None and self._clock() - derived_s < FOR_S

    def remember(self, user: str, password: str, stored_key: bytes) -> None:
        """Note that it fits."""
        found = self._hash(user, password, stored_key)
        self._derived_s.pop(found, None)
        self._derived_s[found] = self._clock()
        if len(self._derived_s) > MOST:
            self._derived_s.popitem(last=False)

    def _hash(self, user: str, password: str, stored_key: bytes) -> bytes:
        hashed = hashlib.blake2b(key=self._key)
        for part in (user.encode(), password.encode(), stored_key):
            hashed.update(len(part).to_bytes(8, "big") + part)
        return hashed.digest()
