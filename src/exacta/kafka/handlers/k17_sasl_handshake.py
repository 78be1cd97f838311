"""SaslHandshake begins a login, or repeats one before the session's end (KIP-43, KIP-368).

After version 0 the client's messages come as bare tokens, after version 1 in SaslAuthenticate.

It reads bytes before a login.
"""

from exacta.front.broker import Broker
from exacta.kafka.at_follower import SERVES
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import OPEN_TO_ALL
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k17_sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from exacta.security import audit

TOKENS_UNTIL = 0


def handle(broker: Broker, request: SaslHandshakeRequest, context: RequestContext, reply: Reply) -> None:
    """Begin the exchange of a mechanism that is offered; end the connection of a client that wants another one."""
    connection, logins = context.connection, broker.logins
    login, now_s = connection.login, connection.now_s()
    if login is None or logins is None or not login.may_begin(now_s):
        reply(SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE))
        return
    offered = connection.door.options.get("sasl_enabled_mechanisms")
    mechanisms = list(logins.mechanisms) if offered is None else [each.strip() for each in str(offered).split(",")]
    exchange = logins.begin(request.mechanism) if request.mechanism in mechanisms else None
    if exchange is None:
        login.refuse()
        reason = f"the door offers {', '.join(mechanisms)}"
        audit.login_refused("", audit.shown(request.mechanism), connection.peer, connection.door.name, reason)
        reply(SaslHandshakeResponse(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=mechanisms))
        connection.close()
        return
    takes_tokens = context.version <= TOKENS_UNTIL
    login.begin(request.mechanism, exchange, now_s, takes_tokens=takes_tokens)
    if takes_tokens:
        connection.expect_token()
    reply(SaslHandshakeResponse(mechanisms=mechanisms))


HANDLER = Handler(ApiKey.SASL_HANDSHAKE, versions=(0, 1), needs=OPEN_TO_ALL, at_follower=SERVES, handle=handle)
