"""The logins of a server: the mechanisms that it offers, and how long a session of a client lasts.

A password is checked against the same salted keys by all mechanisms. An unknown user has keys that fit no password,
made from its name by a secret of the server. So it goes the same way as a known one, with the same salt each time. Its
iterations and the length of its salt are those of users that `exacta users add` makes.

It reads bytes before a login.
"""

import hashlib
import hmac
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

from exacta.ports.authorizer import Principal
from exacta.protocol.sasl import plain
from exacta.protocol.sasl.scram import (
    ALGORITHMS,
    USUAL_ITERATIONS,
    USUAL_SALT_BYTES,
    ScramError,
    ScramKeys,
    keys_from_salted,
    salted_password,
)
from exacta.protocol.sasl.scram_server import ScramServer
from exacta.security.backoff import LoginBackoff
from exacta.security.exchange import Attempt, Exchange, LoggedIn, LoginRefused
from exacta.security.first_user import FIRST_USER, FirstUserToken
from exacta.security.remembered import RememberedPasswords

PLAIN: Final = "PLAIN"
OAUTHBEARER: Final = "OAUTHBEARER"
USUAL_MECHANISM: Final = "SCRAM-SHA-512"
"""The mechanism of users that `exacta users add` makes; an unknown one seems to be made so, too."""
MECHANISMS: Final = (*ALGORITHMS, PLAIN, OAUTHBEARER)

LONGEST_SESSION_MS: Final = 100 * 365 * 86_400_000
"""A token may hold for longer; Java clients count nanoseconds, and have room for 292 years."""

KeysOf: TypeAlias = Callable[[str, str], ScramKeys | None]
"""Returns the stored keys of a user for a mechanism of `ALGORITHMS`; None: there are none."""


class Logins:
    """All logins of one server."""

    def __init__(
        self,
        mechanisms: Sequence[str],
        backoff: LoginBackoff,
        *,
        keys_of: KeysOf,
        secret: bytes,
        session_ms: int = 0,
        wall_ms: Callable[[], int],
        bearer: Callable[[], Exchange] | None = None,
        methods: frozenset[str] = frozenset(),
        prove: Callable[[str], LoggedIn] | None = None,
        clock: Callable[[], float] = time.monotonic,
        first_user: FirstUserToken | None = None,
    ) -> None:
        """`secret` makes the keys of unknown users: nobody else may know it, and it should outlive a restart.

        `session_ms` is the length of a session, after which a client logs in once more; 0: it has no end. What the
        client has shown may end it earlier, by `wall_ms`, the time since 1970. `bearer` begins a login by a token.

        `methods` are those by which clients log in without SASL, and `prove` takes their tokens; it raises
        `LoginRefused`. `clock` gives seconds from any moment on. `first_user` is the token that makes the first user.
        """
        begin: Mapping[str, Callable[[], Exchange]] = {
            PLAIN: self._plain,
            **{each: partial(self._scram, each) for each in ALGORITHMS},
            **({} if bearer is None else {OAUTHBEARER: bearer}),
        }
        self.backoff = backoff
        self.first_user = first_user
        self.methods = methods
        """The methods without SASL, by Pulsar's names (`exacta.config.pulsar_logins`)."""
        self._prove = prove
        self._remembered = RememberedPasswords(clock)
        self._begin = {each: begin[each] for each in mechanisms}
        self._keys_of = keys_of
        self._secret = secret
        self._session_ms = session_ms
        self._wall_ms = wall_ms

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The mechanisms that are offered, in the operator's order."""
        return tuple(self._begin)

    def begin(self, mechanism: str) -> Exchange | None:
        """Return the exchange of a mechanism, which awaits the client's first message; None: it is not offered."""
        if mechanism not in self._begin:
            return None
        exchange = self._begin[mechanism]()
        next(exchange)
        return exchange

    def session_ms(self, logged_in: LoggedIn) -> int | None:
        """Return how long a session lasts from now on, before it must be begun once more; None: it has no end."""
        ends = (self.expires_in_ms(logged_in), self._session_ms or None)
        return min((each for each in ends if each is not None), default=None)

    def expires_in_ms(self, logged_in: LoggedIn) -> int | None:
        """Return for how long what a client has shown holds; None: it has no end."""
        if logged_in.expires_ms is None:
            return None
        return min(max(0, logged_in.expires_ms - self._wall_ms()), LONGEST_SESSION_MS)

    def _scram(self, mechanism: str) -> Exchange:
        server = ScramServer(ALGORITHMS[mechanism], partial(self._keys, mechanism))
        try:
            challenge = server.first((yield b""))
            last_message = server.final((yield challenge))
        except ScramError as error:
            raise LoginRefused(str(error), server.user) from None
        return self._logged_in(server.user, mechanism, server.keys, last_message)

    def _plain(self) -> Exchange:
        try:
            user, password = plain.parse((yield b""))
        except plain.PlainError as error:
            raise LoginRefused(str(error)) from None
        return (yield from self._by_password(user, password))

    def by_password(self, user: str, password: str) -> Attempt:
        """Return one login without SASL by a name and a password, which derives keys on a thread."""
        if user == FIRST_USER.name:
            raise LoginRefused("users are made by Kafka clients", user)
        return (yield from self._by_password(user, password))

    def _by_password(self, user: str, password: str) -> Attempt:
        mechanism = next((each for each in ALGORITHMS if self._known(user, each)), USUAL_MECHANISM)
        keys, algorithm = self._keys(mechanism, user), ALGORITHMS[mechanism]
        if self._remembered.knows(user, password, keys.stored_key):
            return self._logged_in(user, mechanism, keys)
        salted = yield partial(salted_password, algorithm, password, keys.salt, keys.iterations)
        if isinstance(salted, Exception):
            raise salted
        found = keys_from_salted(algorithm, salted, keys.salt, keys.iterations)
        if not hmac.compare_digest(found.stored_key, keys.stored_key):
            raise LoginRefused("its password is wrong, or there is no such user", user)
        self._remembered.remember(user, password, keys.stored_key)
        return self._logged_in(user, mechanism, keys)

    def _logged_in(self, user: str, mechanism: str, keys: ScramKeys, last_message: bytes = b"") -> LoggedIn:
        """Return a login that holds as long as the user has these keys, which may have changed on its way."""

        if user == FIRST_USER.name:  # whether it is still the first, the core decides; the answer to it must get out
            return LoggedIn(principal=FIRST_USER, last_message=last_message)

        def holds() -> bool:
            return self._keys_of(user, mechanism) == keys

        if not holds():
            raise LoginRefused("its password was changed meanwhile, or the user was removed", user)
        return LoggedIn(principal=Principal(name=user), holds=holds, last_message=last_message)

    def by_token(self, token: str) -> Attempt:
        """Return one login by a token that is checked by `tokenSecretKey` or `tokenPublicKey`."""
        yield from ()
        if self._prove is None:
            raise LoginRefused("tokens are not offered")
        return self._prove(token)

    def _keys(self, mechanism: str, user: str) -> ScramKeys:
        """Return a user's keys, made up where there are none: the same steps, whether they are used or not."""
        size = hashlib.new(ALGORITHMS[mechanism]).digest_size
        salt, stored_key, server_key = (
            hmac.digest(self._secret, f"{use} {mechanism} {user}".encode(), "sha512")[:size]
            for use in ("salt", "stored", "server")
        )
        made_up = ScramKeys(salt[:USUAL_SALT_BYTES], USUAL_ITERATIONS, stored_key, server_key)
        return self._known(user, mechanism) or made_up

    def _known(self, user: str, mechanism: str) -> ScramKeys | None:
        if user == FIRST_USER.name:
            return None if self.first_user is None else self.first_user.keys(mechanism)
        return self._keys_of(user, mechanism)
