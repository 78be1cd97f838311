"""Sockets whose clients speak TLS: their certificate, and the handshakes that are under way.

Theory of operation. Connections are taken one by one, and their handshakes run side by side. asyncio's own server would
let any number of handshakes run, and a connection has no protocol before its handshake has ended, so that nothing would
count it: clients that connect and say nothing could use up all files of the process. Here the next connection waits in
the backlog while `MOST_HANDSHAKES` are under way, and a handshake may take `HANDSHAKE_SECONDS`.
"""

import asyncio
import logging
import socket
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from exacta.front.doors import Door
from exacta.server.errors import ServerError
from exacta.server.listeners import BACKLOG, Listener, cannot_listen

logger = logging.getLogger("exacta.server")

MOST_HANDSHAKES = 256
"""A handshake has one file, of the half that is not for connections (`open_files.py`)."""

HANDSHAKE_SECONDS = 10.0

LOOK_SECONDS = 1.0
"""The files of a certificate are looked at so often at most, when a client comes."""

SHUTDOWN_SECONDS = 5.0
"""The peer's goodbye is waited for so long."""

_PAUSE_SECONDS = 1.0
"""The time after which connections are taken again when the system has refused one, as asyncio's own server has it."""


def server_context(certificate: str, key: str) -> ssl.SSLContext:
    """Return the context of a server with this certificate and key, both PEM files. Raises ServerError."""
    for option, path in (("pulsar.tls.certificate", certificate), ("pulsar.tls.key", key)):
        if not path:
            raise ServerError(f"TLS needs a certificate and its key: set {option} to a PEM file")
        try:
            Path(path).read_bytes()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ServerError(f"cannot read {option}, {path}: {reason.lower()}") from error

    def has_a_password() -> NoReturn:
        raise ServerError(f"pulsar.tls.key, {key}, has a password: give a key without one")

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)  # TLS 1.2 or newer
    try:
        context.load_cert_chain(certificate, key, has_a_password)
    except ssl.SSLError as error:
        reason = (error.reason or "neither is in PEM").lower().replace("_", " ")
        raise ServerError(
            f"pulsar.tls.certificate, {certificate}, and pulsar.tls.key, {key}, are no certificate and its key in PEM: "
            f"{reason}"
        ) from error
    return context


class Certificate:
    """A certificate and its key. Files that have changed are read again for the connections that come then.

    A renewed certificate needs no stop of the server. If the new files are of no use, the operator is told once,
    and what was read before is presented on.
    """

    def __init__(self, certificate: str, key: str) -> None:
        """Remember the files; `read` reads them."""
        self._files = certificate, key
        self._context: ssl.SSLContext | None = None
        self._known: tuple[object, ...] = ()
        self._looked_s = 0.0

    def read(self, now_s: float) -> None:
        """Read the files. Raises ServerError."""
        self._looked_s, self._known = now_s, self._states()
        self._context = server_context(*self._files)

    def context(self, now_s: float) -> ssl.SSLContext:
        """Return the context of a new connection; `now_s` is the time of the loop. `read` has succeeded before."""
        assert self._context is not None
        if now_s - self._looked_s >= LOOK_SECONDS:
            self._looked_s = now_s
            if self._states() != self._known:
                self.read_again(now_s)
        return self._context

    def read_again(self, now_s: float) -> None:
        """Read the files again, if they were read before, and go on with what there was if they are of no use."""
        if self._context is None:
            return
        try:
            self.read(now_s)
        except ServerError as error:
            logger.warning("the certificate of before is presented on: %s", error)
        else:
            logger.info("the certificate %s was read again", self._files[0])

    def _states(self) -> tuple[object, ...]:
        """Return what changes with the files; a file that cannot be looked at has no state."""
        found: list[object] = []
        for path in self._files:
            try:
                state = Path(path).stat()
            except (OSError, ValueError):
                found.append(None)
            else:
                found.append((state.st_mtime_ns, state.st_size, state.st_ino))
        return tuple(found)


class TlsListener(Listener):
    """One socket whose clients speak TLS."""

    def __init__(self, door: Door, certificate: Certificate) -> None:
        """Remember the certificate; `open` reads it."""
        super().__init__(door)
        self._certificate = certificate
        self._room = asyncio.Semaphore(MOST_HANDSHAKES)
        self._accepting: asyncio.Task[None] | None = None
        self._handshakes: set[asyncio.Task[None]] = set()

    def open(self) -> None:
        """Read certificate and key, bind the port. Raises ServerError."""
        self._certificate.read(time.monotonic())
        super().open()

    async def start(self, connect: Callable[[], asyncio.BaseProtocol]) -> None:
        """Accept clients; `connect` makes the protocol of each. Raises ServerError."""
        assert self._socket is not None
        loop = asyncio.get_running_loop()
        try:
            self._socket.listen(BACKLOG)
        except OSError as error:
            raise ServerError(cannot_listen(self._listen, error)) from error
        self._accepting = loop.create_task(self._accept(loop, self._socket, connect))

    def close(self) -> None:
        """Accept no clients any more, and end the handshakes; harmless if it is not open."""
        for handshake in self._handshakes:
            handshake.cancel()
        if self._accepting is not None and self._socket is not None:
            # The loop still looks at the socket until the task has ended.
            self._accepting.add_done_callback(lambda _, bound=self._socket: bound.close())  # type: ignore[misc]
            self._accepting.cancel()
            self._accepting = self._socket = None
        super().close()

    async def _accept(
        self, loop: asyncio.AbstractEventLoop, bound: socket.socket, connect: Callable[[], asyncio.BaseProtocol]
    ) -> None:
        while True:
            await self._room.acquire()
            try:
                client, address = await loop.sock_accept(bound)
            except OSError as error:
                self._room.release()
                logger.warning("cannot take a connection on %s: %s", self.door.endpoint, error)
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            handshake = loop.create_task(self._shake_hands(loop, client, address, connect))
            self._handshakes.add(handshake)
            handshake.add_done_callback(self._ended)

    def _ended(self, handshake: "asyncio.Task[None]") -> None:
        self._handshakes.discard(handshake)
        self._room.release()

    async def _shake_hands(
        self,
        loop: asyncio.AbstractEventLoop,
        client: socket.socket,
        address: tuple[str, int],
        connect: Callable[[], asyncio.BaseProtocol],
    ) -> None:
        try:
            await loop.connect_accepted_socket(
                connect,
                client,
                ssl=self._certificate.context(loop.time()),
                ssl_handshake_timeout=HANDSHAKE_SECONDS,
                ssl_shutdown_timeout=SHUTDOWN_SECONDS,
            )
        except OSError as error:  # TLS's errors are of this kind
            reason = getattr(error, "reason", None) or str(error) or type(error).__name__
            logger.info("no TLS with %s:%d on %s: %s", *address[:2], self.door.endpoint, reason)
