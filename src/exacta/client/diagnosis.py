"""Find out why a broker hung up on a fresh connection, by asking the port what it speaks.

A broker that is met in the wrong protocol only closes the connection, exactly like one that is being stopped. The
difference matters: the first is to be said at once, the second to be waited for. So the port is asked once more, in the
other protocol; only a clear answer counts, and everything else means that the broker is away.

Nothing secret is sent: no name and no password, and our certificate only as in every handshake.
"""

import contextlib
import socket
import ssl
from collections.abc import Iterator
from typing import Any

from exacta.client import tls
from exacta.client.errors import AuthenticationFailed, SecurityFailed, TlsFailed
from exacta.client.security import Security, Tls
from exacta.protocol.kafka import codec
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataResponse
from exacta.protocol.kafka.messages.k17_sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from exacta.protocol.kafka.messages.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from exacta.protocol.kafka.schema import Message

_PATIENCE_S = 2.0
_LARGEST_ANSWER_BYTES = 1024 * 1024
_CLIENT_ID = "exacta-spark"
_UNCLEAR = (codec.DecodeError, ConnectionError, ssl.SSLError, TlsFailed)
"""The mark of an answer that is none."""
_METADATA_VERSION = 4  # every broker that we speak to knows it


def why_closed(host: str, port: int, security: Security) -> SecurityFailed | None:
    """Return what is wrong with `security` at this port, or None where the broker may just be away."""
    address = f"{host}:{port}"
    try:
        if security.tls is None:
            if _speaks_tls(host, port):
                return TlsFailed(
                    f"{address} speaks TLS: option 'kafka.security.protocol' should be SSL or SASL_SSL, not "
                    f"{security.protocol}"
                )
        else:
            if _speaks_plain(host, port):
                return TlsFailed(
                    f"{address} does not speak TLS: option 'kafka.security.protocol' should be PLAINTEXT or "
                    f"SASL_PLAINTEXT, not {security.protocol}"
                )
        if security.sasl is None and (mechanisms := _wants_login(host, port, security)):
            protocol = "SASL_PLAINTEXT" if security.tls is None else "SASL_SSL"
            return AuthenticationFailed(
                f"{address} wants a login ({', '.join(mechanisms)}): option 'kafka.security.protocol' should be "
                f"{protocol}, not {security.protocol}"
            )
        return None if security.tls is None else _alert(host, port, security.tls)
    except OSError:
        return None


def _speaks_tls(host: str, port: int) -> bool:
    """Tell whether the port answers the first message of TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with _open(host, port) as plain, context.wrap_socket(plain, server_hostname=host):
            return True
    except ssl.SSLError as error:
        # An alert is TLS too: no version or cipher in common, or a client certificate that is missing.
        return "ALERT" in (error.reason or "")
    except (ConnectionError, TimeoutError):
        return False


def _speaks_plain(host: str, port: int) -> bool:
    """Tell whether the port answers a request for version ranges without TLS."""
    with contextlib.suppress(codec.DecodeError, ConnectionError, TimeoutError), _open(host, port) as plain:
        return bool(_ask(plain, ApiVersionsRequest(), 0, ApiVersionsResponse).api_keys)
    return False


def _alert(host: str, port: int, configured: Tls) -> TlsFailed | None:
    """Wait for an alert after the handshake: what we send next can overtake, and so destroy, it (TLS 1.3)."""
    with _open(host, port) as plain:
        try:
            with tls.wrap(plain, configured, host, port) as stream:
                stream.recv(1)
        except ssl.SSLError as error:
            return tls.explain(error, configured, f"{host}:{port}")
        except TlsFailed as refusal:
            return refusal
        return None


def _wants_login(host: str, port: int, security: Security) -> list[str]:
    """Return the mechanisms of a port that hangs up on requests without a login, none of any other."""
    with contextlib.suppress(*_UNCLEAR), _secured(host, port, security) as stream:
        # Some brokers answer the handshake also where they want no login; then they answer this too.
        _ask(stream, MetadataRequest(topics=[]), _METADATA_VERSION, MetadataResponse)
        return []
    with contextlib.suppress(*_UNCLEAR), _secured(host, port, security) as stream:
        answer = _ask(stream, SaslHandshakeRequest(mechanism="?"), 1, SaslHandshakeResponse)
        # A port without login says ILLEGAL_SASL_STATE.
        if answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            return list(answer.mechanisms)
    return []


@contextlib.contextmanager
def _secured(host: str, port: int, security: Security) -> Iterator[socket.socket]:
    with contextlib.ExitStack() as stack:
        stream = stack.enter_context(_open(host, port))
        if security.tls is not None:
            stream = stack.enter_context(tls.wrap(stream, security.tls, host, port))
        yield stream


def _open(host: str, port: int) -> socket.socket:
    return socket.create_connection((host, port), timeout=_PATIENCE_S)


def _ask(stream: socket.socket, request: Message, version: int, response_type: type[Any]) -> Any:
    stream.sendall(b"".join(codec.encode_request(request, version, 1, _CLIENT_ID)))
    size = int.from_bytes(_read(stream, 4), "big", signed=True)
    if not 4 <= size <= _LARGEST_ANSWER_BYTES:
        raise ConnectionError("no answer in Kafka's protocol")
    _, response = codec.decode_response(response_type, version, memoryview(_read(stream, size)))
    return response


def _read(stream: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        part = stream.recv(count - len(found))
        if not part:
            raise ConnectionError("closed")
        found += part
    return found
