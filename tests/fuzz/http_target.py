"""An attacker of a door for HTTP: requests that are cut, long, doubled, ambiguous, for every route and for none."""

import asyncio
import re
from typing import Any

from msgspec.structs import replace

from exacta.config.options import configure
from exacta.front.doors import Door, Endpoint
from exacta.ports.authorizer import ANONYMOUS
from exacta.pulsar.rest.application import ROUTES, routes
from exacta.security.authorizer import AclAuthorizer
from exacta.security.logins import Logins
from exacta.server.progress import Progress
from exacta.web import health
from exacta.web.access import ServerRights
from exacta.web.application import Application
from exacta.web.connection import WebConnection
from exacta.web.login import LoginGuard
from exacta.web.server import WebServer
from tests.fuzz.attacking import HIDDEN, durable
from tests.fuzz.choices import Choices
from tests.fuzz.pulsar_target import furnish, logins
from tests.fuzz.watched import Watch
from tests.pulsar.by_hand import Broker

MOST_REQUESTS = 12
DOOR = Door(front="web", name="WEB", endpoint=Endpoint("127.0.0.1", 0))
PATHS = tuple(dict.fromkeys((*(each.path for each in ROUTES), "/health/live", "/health/ready", "/metrics", "/")))
METHODS = ("GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "get", "PRI", "G\x00T", "X" * 9_000)
PARTS = (
    *("public", "default", "t", "u", "new", "persistent", "0", "1", "..", ".", "%2e%2e", "%2F", "%00", "%", "%ff"),
    *("a" * 5_000, "*", "é", "standalone", "t-partition-0"),
)
QUERIES = (
    *("", "?mode=ALL", "?force=true", "?key=a&value=b", "?key=%ff", "?" + "a=b&" * 1_000, "?updateLocalTopicOnly=x"),
    *("?bundle=1", "?properties={", "#f", "?checkAllowAutoCreation=true&authoritative=1"),
)
HEADERS = (
    *("Content-Length: 0", "Content-Length: 5", "Content-Length: 05", "Content-Length: 5, 5", "Content-Length: -1"),
    *("Content-Length: 99999999999999999999", "Content-Type: application/json", "Accept: */*", "Expect: 100-continue"),
    *("Transfer-Encoding: chunked", "Transfer-Encoding: gzip", "Transfer-Encoding: chunked, chunked"),
    *("Transfer-Encoding : chunked", "Host: evil", "Host: localhost", "Host:", "Connection: close"),
    *("Connection: upgrade", "Upgrade: websocket", "Upgrade: h2c", "Origin: null", "Origin: https://evil"),
    *("Sec-Fetch-Site: cross-site", "X-Forwarded-For: 127.0.0.1", "X-HTTP-Method-Override: DELETE"),
    *("Authorization: Basic", "Authorization: Basic YTpi", "Authorization: Basic " + "A" * 9_000),
    *("Authorization: Bearer a.b.c", "Authorization: Bearer", "X: " + "y" * 17_000, " folded", "no colon"),
    *("Nul: \0", "\r: x", "Cookie: " + "a=b;" * 2_000),
)
BODIES = (
    *(b"", b"4", b'"x"', b"{}", b"[" * 20_000, b'{"a":' * 9_000, b"1e999", b"-1", b"99999999", b"null"),
    *(b"5\r\nhello\r\n0\r\n\r\n", b"0\r\n\r\n", b"FFFFFFFFFFFFFFFFF\r\n", b"5;ext=" + b"x" * 20_000),
    *(b"\xff" * 100, b"x" * 70_000),
)
_SERVER_ERROR = re.compile(rb"HTTP/1\.[01] 50[02] ")


class Transport(asyncio.Transport):
    """The server's end of one connection, in memory."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._loop = loop
        self.sent = bytearray()
        self.connection: Any = None
        self.is_reading_paused = self._is_closed = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return an address."""
        return {"peername": ("10.0.0.1", 1), "sockname": ("127.0.0.1", 80)}.get(name, default)

    def write(self, data: Any) -> None:
        """Take an answer."""
        self.sent += data

    def pause_reading(self) -> None:
        """Note it."""
        self.is_reading_paused = True

    def resume_reading(self) -> None:
        """Note it."""
        self.is_reading_paused = False

    def close(self) -> None:
        """End the connection soon, as asyncio does."""
        if not self._is_closed:
            self._is_closed = True
            self._loop.call_soon(self.connection.connection_lost, None)

    abort = close

    def is_closing(self) -> bool:
        """Return whether it ends."""
        return self._is_closed


class Web:
    """A web front in memory over a broker whose loop is turned by hand; with `logins` its door asks for one."""

    def __init__(self, broker: Broker, logins: Logins | None = None) -> None:
        self.loop = asyncio.new_event_loop()
        self._broker = broker
        self.connections: set[WebConnection] = set()
        progress = Progress()
        progress.has_recovered(broker.engine)
        access = ServerRights(is_closed=False)
        access.broker, broker.context.logins = broker.context, logins
        self._door = replace(DOOR, login=logins is not None)
        application = Application(health.routes(progress, access))
        application.serve(routes(broker.shared))
        self._server = WebServer(configure({}), self.loop, self._let_in, self.connections.remove)
        self._server.serve(LoginGuard(application, access))

    def _let_in(self, connection: WebConnection) -> bool:
        self.connections.add(connection)
        return True

    def connect(self) -> Transport:
        """Return a new connection."""
        transport = Transport(self.loop)
        transport.connection = self._server.connection(self._door)
        self.loop.call_soon(transport.connection.connection_made, transport)
        self.settle()
        return transport

    def settle(self) -> None:
        """Let both loops turn until nothing happens any more."""
        while True:
            self.loop.call_soon(self.loop.stop)
            self.loop.run_forever()
            if any(each.caller.logins_begun for each in self.connections) and not self._broker.loop.ready:
                self._broker.pass_time(1)  # a login waits to be refused
            if not self.loop._ready and not self._broker.loop.ready:  # type: ignore[attr-defined]  # asyncio's own
                return
            self._broker.settle()

    def send(self, transport: Transport, data: bytes) -> None:
        """Send bytes, in pieces, as far as the server reads."""
        for start in range(0, len(data), 16 << 10):
            if transport.is_closing() or transport.is_reading_paused:
                return
            self.loop.call_soon(transport.connection.data_received, data[start : start + (16 << 10)])
            self.settle()

    def close(self) -> None:
        """End all connections."""
        for each in list(self.connections):
            each.abort()
        self.settle()
        assert not self.connections
        self.loop.close()


def without_rights(data: bytes) -> None:
    """Attack as a stranger, for whom there is no access rule."""
    choices = Choices(data)
    broker = Broker()
    furnish(broker, broker.connect())
    broker.context.authorizer = AclAuthorizer(broker.engine.advice, frozenset({"User:root"}), allow_everyone=False)
    written = durable(broker.storage)
    web = Web(broker)
    with Watch(broker) as watch:
        received = _attack(web, choices)
        assert durable(broker.storage) == written, "something was written"
        assert HIDDEN.encode() not in received
        _check(web)
    watch.check()


def before_login(data: bytes) -> None:
    """Attack without a login at a door that asks for one, behind which everybody may do all."""
    choices = Choices(data)
    broker = Broker()
    furnish(broker, broker.connect())
    written = durable(broker.storage)
    web = Web(broker, logins())
    with Watch(broker) as watch:
        received = _attack(web, choices)
        assert durable(broker.storage) == written, "something was written"
        assert HIDDEN.encode() not in received
        taken = re.findall(rb"HTTP/1\.1 (2\d\d) .*?\r\ncontent-length: (\d+)\r\n", received, re.DOTALL)
        assert {*taken} <= {(b"200", b"%d" % len(each)) for each in (b'{"status":"live"}', b'{"status":"ready"}')}
        _check(web)
    watch.check()


def with_rights(data: bytes) -> None:
    """Attack as somebody who may do all: the worst that a request can do."""
    choices = Choices(data)
    broker = Broker()
    furnish(broker, broker.connect())
    everybody = frozenset({str(ANONYMOUS)})
    broker.context.authorizer = AclAuthorizer(broker.engine.advice, everybody, allow_everyone=False)
    web = Web(broker)
    with Watch(broker) as watch:
        _attack(web, choices)
        _check(web)
    watch.check()


def _attack(web: Web, choices: Choices) -> bytes:
    received, transport = b"", web.connect()
    for _ in range(MOST_REQUESTS):
        if not choices.are_left:
            break
        if transport.is_closing():
            received += transport.sent
            transport = web.connect()
        web.send(transport, _request(choices))
    received += transport.sent
    assert not _SERVER_ERROR.search(received), received
    return bytes(received)


def _request(choices: Choices) -> bytes:
    path = choices.pick(PATHS)
    for name in re.findall(r"{\w+}", path):
        path = path.replace(name, choices.pick(PARTS if choices.once_in(2) else PARTS[:3]), 1)
    method = choices.pick(METHODS if choices.once_in(6) else METHODS[:4])
    version = choices.pick(("1.1", "1.0", "2.0", "1.1 x", "9")) if choices.once_in(6) else "1.1"
    lines = [f"{method} {path}{choices.pick(QUERIES) if choices.once_in(2) else ''} HTTP/{version}"]
    if not choices.once_in(8):
        lines.append("Host: localhost")
    lines += [choices.pick(HEADERS) for _ in range(choices.below(8) // 3)]
    body = choices.pick(BODIES)
    if body and not choices.once_in(6):
        lines.append(f"Content-Length: {len(body)}")
    end = choices.pick(("\n", "\r", "\r\n ")) if choices.once_in(10) else "\r\n"
    found = (end.join(lines) + end * 2).encode("utf-8", "surrogateescape") + body
    return found[: choices.below(len(found))] if choices.once_in(10) else found


def _check(web: Web) -> None:
    """Ask as a neighbour."""
    neighbour = web.connect()
    web.send(neighbour, b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert neighbour.sent.startswith(b"HTTP/1.1 200 ")
    web.close()
