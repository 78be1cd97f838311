"""One connection to one broker: TLS, login, framing, versions, requests in flight.

This module owns the socket, the negotiation of versions, the login and its renewal, and the order of replies. It knows
no routing and repeats nothing: after any failure the connection is closed and the caller decides.

Theory of operation: a broker answers the requests of a connection in their order, so replies are matched with a
queue, and the correlation id is only checked. `send` writes and returns; `receive` reads the oldest reply. A caller
may have several requests in flight that way. Every byte that cannot be explained closes the connection.

A broker that is met in the wrong protocol only hangs up, as a broker does that is being stopped. If that happens before
anything was answered, the port is asked why (`diagnosis.py`), so that an error which waiting cannot mend is said at
once.

A login may hold for some time only (KIP-368). Shortly before its end the connection logs in again, before a request
that finds nothing in flight. A caller that keeps requests in flight all the time must let them drain when `wants_rest`
says so.
"""

import random
import selectors
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from exacta.client import diagnosis, tls
from exacta.client.apis import API_VERSIONS_KEY, call_of, usable_version
from exacta.client.deadline import Deadline
from exacta.client.errors import ClientError, ConnectionLost, KafkaError, UnknownHost, UnsupportedByBroker
from exacta.client.sasl import log_in
from exacta.client.security import Cluster
from exacta.protocol.kafka import codec
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from exacta.protocol.kafka.schema import Message

LARGEST_REPLY_BYTES = 256 * 1024 * 1024
"""A reply larger than this is garbage, not a fetch of ours."""

# sendmsg takes at most IOV_MAX (1024 on Linux) buffers.
_MOST_BUFFERS = 512

_RENEWAL = (0.85, 0.95)
"""The part of a session after which it is renewed, drawn between two bounds so that not all connections do it at once.
The Java client does the same."""

_NO_SUCH_NAME = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})
"""The errors of a look-up for a name that does not exist or has no address (Linux). EAI_AGAIN is not one: it passes."""


def _is_unknown_host(error: OSError | UnicodeError) -> bool:
    if isinstance(error, socket.gaierror):
        return error.errno in _NO_SUCH_NAME
    return isinstance(error, UnicodeError)  # no name of the domain name system can be so


def _new_memory(size: int) -> memoryview:
    return memoryview(bytearray(size))


class Connection:
    """A connection that is secured and has negotiated its versions.

    Every method raises `ConnectionLost` once the stream is of no more use, and `SecurityFailed` if the broker and
    `cluster.security` do not go together.
    """

    def __init__(self, host: str, port: int, *, cluster: Cluster, deadline: Deadline) -> None:
        self.address = f"{host}:{port}"
        self._at = (host, port)
        self._security = cluster.security
        self._client_id = cluster.client_id
        self._correlation_id = 0
        self._in_flight: deque[tuple[int, Any, int]] = deque()
        self._proven = False  # a request was answered: whatever happens then is not the configuration's fault
        self._renewal_at_s: float | None = None
        self._socket: socket.socket | None = None
        try:
            self._socket = self._connect(deadline)
            self._ranges = self._negotiate(deadline)
            self._log_in(deadline)
        except BaseException:
            self.close()
            raise

    def version_of(self, request: Message) -> int:
        """Return the version to send `request` in: the newest that both sides speak.

        Raises `UnsupportedByBroker` if there is none.
        """
        version = self._usable_version(request)
        if version is None:
            raise UnsupportedByBroker(f"{self.address} offers no usable version of {type(request).__name__}")
        return version

    def serves(self, request: Message, version: int | None = None) -> bool:
        """Return whether there is a version in which `request` can be sent; with `version`, whether it can in that."""
        if version is None:
            return self._usable_version(request) is not None
        first, last = self._ranges.get(call_of(request).key, (0, -1))
        return first <= version <= last

    def _usable_version(self, request: Message) -> int | None:
        call = call_of(request)
        return usable_version(call, self._ranges.get(call.key))

    @property
    def closed(self) -> bool:
        """Return whether the connection is of no more use."""
        return self._socket is None

    @property
    def in_flight(self) -> int:
        """Return how many requests wait for their reply."""
        return len(self._in_flight)

    def is_idle(self) -> bool:
        """Return whether nothing is in flight, and the broker has not hung up in the meantime."""
        if self._socket is None or self._in_flight:
            return False
        # Nothing is expected: what can be read is the end of the stream.
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            return not selector.select(0)

    @property
    def wants_rest(self) -> bool:
        """Return whether the session is about to end and can only be renewed once nothing is in flight any more."""
        return bool(self._in_flight) and self._renewal_due

    def fileno(self) -> int:
        """Return the descriptor to wait on with `select`."""
        return self._open().fileno()

    def send(self, request: Message, deadline: Deadline, *, version: int | None = None) -> None:
        """Write one request; its reply is the next after those already in flight."""
        if self._renewal_due and not self._in_flight:
            try:
                self._log_in(deadline)
            except BaseException:
                self.close()
                raise
        self._send(request, deadline, version=version)

    def _send(self, request: Message, deadline: Deadline, *, version: int | None = None) -> None:
        if version is None:
            version = self.version_of(request)
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        frame = codec.encode_request(request, version, self._correlation_id, self._client_id)
        self._in_flight.append((self._correlation_id, call_of(request).response, version))
        self._write(frame, deadline)

    def receive(self, deadline: Deadline, memory: Callable[[int], memoryview] = _new_memory) -> Any:
        """Read the reply to the oldest request in flight, into `memory` of its size."""
        try:
            response = self._receive(deadline, memory)
            self._proven = True
            return response
        except BaseException:
            # Whatever it was, an interrupt too: what is left of the reply would be taken for the next one.
            self.close()
            raise

    def _receive(self, deadline: Deadline, memory: Callable[[int], memoryview] = _new_memory) -> Any:
        self._open()
        correlation_id, response_type, version = self._in_flight[0]
        size = int.from_bytes(self._read(4, deadline), "big", signed=True)
        if not 4 <= size <= LARGEST_REPLY_BYTES:
            raise self._broken(f"announced a reply of {size} bytes")
        frame = self._read(size, deadline, memory)
        try:
            answered_id, response = codec.decode_response(response_type, version, frame)
        except codec.DecodeError as error:
            raise self._broken(f"sent a reply that cannot be read: {error}") from error
        if answered_id != correlation_id:
            raise self._broken(f"answered request {answered_id} where {correlation_id} was the next")
        self._in_flight.popleft()
        return response

    def call(self, request: Message, deadline: Deadline, *, version: int | None = None) -> Any:
        """Send one request and return its reply; nothing else may be in flight."""
        assert not self._in_flight
        try:
            self.send(request, deadline, version=version)
            return self.receive(deadline)
        except BaseException:
            # After an interrupt, too: the reply would be taken for the one to the next call.
            if self._in_flight:
                self.close()
            raise

    def close(self) -> None:
        """Close the socket; what is in flight is lost."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self._in_flight.clear()

    def _connect(self, deadline: Deadline) -> socket.socket:
        try:
            plain = socket.create_connection(self._at, timeout=max(0.001, deadline.remaining_s))
        except (OSError, UnicodeError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            if _is_unknown_host(error):
                raise UnknownHost(
                    f"cannot connect to {self.address}: this machine knows no host '{self._at[0]}' ({reason})"
                ) from error
            raise ConnectionLost(f"cannot connect to {self.address}: {reason}") from error
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._security.tls is None:
            return plain
        plain.settimeout(max(0.001, deadline.remaining_s))
        try:
            return tls.wrap(plain, self._security.tls, *self._at)
        except OSError as error:
            raise self._failed("broke off the TLS handshake", error) from error
        finally:
            plain.close()  # it is empty where the wrapping succeeded

    @property
    def _renewal_due(self) -> bool:
        return self._renewal_at_s is not None and time.monotonic() >= self._renewal_at_s

    def _log_in(self, deadline: Deadline) -> None:
        """Log in, for the first time or again on the same connection (KIP-368)."""
        if self._security.sasl is None:
            return

        def call(request: Message) -> Any:
            self._send(request, deadline)
            return self._receive(deadline)

        lifetime_ms = log_in(self._security.sasl, self.address, call)
        self._renewal_at_s = (
            time.monotonic() + lifetime_ms / 1000 * random.uniform(*_RENEWAL) if lifetime_ms > 0 else None
        )

    def _negotiate(self, deadline: Deadline) -> dict[int, tuple[int, int]]:
        """Ask for the version ranges; an older broker answers version 3 in version 0 and is asked again (KIP-511)."""
        request = ApiVersionsRequest(client_software_name="exacta-spark", client_software_version="1")
        for version in (3, 0):
            self._send(request, deadline, version=version)
            correlation_id, _, _ = self._in_flight.popleft()
            size = int.from_bytes(self._read(4, deadline), "big", signed=True)
            if not 6 <= size <= LARGEST_REPLY_BYTES:
                raise self._hung_up(f"announced a reply of {size} bytes")
            frame = self._read(size, deadline)
            # The error code is the first field after the correlation id in every version.
            code = int.from_bytes(frame[4:6], "big", signed=True)
            if code == ErrorCode.UNSUPPORTED_VERSION and version > 0:
                continue
            if code != ErrorCode.NONE:
                raise KafkaError(code, f"{self.address} refused ApiVersions")
            try:
                answered_id, response = codec.decode_response(ApiVersionsResponse, version, frame)
            except codec.DecodeError as error:
                raise self._broken(f"sent version ranges that cannot be read: {error}") from error
            if answered_id != correlation_id:
                raise self._broken("answered another request than ApiVersions")
            return {entry.api_key: (entry.min_version, entry.max_version) for entry in response.api_keys}
        raise UnsupportedByBroker(f"{self.address} speaks no version of ApiVersions (key {API_VERSIONS_KEY})")

    def _open(self) -> socket.socket:
        if self._socket is None:
            raise ConnectionLost(f"the connection to {self.address} is closed")
        return self._socket

    def _write(self, buffers: Sequence[Any], deadline: Deadline) -> None:
        stream = self._open()
        if isinstance(stream, ssl.SSLSocket):
            buffers = [b"".join(buffers)]  # each would be a TLS record of its own
        pending = [view for view in (memoryview(buffer).cast("B") for buffer in buffers) if len(view)]
        try:
            while pending:
                stream.settimeout(max(0.001, deadline.remaining_s))
                if isinstance(stream, ssl.SSLSocket):
                    written = stream.send(pending[0])  # it has no sendmsg
                else:
                    written = stream.sendmsg(pending[:_MOST_BUFFERS])
                while written:
                    if written >= len(pending[0]):
                        written -= len(pending.pop(0))
                    else:
                        pending[0] = pending[0][written:]
                        written = 0
        except OSError as error:
            raise self._failed("took no request", error) from error

    def _read(self, count: int, deadline: Deadline, memory: Callable[[int], memoryview] = _new_memory) -> memoryview:
        stream = self._open()
        view = memory(count)
        at = 0
        try:
            while at < count:
                stream.settimeout(max(0.001, deadline.remaining_s))
                got = stream.recv_into(view[at:])
                if got == 0:
                    raise self._hung_up("closed the connection")
                at += got
        except OSError as error:
            raise self._failed("sent no reply", error) from error
        return view

    def _failed(self, what: str, error: OSError) -> ClientError:
        """Return what to raise where the stream itself failed."""
        refusal = None if self._proven else tls.explain(error, self._security.tls, self.address)
        if refusal is not None:
            self.close()
            return refusal
        what = f"{what}: {error}"
        return self._broken(what) if isinstance(error, TimeoutError) else self._hung_up(what)

    def _hung_up(self, what: str) -> ClientError:
        """Return what to raise where the broker hung up, or talks gibberish."""
        self.close()
        refusal = None if self._proven else diagnosis.why_closed(*self._at, self._security)
        return refusal or self._broken(what)

    def _broken(self, what: str) -> ConnectionLost:
        self.close()
        return ConnectionLost(f"{self.address} {what}")
