"""The login of HTTP requests: each shows a password or a token, or came by a certificate (RFC 9110, 7617, 6750).

At a door that asks for a login:

    a request shows                             is served
    no `Authorization`, by a certificate *      as the certificate's principal
    no `Authorization`                          not, with 401; live and ready: as ANONYMOUS
    `Basic` with a user's password              as the user
    `Bearer` with a token that is taken         as the token's user
    anything else                               not, with 401
    more than one `Authorization`               not, with 400

* Where `authenticationProviders` has TLS's.

What shows a login that fails is refused whatever it asks for, after the wait of `security/backoff.py`, which failures
at all doors make longer. A password is derived on a thread, once a minute; a token is checked each time. So neither
holds from the next request on where the user is changed, or the token has ended. The audit log has a line for the first
request of a connection on behalf of a user, and for each refusal.

At a door that asks for none, `Authorization` is not looked at: a client that sends one to all doors comes in as
ANONYMOUS there, as by Kafka's and Pulsar's protocols.

It reads bytes before a login.
"""

import asyncio
import base64
import binascii
import sys
from collections.abc import Generator
from typing import Any, Final

from starlette.types import ASGIApp, Receive, Scope, Send

from exacta.config.pulsar_logins import BASIC, TLS, TOKEN
from exacta.front.broker import Broker
from exacta.front.logging_in import Attempted, let_in, refused_late
from exacta.front.turns import Until
from exacta.ports.authorizer import ANONYMOUS
from exacta.security.exchange import Attempt, LoggedIn, LoginRefused
from exacta.security.logins import Logins
from exacta.web.access import ServerRights
from exacta.web.answers import json_answer
from exacta.web.requests import CALLER, PRINCIPAL, Caller

ANSWER_ALL: Final = frozenset({"/health/live", "/health/ready"})
"""The paths that answer clients that show nothing."""
CHALLENGES: Final = {BASIC: b'Basic realm="exacta", charset="UTF-8"', TOKEN: b'Bearer realm="exacta"'}
_METHODS: Final = {"basic": BASIC, "bearer": TOKEN}
"""The schemes of `Authorization` in lower case, and what Pulsar calls them."""


class LoginGuard:
    """An ASGI application before another one, which serves requests on behalf of who has logged in."""

    def __init__(self, application: ASGIApp, access: ServerRights) -> None:
        self._application = application
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or refuse it."""
        caller: Caller = scope["state"][CALLER]
        if not caller.door.login:
            await self._application(scope, receive, send)
            return
        shown = [value for name, value in scope["headers"] if name == b"authorization"]
        if not shown and scope["path"] in ANSWER_ALL:
            await self._application(scope, receive, send)
            return
        broker = self._access.broker
        if broker is None:
            await json_answer(503, {"reason": "the broker recovers, and nobody can log in yet"})(scope, receive, send)
            return
        assert broker.logins is not None
        if len(shown) > 1:
            await json_answer(400, {"reason": "a request shows one login"})(scope, receive, send)
        elif await self._logs_in(broker, broker.logins, caller, scope, shown):
            await self._application(scope, receive, send)
        else:
            await _refused(broker.logins)(scope, receive, send)

    async def _logs_in(self, broker: Broker, logins: Logins, caller: Caller, scope: Scope, shown: list[bytes]) -> bool:
        """Return whether a request is served, on behalf of the principal that its state has then."""
        if not shown:
            return TLS in logins.methods and scope["state"][PRINCIPAL] is not ANONYMOUS
        method, attempt = attempt_of(logins, shown[0])
        attempted = Attempted(mechanism=method, peer=caller.peer, peer_host=caller.peer_host, door=caller.door.name)
        caller.logins_begun += 1
        try:
            logged_in = await _taken(broker, attempted, attempt)
        finally:
            caller.logins_begun -= 1
        if logged_in is None:
            return False
        scope["state"][PRINCIPAL] = logged_in.principal
        if caller.told != (logged_in.principal, method):
            caller.told = logged_in.principal, method
            let_in(attempted, logged_in.principal)
        return True


def attempt_of(logins: Logins, shown: bytes) -> tuple[str, Attempt]:
    """Return the method of a login, as the audit log names it, and the login."""
    scheme, _, rest = shown.decode("latin-1").strip(" \t").partition(" ")
    method = _METHODS.get(scheme.lower())
    if method is None or method not in logins.methods:
        return "HTTP", _fails("its scheme of Authorization is not offered")
    if method == TOKEN:
        return method, logins.by_token(rest.strip(" "))
    try:
        user, colon, password = base64.b64decode(rest.strip(" "), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return method, _fails("it is no Basic in UTF-8")
    if not colon or not user or not (user + password).isprintable():  # RFC 7617 has no control characters
        return method, _fails("it is no name and password", user)
    return method, logins.by_password(user, password)


def _fails(reason: str, user: str = "") -> Attempt:
    yield from ()
    raise LoginRefused(reason, user)


async def _taken(broker: Broker, attempted: Attempted, attempt: Attempt) -> LoggedIn | None:
    """Take the steps of a login, in turns with all other clients; None: it is refused, and the client has waited."""
    found: asyncio.Future[LoggedIn | None] = asyncio.get_running_loop().create_future()

    def steps() -> Generator[Any | Until, Any, None]:
        outcome = yield from refused_late(broker, attempted, attempt)
        if not found.done():
            found.set_result(outcome)

    def failed() -> None:
        error = sys.exc_info()[1]
        if not found.done() and error is not None:
            found.set_exception(error)

    broker.memory.turns.take(
        steps(),
        owner=attempted.peer_host,
        is_wanted=lambda: not found.cancelled(),
        failed=failed,
        ended=lambda: None,
        what=lambda: f"a login by HTTP from {attempted.peer}",
    )
    return await found


def _refused(logins: Logins) -> ASGIApp:
    answer = json_answer(401, {"reason": "log in: this server serves no one else"})
    for method, challenge in CHALLENGES.items():
        if method in logins.methods:
            answer.raw_headers.append((b"www-authenticate", challenge))
    return answer
