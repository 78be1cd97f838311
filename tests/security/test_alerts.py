"""A refused certificate is told to the client by TLS's alert, and to the one who began the handshake; by each loop."""

import asyncio
import socket
import ssl
from collections.abc import Callable

import pytest
import trustme
import uvloop

from exacta.security.alerts import ServerContext, telling

SECONDS = 10


def server_context(authority: trustme.CA) -> ssl.SSLContext:
    context = ServerContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def client_context(authority: trustme.CA, shown_by: trustme.CA | None, version: ssl.TLSVersion) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.maximum_version = version
    authority.configure_trust(context)
    if shown_by is not None:
        shown_by.issue_cert("client.invalid").configure_cert(context)
    return context


@pytest.mark.parametrize("new_loop", [uvloop.new_event_loop, asyncio.new_event_loop])
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize(
    ("is_strange", "alert", "reason"),
    [
        (False, "HANDSHAKE_FAILURE|CERTIFICATE_REQUIRED", "PEER_DID_NOT_RETURN_A_CERTIFICATE"),
        (True, "UNKNOWN_CA", "CERTIFICATE_VERIFY_FAILED"),
    ],
)
def test_a_refusal_reaches_the_client_and_the_server(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
    version: ssl.TLSVersion,
    is_strange: bool,
    alert: str,
    reason: str,
) -> None:
    ours, strange = trustme.CA(), trustme.CA()
    told: list[ssl.SSLError] = []

    def shake_hands(end: socket.socket) -> None:
        with (
            end,
            client_context(ours, strange if is_strange else None, version).wrap_socket(
                end, server_hostname="localhost"
            ) as stream,
        ):
            stream.recv(1)

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        here, there = socket.socketpair()
        there.settimeout(SECONDS)
        client = loop.run_in_executor(None, shake_hands, there)

        def tell(error: ssl.SSLError) -> None:
            told.append(error)
            loop.call_later(0.01, here.shutdown, socket.SHUT_WR)

        with telling(tell), pytest.raises((ConnectionError, ssl.SSLError)):
            await loop.connect_accepted_socket(asyncio.Protocol, here, ssl=server_context(ours))
        with pytest.raises(ssl.SSLError, match=alert):
            await client

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(serve())
    assert [each.reason for each in told] == [reason]


def test_another_failure_ends_the_handshake_at_once() -> None:
    told: list[ssl.SSLError] = []

    async def serve() -> None:
        here, there = socket.socketpair()
        with there, telling(told.append):
            there.send(b"GET / HTTP/1.1\r\n\r\n")
            with pytest.raises(ssl.SSLError, match="HTTP_REQUEST"):
                await asyncio.get_running_loop().connect_accepted_socket(
                    asyncio.Protocol, here, ssl=server_context(trustme.CA())
                )

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve())
    assert told == []
