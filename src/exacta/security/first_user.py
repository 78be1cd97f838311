"""The token by which somebody makes the first user, of a server that nobody could log in to otherwise.

It is a password, of a name that no user has: so every Kafka client that can log in by SCRAM or PLAIN and alter users
can use it. It stands in a file in the data directory, and holds for one start. What decides is the log, and not the
file: the token holds while there is no user, and the core makes the first one while there is none
(`exacta.core.access.first_user`). Who logs in by it may do nothing else.
"""

import logging
import secrets
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

from exacta.ports.authorizer import Principal
from exacta.protocol.sasl.scram import (
    ALGORITHMS,
    USUAL_ITERATIONS,
    USUAL_SALT_BYTES,
    ScramKeys,
    keys_from_salted,
    salted_password,
)

logger = logging.getLogger("exacta.server")

FIRST_USER: Final = Principal(kind="FirstUser", name="first-user")
"""The principal of who shows the token. Its name is the user's of the login; no access rule can name it by accident."""


def principal_of(user: str) -> Principal:
    """Return the principal of who has logged in by this name."""
    return FIRST_USER if user == FIRST_USER.name else Principal(name=user)


class FirstUserToken:
    """The token of one start, in a file that is there while the token holds."""

    def __init__(self, file: Path, has_users: Callable[[], bool], text: str | None = None) -> None:
        """`text` is the token, a fresh one by default: the brokers of a cluster have the same one."""
        self.file = file
        self.text = secrets.token_urlsafe(32) if text is None else text
        self._has_users = has_users
        self._is_used = False
        self._keys = cache(self._derived)

    def __repr__(self) -> str:
        """Show no secret."""
        return f"FirstUserToken({self.file})"

    def keys(self, mechanism: str) -> ScramKeys | None:
        """Return the keys of the token for a mechanism of SCRAM; None: it holds no more."""
        return None if self._is_used or self._has_users() else self._keys(mechanism)

    def use(self) -> None:
        """Let it hold no more: the first user is durable. A file that stays says nothing: the next start removes it."""
        self._is_used = True
        try:
            self.file.unlink(missing_ok=True)
        except OSError as error:
            logger.warning("%s holds no more, and cannot be removed: %s", self.file, error.strerror)

    def _derived(self, mechanism: str) -> ScramKeys:
        algorithm, salt = ALGORITHMS[mechanism], secrets.token_bytes(USUAL_SALT_BYTES)
        salted = salted_password(algorithm, self.text, salt, USUAL_ITERATIONS)
        return keys_from_salted(algorithm, salted, salt, USUAL_ITERATIONS)
