"""The alert by which TLS says that a client's certificate is missing or refused goes out before the connection ends.

Event loops end a connection at once when its handshake fails, and the alert stays behind: the client sees that the
connection was closed, and tries again and again. Here a handshake that fails by the certificate is told to the event
loop as one that waits for the client. So the loop sends what is there to be sent, which is the alert. The one who began
the handshake is told of the failure (`telling`), and ends the connection.

A handshake that fails for another reason ends at once.
"""

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_NO_CERTIFICATE = "PEER_DID_NOT_RETURN_A_CERTIFICATE"

Tell = Callable[[ssl.SSLError], object]

_tell: ContextVar[Tell] = ContextVar("tell")


@contextmanager
def telling(tell: Tell) -> Iterator[None]:
    """Have `tell` called, once, if a handshake that begins meanwhile fails by the client's certificate."""
    token = _tell.set(tell)
    try:
        yield
    finally:
        _tell.reset(token)


class _Handshake(ssl.SSLObject):
    """A connection whose refusal of a certificate reaches the client."""

    outgoing: ssl.MemoryBIO
    tell: Tell | None = None
    _failure: ssl.SSLError | None = None

    def do_handshake(self) -> None:
        """See `ssl.SSLObject`."""
        if self._failure is not None:
            raise self._failure
        try:
            super().do_handshake()
        except ssl.SSLError as error:
            is_refusal = isinstance(error, ssl.SSLCertVerificationError) or error.reason == _NO_CERTIFICATE
            if not is_refusal or self.tell is None or not self.outgoing.pending:
                raise
            self._failure = error
            self.tell(error)
            raise ssl.SSLWantReadError from error


class ServerContext(ssl.SSLContext):
    """The server's side of TLS."""

    sslobject_class = _Handshake

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *given: Any, **named: Any) -> ssl.SSLObject:
        """See `ssl.SSLContext`."""
        connection = super().wrap_bio(incoming, outgoing, *given, **named)
        assert isinstance(connection, _Handshake)
        connection.outgoing, connection.tell = outgoing, _tell.get(None)
        return connection
