"""The sockets that a server listens on: their endpoints, as an operator writes them, and how they are bound."""

import asyncio
import ipaddress
import socket
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from exacta.front.doors import WILDCARDS, Door, Endpoint
from exacta.server.errors import ServerError

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 9092
DEFAULT_PULSAR_PORT = 6650
DEFAULT_PULSAR_TLS_PORT = 6651
DEFAULT_WEB_PORT = 8080
DEFAULT_WEB_TLS_PORT = 8443

BACKLOG = 4096
"""The connections that may wait to be taken; the system allows fewer (Linux: net.core.somaxconn)."""


def parse_endpoint(text: str) -> Endpoint:
    """Parse HOST:PORT or [IPv6]:PORT. Raises ValueError with a message for the user."""
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"expected HOST:PORT, or [HOST]:PORT for IPv6, not {text!r}")
    if not colon or not port.isdecimal():
        raise ValueError(f"expected HOST:PORT, not {text!r}")
    if int(port) > 0xFFFF:
        raise ValueError(f"expected HOST:PORT with a port of at most 65535, not {text!r}")
    return Endpoint(host, int(port))


def _resolved(listen: Endpoint) -> tuple[int, int, int, Any]:
    """Return family, kind, protocol and address of the socket for an endpoint. Raises ServerError."""
    host = None if listen.host in WILDCARDS and listen.host != "::" else listen.host
    try:
        found = socket.getaddrinfo(host, listen.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise ServerError(cannot_listen(listen, error)) from error
    # A name may have several addresses; clients that resolve it try IPv4 first where both exist.
    family, kind, protocol, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    return family, kind, protocol, address


def bind(listen: Endpoint) -> socket.socket:
    """Return a bound socket. Raises ServerError."""
    family, kind, protocol, address = _resolved(listen)
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setblocking(False)
        sock.bind(address)
    except OSError as error:
        sock.close()
        raise ServerError(cannot_listen(listen, error)) from error
    return sock


def cannot_listen(listen: Endpoint, error: OSError | UnicodeError) -> str:
    """Return the message for an endpoint that cannot be had."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"cannot listen on {listen}: {reason.lower()}"


class Listener:
    """One socket, and the clients of one front that come to it."""

    def __init__(self, door: Door) -> None:
        self.door = door
        """The door, once it is open with the real port."""
        self.is_for_all = False
        """True if other machines can connect, once it was looked up or is open."""
        self._listen = door.endpoint
        self._socket: socket.socket | None = None
        self._server: asyncio.Server | None = None
        self.connect: Callable[[], asyncio.BaseProtocol] | None = None
        """The function that makes the protocol of each client; another one may take its place at any time."""

    @property
    def has_login(self) -> bool:
        """True if no client comes in without a login."""
        return self.door.login

    def look_up(self) -> None:
        """Find out who could connect, without a port. Raises ServerError."""
        self._is_at(_resolved(self._listen)[-1][0])

    def open(self) -> None:
        """Bind the port. Raises ServerError."""
        self._socket = bind(self._listen)
        address, port = self._socket.getsockname()[:2]
        self.door = replace(self.door, endpoint=Endpoint(self._listen.host, port))
        self._is_at(address)

    def _is_at(self, address: str) -> None:
        self.is_for_all = not ipaddress.ip_address(address.partition("%")[0]).is_loopback

    async def start(self) -> None:
        """Accept clients. Raises ServerError."""
        assert self._socket is not None
        try:
            self._server = await asyncio.get_running_loop().create_server(
                self._connected, sock=self._socket, backlog=BACKLOG
            )
        except OSError as error:
            raise ServerError(cannot_listen(self._listen, error)) from error

    def _connected(self) -> asyncio.BaseProtocol:
        assert self.connect is not None
        return self.connect()

    def close(self) -> None:
        """Accept no clients any more; harmless if it is not open."""
        if self._server is not None:
            self._server.close()
            self._server = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None
