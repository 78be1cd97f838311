"""The guard at the door of the web front: who may ask, before anything else of a request is looked at.

HTTP has no login but a certificate, and a port on the loopback address needs none, so that every client that reaches it
may ask. A browser reaches this address of its machine for every page that it shows. Therefore:

    what a request says                                         is answered
    `Content-Length` beside `Transfer-Encoding`                 400
    more than 16 KiB of headers                                 431
    no `Host`, or another one than this server's                403 *
    an `Origin` that is not this server itself                  403 **
    `Sec-Fetch-Site` that is not `same-origin` or `none`        403 ***

* The name of a page was made to lead here (DNS rebinding). ** Another site's page has sent it. *** The same: a browser
sends no `Origin` for an image.

This server is called `localhost`, by the loopback address, by the address that the client has connected to, and by the
names that the operator has set (`web.allowed.hosts`, `--pulsar-advertise`). A name in DNS can be made to lead to any of
these addresses, but a page cannot make a browser say an address for a name.

While the server stops, the answer to every request is 503.

It reads bytes before a login.
"""

import ipaddress
from collections.abc import Callable, Iterable
from email.utils import formatdate
from typing import Protocol
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from exacta.web.answers import json_answer

MOST_HEADER_BYTES = 16 << 10
"""Apache Pulsar's web server (Jetty) takes half as much."""
_SAME_SITE = (b"same-origin", b"none")
_HEADERS = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))


class Stopping(Protocol):
    """The server, as the guard sees it."""

    is_stopping: bool


class Guard:
    """An ASGI application before another one. `names` are further names of this server."""

    def __init__(self, server: Stopping, application: ASGIApp, names: Iterable[str]) -> None:
        self._server = server
        self._application = application
        self._names = {"localhost", *(name.lower() for name in names)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that may not ask; hand the others on."""
        assert scope["type"] == "http"
        reason, unread = refusal(scope, self._is_this_server), malformed(scope)
        sent = _with_headers(send)
        if unread is not None:
            status, why = unread
            answer = json_answer(status, {"reason": why})
            answer.headers["connection"] = "close"
            await answer(scope, receive, sent)
        elif reason is not None:
            await json_answer(403, {"reason": reason})(scope, receive, sent)
        elif self._server.is_stopping:
            await json_answer(503, {"reason": "the server is stopping"})(scope, receive, sent)
        else:
            await self._application(scope, receive, sent)

    def _is_this_server(self, host: str, local_host: str) -> bool:
        if host in self._names:
            return True
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return False
        return address.is_loopback or host == local_host


def malformed(scope: Scope) -> tuple[int, str] | None:
    """Return the status and the reason for a request that others could read otherwise, or whose headers are too long.

    What stands before this server may take the one length of two, and this server the other (RFC 9112, 6.1). h11 bounds
    the headers that come in several pieces.
    """
    headers: list[tuple[bytes, bytes]] = scope["headers"]
    names = {name for name, _ in headers}
    if b"transfer-encoding" in names and b"content-length" in names:
        return 400, "a body has one length: Content-Length, or Transfer-Encoding"
    if sum(len(name) + len(value) for name, value in headers) > MOST_HEADER_BYTES:
        return 431, f"headers may have {MOST_HEADER_BYTES} bytes"
    return None


def refusal(scope: Scope, is_this_server: Callable[[str, str], bool]) -> str | None:
    """Return why a request is refused at the door; None: it may come in."""
    headers: list[tuple[bytes, bytes]] = scope["headers"]
    hosts = [value.decode("latin-1") for name, value in headers if name == b"host"]
    if len(hosts) != 1:
        return "a request must name the host that it is for"
    host = host_in(hosts[0])
    if host is None or not is_this_server(host, str((scope.get("server") or ("",))[0])):
        return f"this server is not called {hosts[0]!r}; web.allowed.hosts may name it"
    for name, value in headers:
        if name == b"origin" and value.decode("latin-1").lower() != f"{scope['scheme']}://{hosts[0].lower()}":
            return "pages of other origins may not ask"
        if name == b"sec-fetch-site" and value not in _SAME_SITE:
            return "pages of other sites may not ask"
    return None


def host_in(header: str) -> str | None:
    """Return the host in the value of a Host header, in lower case; None where it has none."""
    try:
        split = urlsplit(f"//{header}")
        _ = split.port  # raises where it is none
    except ValueError:
        return None
    is_host_only = not (split.path or split.query or split.fragment or split.username is not None)
    return split.hostname if is_host_only else None


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            date = formatdate(usegmt=True).encode()
            message["headers"] = [*message["headers"], (b"date", date), *_HEADERS]
        await send(message)

    return sent
