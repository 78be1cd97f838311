"""The login of one connection, as a table: which requests a client may send now, and what each of them leads to.

A connection through a door that asks for a login has a `Login`, and hands it the API of each request before anything
else is read of it. Before the login that is ApiVersions, SaslHandshake and SaslAuthenticate (KIP-43, KIP-152), in the
order of `MAY_SEND`; all other requests end the connection unread. A client of SaslHandshake v0 sends bare tokens after
it, which are no requests.

A session that has a length is begun once more on the same connection, by the same principal with the same mechanism
(KIP-368). After its end no request is served. Who logs in by the token of the first user may make that user, and
nothing else.

It reads bytes before a login.
"""

from collections.abc import Callable, Generator
from enum import Enum
from typing import Any, Final

from exacta.ports.authorizer import Principal
from exacta.protocol.kafka.apis import ApiKey
from exacta.security.exchange import Exchange, LoggedIn, LoginRefused
from exacta.security.first_user import FIRST_USER

SHORTEST_SESSION_S: Final = 1.0
"""No client may log in once more within this time, as with Apache Kafka."""


class Phase(Enum):
    """The phases of a login."""

    BEGUN = "begun"
    VERSIONS_TOLD = "versions told"
    EXCHANGE = "exchange"
    OPEN = "open"
    FIRST_USER = "first user"
    REFUSED = "refused"


MAY_SEND: Final = {
    Phase.BEGUN: frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE}),
    Phase.VERSIONS_TOLD: frozenset({ApiKey.SASL_HANDSHAKE}),
    Phase.EXCHANGE: frozenset({ApiKey.SASL_AUTHENTICATE}),
    Phase.OPEN: frozenset(ApiKey),
    Phase.FIRST_USER: frozenset(
        {
            ApiKey.API_VERSIONS,
            ApiKey.METADATA,
            ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
            ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        }
    ),
    Phase.REFUSED: frozenset[ApiKey](),
}
"""The APIs that a client may ask in each phase. Any other one ends the connection."""


class Login:
    """The login of one connection. Times are seconds by the clock of the event loop."""

    def __init__(self) -> None:
        self.phase = Phase.BEGUN
        self.mechanism = ""
        self.principal: Principal | None = None
        """The client that has logged in; None: nobody yet. A login that is repeated must end with the same one."""
        self.takes_tokens = False
        """True: what comes next is a bare token, after SaslHandshake v0."""
        self.exchange: Exchange | None = None
        self._asked_for = ""
        self._session_ends_s: float | None = None
        self._last_begun_s = 0.0

    def refusal(self, api_key: int, now_s: float) -> str | None:
        """Return why a request ends the connection; None: it is served, or answered with ILLEGAL_SASL_STATE."""
        if self.phase is Phase.OPEN:
            ends_s = self._session_ends_s
            if ends_s is None or now_s < ends_s or (api_key == ApiKey.SASL_HANDSHAKE and self.may_repeat(now_s)):
                return None
            return "its session has ended, and it has not logged in once more"
        if api_key in MAY_SEND[self.phase]:
            return None
        if self.phase is Phase.FIRST_USER:
            return f"it sent a request of API {api_key}, and may make the first user only"
        return f"it sent a request of API {api_key} where it has to log in"

    def may_repeat(self, now_s: float) -> bool:
        """Return whether an open session may be begun once more: one without an end need not be."""
        return self._session_ends_s is not None and now_s - self._last_begun_s >= SHORTEST_SESSION_S

    def may_begin(self, now_s: float) -> bool:
        """Return whether a handshake begins an exchange; else it is answered with ILLEGAL_SASL_STATE."""
        return self.phase in (Phase.BEGUN, Phase.VERSIONS_TOLD) or (self.phase is Phase.OPEN and self.may_repeat(now_s))

    def versions_told(self) -> None:
        """Note that ApiVersions has been answered."""
        if self.phase is Phase.BEGUN:
            self.phase = Phase.VERSIONS_TOLD

    def begin(self, mechanism: str, exchange: Exchange, now_s: float, *, takes_tokens: bool) -> None:
        """Begin an exchange; the next message of the client is the mechanism's first."""
        self.phase = Phase.EXCHANGE
        self.exchange, self._asked_for = exchange, mechanism
        self.takes_tokens = takes_tokens
        self._last_begun_s = now_s
        self.mechanism = self.mechanism or mechanism

    def proceed(self, message: bytes) -> Generator[Callable[[], Any], Any, bytes | LoggedIn]:
        """Take the exchange one message further: yield work for a thread, and return the answer, or the end.

        Raises `LoginRefused`; then, and after any other exception, nothing more is read.
        """
        exchange, self.exchange = self.exchange, None
        assert exchange is not None
        try:
            if self._asked_for != self.mechanism:
                raise LoginRefused(f"it repeats a login by {self.mechanism} with {self._asked_for}")
            answer = exchange.send(message)
            while not isinstance(answer, bytes):
                answer = exchange.send((yield answer))
            self.exchange = exchange
            return answer
        except StopIteration as end:
            logged_in: LoggedIn = end.value
            if self.principal not in (None, logged_in.principal):
                self.refuse()
                raise LoginRefused("it logs in once more as another user", logged_in.principal.name) from None
            return logged_in
        except BaseException:
            self.refuse()
            raise

    def open(self, logged_in: LoggedIn, session_ends_s: float | None) -> None:
        """Note that the client is who it says; None: its session has no end."""
        self.phase = Phase.FIRST_USER if logged_in.principal is FIRST_USER else Phase.OPEN
        self.exchange = None
        self.takes_tokens = False
        self.principal = logged_in.principal
        self._session_ends_s = session_ends_s

    def refuse(self) -> None:
        """Note that the login has failed: nothing more is read."""
        self.phase = Phase.REFUSED
        self.exchange = None
