"""The login of one connection of a Pulsar client, as a table, and the methods by which a client shows who it is.

A connection through a door that asks for a login has a `Login`. What a command leads to:

    command          begun   open    asked
    CONNECT          login   end     end
    AUTH_RESPONSE    unread  end     login
    any other        unread  served  served

"unread" and "end" are the end of the connection; of the former nothing is decoded.

A client is asked (AUTH_CHALLENGE) before what it has shown ends, if it says in CONNECT that it understands that. It
must log in once more as the same principal by the same method.

It reads bytes before a login.
"""

from enum import Enum
from typing import Final

from exacta.config.pulsar_logins import BASIC, TLS, TOKEN
from exacta.ports.authorizer import ANONYMOUS, Principal
from exacta.protocol.pulsar.messages_pb2 import AuthData, CommandAuthChallenge
from exacta.security.audit import shown
from exacta.security.exchange import Attempt, LoggedIn, LoginRefused
from exacta.security.logins import Logins

REFRESH: Final = b"PulsarAuthRefresh"
"""The bytes by which a client knows that it is to send what it logs in with once more."""

SERVER: Final = "Exacta"
"""The name of the server that clients are told."""

SHORTEST_REST_S: Final = 1.0
"""A client is not asked once more where less time than this is left."""


class Phase(Enum):
    """The phases of a login."""

    BEGUN = "begun"
    OPEN = "open"
    ASKED = "asked"


class Login:
    """The login of one connection."""

    def __init__(self) -> None:
        self.phase = Phase.BEGUN
        self.method = ""
        self.understands_challenges = False

    def log_in(self, logins: Logins, method: str, data: bytes, certified: Principal) -> Attempt:
        """Return the first login; `certified` is the principal of the client's certificate."""
        self.method = method
        return _attempt(logins, method, data, certified)

    def log_in_once_more(self, logins: Logins, method: str, data: bytes, principal: Principal) -> Attempt:
        """Return a login of a client that has been asked, and that has logged in as this principal."""
        if method != self.method:
            raise LoginRefused(f"it repeats a login by {self.method} with {shown(method)}", principal.name)
        logged_in = yield from _attempt(logins, method, data, principal)
        if logged_in.principal != principal:
            raise LoginRefused(f"{shown(principal.name)} logs in once more as another user", logged_in.principal.name)
        return logged_in


def challenge(method: str) -> CommandAuthChallenge:
    """Return the question for a login by the same method."""
    return CommandAuthChallenge(server_version=SERVER, challenge=AuthData(auth_method_name=method, auth_data=REFRESH))


def rest_s(expires_in_s: float | None, check_s: float) -> float | None:
    """Return after how many seconds a client is asked to log in once more; None: there is no end, or no time for that.

    It is asked `check_s` before the end, or when half of the time is over: one that repeats what it has shown is asked
    a few times more.
    """
    if expires_in_s is None or expires_in_s < SHORTEST_REST_S:
        return None
    return max(expires_in_s - check_s, expires_in_s / 2)


def _attempt(logins: Logins, method: str, data: bytes, certified: Principal) -> Attempt:
    if method not in logins.methods:
        raise LoginRefused(f"the door offers {', '.join(sorted(logins.methods))}, and not {shown(method)}")
    if method == TLS:
        if certified == ANONYMOUS:
            raise LoginRefused("it has shown no certificate")
        return LoggedIn(principal=certified)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise LoginRefused("it sent something that is not text") from None
    if method == TOKEN:
        return (yield from logins.by_token(text))
    assert method == BASIC
    user, _, password = text.partition(":")
    if not user or not password:
        raise LoginRefused("it sent no name or no password")
    return (yield from logins.by_password(user, password))
