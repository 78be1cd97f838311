"""Log in over a connection: SaslHandshake, then SaslAuthenticate until both sides agree (KIP-43, KIP-152).

This module owns the order of the messages. Its caller sends them, on a connection that has negotiated its versions: the
same for a new connection and for one whose session is about to end (KIP-368).
"""

from collections.abc import Callable, Generator
from typing import Any

from exacta.client.errors import AuthenticationFailed, UnsupportedByBroker, code_name
from exacta.client.security import PLAIN, Sasl
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k17_sasl_handshake import SaslHandshakeRequest
from exacta.protocol.kafka.messages.k36_sasl_authenticate import SaslAuthenticateRequest
from exacta.protocol.kafka.schema import Message
from exacta.protocol.sasl.scram import ALGORITHMS, ScramError
from exacta.protocol.sasl.scram_client import ScramClient

MECHANISMS = (PLAIN, *ALGORITHMS)


def log_in(sasl: Sasl, address: str, call: Callable[[Message], Any]) -> int:
    """Log in through `call`, which sends a request and returns its reply; return the session's length in ms (0: any).

    Raises `AuthenticationFailed` and what `call` raises.
    """
    try:
        handshake = call(SaslHandshakeRequest(mechanism=sasl.mechanism))
    except UnsupportedByBroker as error:
        raise AuthenticationFailed(f"{address} knows no login by SASL") from error
    match handshake.error_code:
        case ErrorCode.NONE:
            pass
        case ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            offered = ", ".join(handshake.mechanisms) or "none"
            raise AuthenticationFailed(
                f"{address} does not offer option 'kafka.sasl.mechanism' {sasl.mechanism}; it offers {offered}"
            )
        case ErrorCode.ILLEGAL_SASL_STATE:
            raise AuthenticationFailed(
                f"{address} wants no login at this port: option 'kafka.security.protocol' should be PLAINTEXT or SSL, "
                "or the port another"
            )
        case code:
            raise AuthenticationFailed(f"{address} refused a login by {sasl.mechanism}: {code_name(code)}")
    exchange = _plain(sasl) if sasl.mechanism == PLAIN else _scram(sasl)
    lifetime_ms = 0
    try:
        token = next(exchange)
        while True:
            reply = call(SaslAuthenticateRequest(auth_bytes=token))
            if reply.error_code != ErrorCode.NONE:
                reason = reply.error_message or code_name(reply.error_code)
                raise AuthenticationFailed(f"{address} refused user '{sasl.username}' by {sasl.mechanism}: {reason}")
            lifetime_ms = reply.session_lifetime_ms
            token = exchange.send(reply.auth_bytes)
    except StopIteration:
        return lifetime_ms
    except ScramError as error:
        raise AuthenticationFailed(f"{address} is not trusted with the login of '{sasl.username}': {error}") from None


# A mechanism yields what is to be sent and is given what was answered.


def _plain(sasl: Sasl) -> Generator[bytes, bytes, None]:
    yield b"\0".join((b"", sasl.username.encode(), sasl.password.encode()))


def _scram(sasl: Sasl) -> Generator[bytes, bytes, None]:
    scram = ScramClient(ALGORITHMS[sasl.mechanism], sasl.username, sasl.password)
    server_first = yield scram.first()
    server_final = yield scram.final(server_first)
    scram.verify(server_final)
