"""A login as it is carried out for a command: its steps, its line in the audit log, and how it is refused."""

from collections.abc import Callable, Generator
from typing import Any, Final

from exacta.front.broker import Broker
from exacta.front.logging_in import Attempted, let_in, refused_late
from exacta.front.turns import Until
from exacta.protocol.pulsar.commands import NO_REQUEST
from exacta.protocol.pulsar.messages_pb2 import CommandError, ServerError
from exacta.pulsar.context import PulsarRequest
from exacta.security import audit
from exacta.security.exchange import Attempt

REFUSED: Final = "Failed to authenticate"
"""The words for every refusal, as Apache Pulsar's: nobody learns which users there are."""


def carried_out(
    broker: Broker, request: PulsarRequest, method: str, attempt: Attempt
) -> Generator[Callable[[], Any] | Until, Any, bool]:
    """Take the steps of a login, and let the client in; else refuse it, end its connection and return False."""
    connection, logins = request.connection, broker.logins
    assert logins is not None
    attempted = Attempted(
        mechanism=audit.shown(method), peer=connection.peer, peer_host=connection.peer_host, door=connection.door.name
    )
    logged_in = yield from refused_late(broker, attempted, attempt)
    if logged_in is None:
        _end(request)
        return False
    expires_in_ms = logins.expires_in_ms(logged_in)
    connection.let_in(logged_in, None if expires_in_ms is None else expires_in_ms / 1000)
    let_in(attempted, logged_in.principal)
    return True


def refuse(request: PulsarRequest, method: str, reason: str) -> None:
    """Refuse a client at once, for what it has sent beside a login."""
    connection = request.connection
    audit.login_refused("", audit.shown(method), connection.peer, connection.door.name, reason)
    _end(request)


def _end(request: PulsarRequest) -> None:
    request.reply(CommandError(request_id=NO_REQUEST, error=ServerError.AuthenticationError, message=REFUSED))
    request.connection.close()
