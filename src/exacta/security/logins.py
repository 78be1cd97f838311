"""The logins of a server: the mechanisms that it offers, each as an exchange of messages, and who a client then is.

Theory of operation. An exchange is a generator, which knows nothing of frames. It is sent the client's messages. It
yields what to answer (`bytes`), or work for a thread (a function), whose outcome it is sent. It returns a `LoggedIn`,
or raises `LoginRefused`. Each front carries the messages in its own way.

A password is checked against the same salted keys by all mechanisms. An unknown user has keys that fit no password,
made from its name by a secret of the server. So it goes the same way as a known one, with the same salt each time.
"""

import hashlib
import hmac
from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from msgspec import Struct

from exacta.ports.authorizer import Principal
from exacta.protocol.sasl import plain
from exacta.protocol.sasl.scram import ScramError, ScramKeys, keys_from_salted, salted_password
from exacta.protocol.sasl.scram_server import ScramServer
from exacta.security.backoff import Backoff

PLAIN: Final = "PLAIN"
ALGORITHMS: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""The hash of each SCRAM mechanism."""
MECHANISMS: Final = (PLAIN, *ALGORITHMS)

USUAL_ITERATIONS: Final = 4096
"""The iterations that Kafka's tools give a new user; an unknown one seems to have them."""

KeysOf: TypeAlias = Callable[[str, str], ScramKeys | None]
"""Returns the stored keys of a user for a mechanism of `ALGORITHMS`; None: there are none."""


class LoginRefused(Exception):
    """The client is not who it says. The text is for the operator's log, and never for the client."""

    def __init__(self, reason: str, user: str = "") -> None:
        super().__init__(reason)
        self.user = user
        """The name that the client has given; empty: it has given none."""


class LoggedIn(Struct, frozen=True, kw_only=True):
    """The end of an exchange."""

    principal: Principal
    last_message: bytes = b""
    """The message that ends the exchange on the server's side."""


Exchange: TypeAlias = Generator[bytes | Callable[[], Any], Any, LoggedIn]
"""One login on its way. It begins with `next`, which yields nothing of use."""


class Logins:
    """All logins of one server."""

    def __init__(
        self,
        keys_of: KeysOf,
        secret: bytes,
        mechanisms: Sequence[str],
        backoff: Backoff,
        session_ms: int = 0,
    ) -> None:
        """`secret` makes the salts of unknown users: nobody else may know it, and it should outlive a restart.

        `session_ms` is the length of a session, after which a client logs in once more; 0: it has no end.
        """
        self.backoff = backoff
        self.session_ms = session_ms
        self.mechanisms = tuple(mechanisms)
        self._keys_of = keys_of
        self._secret = secret

    def begin(self, mechanism: str) -> Exchange | None:
        """Return the exchange of a mechanism, which awaits the client's first message; None: it is not offered."""
        if mechanism not in self.mechanisms:
            return None
        exchange = self._plain() if mechanism == PLAIN else self._scram(mechanism)
        next(exchange)
        return exchange

    def _scram(self, mechanism: str) -> Exchange:
        server = ScramServer(ALGORITHMS[mechanism], partial(self._keys, mechanism))
        try:
            challenge = server.first((yield b""))
            last_message = server.final((yield challenge))
        except ScramError as error:
            raise LoginRefused(str(error), server.user) from None
        return LoggedIn(principal=Principal(name=server.user), last_message=last_message)

    def _plain(self) -> Exchange:
        try:
            user, password = plain.parse((yield b""))
        except plain.PlainError as error:
            raise LoginRefused(str(error)) from None
        mechanism = next((each for each in ALGORITHMS if self._keys_of(user, each)), next(iter(ALGORITHMS)))
        keys, algorithm = self._keys(mechanism, user), ALGORITHMS[mechanism]
        salted = yield partial(salted_password, algorithm, password, keys.salt, keys.iterations)
        if isinstance(salted, Exception):
            raise salted
        found = keys_from_salted(algorithm, salted, keys.salt, keys.iterations)
        if not hmac.compare_digest(found.stored_key, keys.stored_key):
            raise LoginRefused("its password is wrong, or there is no such user", user)
        return LoggedIn(principal=Principal(name=user))

    def _keys(self, mechanism: str, user: str) -> ScramKeys:
        """Return a user's keys, made up where there are none: the same steps, whether they are used or not."""
        algorithm = ALGORITHMS[mechanism]
        size = hashlib.new(algorithm).digest_size
        made_up = [
            hmac.digest(self._secret, f"{use} {mechanism} {user}".encode(), "sha512")[:size]
            for use in ("salt", "stored", "server")
        ]
        return self._keys_of(user, mechanism) or ScramKeys(made_up[0], USUAL_ITERATIONS, made_up[1], made_up[2])
