"""SaslAuthenticate carries the messages of a login (KIP-152), and tells the length of the session (KIP-368).

It reads bytes before a login.
"""

from exacta.front.broker import Broker
from exacta.front.logging_in import Attempted, let_in, refused_late
from exacta.front.turns import Steps
from exacta.kafka.at_follower import SERVES
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.login import Login, Phase
from exacta.kafka.needs import OPEN_TO_ALL
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k36_sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from exacta.security.logins import Logins


def handle(broker: Broker, request: SaslAuthenticateRequest, context: RequestContext, reply: Reply) -> None:
    """Take the exchange one message further. No other request of the connection begins meanwhile."""
    login, logins = context.connection.login, broker.logins
    if login is None or logins is None or login.phase is not Phase.EXCHANGE:
        message = "SaslAuthenticate belongs to a login, and none has begun"
        reply(SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=message))
        return
    context.in_steps(_proceed(broker, login, logins, bytes(request.auth_bytes), context, reply))


def _proceed(
    broker: Broker, login: Login, logins: Logins, message: bytes, context: RequestContext, reply: Reply
) -> Steps:
    connection = context.connection
    attempted = Attempted(
        mechanism=login.mechanism,
        peer=connection.peer,
        peer_host=connection.peer_host,
        door=connection.door.name,
    )
    answer = yield from refused_late(broker, attempted, login.proceed(message))
    if answer is None:
        reply(_refusal(login.mechanism))
        connection.close()
        return
    if isinstance(answer, bytes):
        reply(SaslAuthenticateResponse(auth_bytes=answer))
        return
    expires_in_ms, session_ms = logins.expires_in_ms(answer), logins.session_ms(answer)
    login.open(answer, None if session_ms is None else connection.now_s() + session_ms / 1000)
    connection.let_in(answer, None if expires_in_ms is None else expires_in_ms / 1000)
    let_in(attempted, answer.principal)
    reply(SaslAuthenticateResponse(auth_bytes=answer.last_message, session_lifetime_ms=session_ms or 0))


def _refusal(mechanism: str) -> SaslAuthenticateResponse:
    """Return the same answer to a wrong password and to an unknown user."""
    return SaslAuthenticateResponse(
        error_code=ErrorCode.SASL_AUTHENTICATION_FAILED,
        error_message=f"Authentication failed: invalid credentials with SASL mechanism {mechanism}",
    )


HANDLER = Handler(ApiKey.SASL_AUTHENTICATE, versions=(0, 2), needs=OPEN_TO_ALL, at_follower=SERVES, handle=handle)
