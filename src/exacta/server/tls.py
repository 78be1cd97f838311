"""Sockets whose clients speak TLS: their certificate, their clients' names, and the handshakes that are under way.

Theory of operation. Connections are taken one by one, and their handshakes run side by side. asyncio's own server would
let any number of handshakes run, and a connection has no protocol before its handshake has ended, so that nothing would
count it: clients that connect and say nothing could use up all files of the process. Here a handshake may take
`HANDSHAKE_SECONDS`, and where `MOST_HANDSHAKES` are under way, the next connection ends the oldest one of the host that
has most of them. If it waited for room, some hundred silent connections would keep everybody out.
"""

import asyncio
import contextlib
import logging
import socket
import ssl
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from exacta.config.errors import ConfigurationError
from exacta.front.doors import Door
from exacta.front.hosts import share_of
from exacta.front.identity import NOBODY, Identity, NotIdentified
from exacta.key_stores import StoreError
from exacta.ports.authorizer import Principal
from exacta.security.alerts import telling
from exacta.security.distinguished_names import owner_of
from exacta.security.tls import ClientAuth, TlsSettings, principal_rules, server_context
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

_NO_TLS = "it does not speak TLS, and this door speaks nothing else"
_REASONS = {
    "HTTP_REQUEST": _NO_TLS,
    "HTTPS_PROXY_REQUEST": _NO_TLS,
    "WRONG_VERSION_NUMBER": _NO_TLS,
    "PACKET_LENGTH_TOO_LONG": _NO_TLS,
    "RECORD_LAYER_FAILURE": _NO_TLS,
    "UNSUPPORTED_PROTOCOL": "its version of TLS is too old (ssl.enabled.protocols)",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it has no certificate, which this door asks for (ssl.client.auth)",
}
"""OpenSSL's names for the failures of a handshake that operators meet, and what is said of them."""

_ALERT_SECONDS = 0.01
"""The event loop sends an alert at the end of its turn. A client that stays is ended by HANDSHAKE_SECONDS."""

_PAUSE_SECONDS = 1.0
"""The time after which connections are taken again when the system has refused one, as asyncio's own server has it."""


class Certificate:
    """The TLS of doors with equal settings. Files that have changed are read again for the connections that come then.

    A renewed certificate needs no stop of the server. If the new files are of no use, the operator is told once,
    and what was read before is presented on.
    """

    def __init__(self, settings: TlsSettings) -> None:
        """Remember the settings; `read` reads the files. Raises ServerError for rules that cannot be read."""
        self._settings = settings
        self._context: ssl.SSLContext | None = None
        self._known: tuple[object, ...] = ()
        self._looked_s = 0.0
        self._trusted: frozenset[bytes] = frozenset()
        self.trust_losses = 0
        """The number of times that certificates were gone from the truststore when it was read again. What a client
        had shown before then holds no more: by whom its certificate was signed is not known any more."""
        try:
            self._rules = principal_rules(settings)
        except ConfigurationError as error:
            raise ServerError(str(error)) from error

    @property
    def asks(self) -> bool:
        """True if clients are asked for certificates."""
        return self._settings.client_auth is not ClientAuth.NONE

    @property
    def requires(self) -> bool:
        """True if every client must have a certificate that is accepted."""
        return self._settings.client_auth is ClientAuth.REQUIRED

    def read(self, now_s: float) -> None:
        """Read the files. Raises ServerError."""
        self._looked_s, self._known = now_s, self._states()
        try:
            context, trusted = server_context(self._settings)
        except StoreError as error:
            raise ServerError(str(error)) from error
        if self._trusted - trusted:
            self.trust_losses += 1
        self._context, self._trusted = context, trusted

    def context(self, now_s: float) -> ssl.SSLContext:
        """Return the context of a new connection; `now_s` is the time of the loop. `read` has succeeded before."""
        assert self._context is not None
        if now_s - self._looked_s >= LOOK_SECONDS:
            self.look(now_s)
        return self._context

    def look(self, now_s: float) -> None:
        """Read the files again where they have changed."""
        self._looked_s = now_s
        if self._states() != self._known:
            self.read_again(now_s)

    def read_again(self, now_s: float) -> None:
        """Read the files again, and go on with what there was if they are of no use."""
        try:
            self.read(now_s)
        except ServerError as error:
            logger.warning("the certificate of before is presented on: %s", error)
        else:
            logger.info("%s was read again", " and ".join(self._settings.files) or self._settings.keystore.name)

    def identify(self, transport: asyncio.BaseTransport) -> Identity:
        """Implement `Identify`: by the certificate that the client has shown, if it has shown one."""
        connection = transport.get_extra_info("ssl_object")
        shown = None if connection is None else connection.getpeercert(binary_form=True)
        if shown is None:
            if self.requires:
                raise NotIdentified("it has shown no certificate")
            return NOBODY
        try:
            principal = Principal(name=self._rules.name_of(owner_of(shown)))
        except ValueError as error:
            raise NotIdentified(str(error)) from error
        ends_s = ssl.cert_time_to_seconds(connection.getpeercert()["notAfter"])
        losses = self.trust_losses
        return Identity(principal, lambda: losses == self.trust_losses, max(0.0, ends_s - time.time()))

    def _states(self) -> tuple[object, ...]:
        """Return what changes with the files; a file that cannot be looked at has no state."""
        found: list[object] = []
        for path in self._settings.files:
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
        """Remember the certificate, which has been read."""
        super().__init__(door)
        self.certificate = certificate
        self._accepting: asyncio.Task[None] | None = None
        self._handshakes: dict[asyncio.Task[None], str] = {}
        """The handshakes under way, the oldest first, and whose share each counts towards."""

    @property
    def has_login(self) -> bool:
        """See `Listener`; a certificate that every client must have is a login."""
        return self.door.login or self.certificate.requires

    async def start(self) -> None:
        """Accept clients. Raises ServerError."""
        assert self._socket is not None
        loop = asyncio.get_running_loop()
        try:
            self._socket.listen(BACKLOG)
        except OSError as error:
            raise ServerError(cannot_listen(self._listen, error)) from error
        self._accepting = loop.create_task(self._accept(loop, self._socket))

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

    async def _accept(self, loop: asyncio.AbstractEventLoop, bound: socket.socket) -> None:
        while True:
            try:
                client, address = await loop.sock_accept(bound)
            except OSError as error:
                logger.warning("cannot take a connection on %s: %s", self.door.endpoint, error)
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            if len(self._handshakes) >= MOST_HANDSHAKES:
                self._make_room()
            handshake = loop.create_task(self._shake_hands(loop, client, address))
            self._handshakes[handshake] = share_of(address[0])
            handshake.add_done_callback(self._ended)

    def _make_room(self) -> None:
        shares = Counter(self._handshakes.values())
        most = max(shares.values())
        ended = next(each for each, share in self._handshakes.items() if shares[share] == most)
        del self._handshakes[ended]
        ended.cancel()

    def _ended(self, handshake: "asyncio.Task[None]") -> None:
        self._handshakes.pop(handshake, None)

    async def _shake_hands(
        self, loop: asyncio.AbstractEventLoop, client: socket.socket, address: tuple[str, int]
    ) -> None:
        refused = False

        def failed(error: OSError) -> None:
            level, reason = why_no_tls(error)
            if reason == _NO_TLS:
                protocol = "SASL_SSL" if self.door.login else "SSL"
                reason = f"{reason} (Kafka clients: security.protocol={protocol})"
            logger.log(level, "no TLS with %s:%d at the door %s: %s", *address[:2], self.door.name, reason)

        def refuse(error: OSError) -> None:
            """Say so, and end our side when the alert is sent: then the client has read it before it hears the end."""
            nonlocal refused
            refused = True
            failed(error)
            loop.call_later(_ALERT_SECONDS, _end_sending, client)

        try:
            with telling(refuse):
                await secured(
                    loop,
                    self._connected,
                    client,
                    ssl=self.certificate.context(loop.time()),
                    ssl_handshake_timeout=HANDSHAKE_SECONDS,
                    ssl_shutdown_timeout=SHUTDOWN_SECONDS,
                )
        except OSError as error:  # TLS's errors are of this kind
            if not refused:
                failed(error)

    def _connected(self) -> asyncio.BaseProtocol:
        connection = super()._connected()
        connection.identify = self.certificate.identify  # type: ignore[attr-defined]  # connections of all fronts have it
        return connection


async def secured(
    loop: asyncio.AbstractEventLoop, connect: Callable[[], asyncio.BaseProtocol], client: socket.socket, **options: Any
) -> None:
    """Shake hands, and make a connection of a socket, as the event loop does it (decision 0066)."""
    await loop.connect_accepted_socket(connect, client, **options)


def _end_sending(client: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it has gone meanwhile
        client.shutdown(socket.SHUT_WR)


def why_no_tls(error: OSError) -> tuple[int, str]:
    """Return why a handshake has failed, in words for the operator, and the level of their line."""
    reason = getattr(error, "reason", None) or ""
    if isinstance(error, ssl.SSLCertVerificationError):
        return logging.WARNING, f"its certificate is not accepted: {error.verify_message}"
    for beginning, words in _REASONS.items():
        if beginning in reason:
            return logging.WARNING, words
    if "ALERT" in reason:
        return logging.INFO, f"it does not accept our certificate, or our TLS ({reason})"
    return logging.INFO, reason or str(error) or type(error).__name__
