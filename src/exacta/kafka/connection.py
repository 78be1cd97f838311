"""One client's connection: bytes to requests, answers to bytes.

Owns frame assembly, the order of answers, back-pressure, and what becomes of a client that sends nonsense. Owns no API.

Theory of operation. Requests are handed to their handlers the moment they are whole, without waiting for the answers to
earlier ones (pipelining); each is a place in a queue, and answers leave strictly in that order. What has become ready
during one turn of the event loop is written at its end in one call. A request larger than `socket.request.max.bytes` is
refused by its size field alone, before its body is read; until a frame is whole, nothing is held but what has arrived.
One of more elements than `request_size.py` allows is refused before the one too many is read: with an error code where
that alone is an answer, else by the end of the connection.

Back-pressure: reading stops while too many requests, or too many bytes of them and of their answers, are held, and
while the client does not read what it asked for.

A connection on which nothing has come or gone for `connections.max.idle.ms`, and nothing is owed, is closed: clients
connect again when they need to. One that is not let in (`admission.py`) is closed before it is read.

A client that sends what cannot be understood loses this connection, with one line in the log, and nothing else happens.
"""

import asyncio
import logging
import socket
import struct
from collections import deque
from collections.abc import Callable
from typing import cast

from exacta.kafka.broker import BrokerContext
from exacta.kafka.context import RequestContext
from exacta.kafka.handlers import HANDLERS
from exacta.kafka.request_size import most_elements
from exacta.protocol.codec import DecodeError, TooManyElements, decode_request, decode_request_header
from exacta.protocol.errors import ErrorCode
from exacta.protocol.schema import Buffer

logger = logging.getLogger("exacta.kafka")

MAX_UNANSWERED_BYTES = 16 << 20
"""Their bytes: enough for several large batches per sync; one request may be larger than this on its own."""

WRITE_HIGH_WATER_BYTES = 4 << 20

_size_of = struct.Struct(">i").unpack_from
_SIZE_BYTES = 4
_SMALLEST_REQUEST_BYTES = 8  # API key, version, correlation id


class Connection(asyncio.Protocol):
    """Created by the listener for each client; `register` and `forget` keep the server's set of them.

    Where `register` returns False, the connection is not let in, and `forget` hears nothing of it.
    """

    def __init__(
        self,
        broker: BrokerContext,
        loop: asyncio.AbstractEventLoop,
        register: Callable[["Connection"], bool | None],
        forget: Callable[["Connection"], None],
    ) -> None:
        self._broker = broker
        self._loop = loop
        self._register = register
        self._forget = forget
        self.configuration = broker.configuration
        self._max_request_bytes = broker.configuration.socket_request_max_bytes
        self._most_elements = most_elements(broker.configuration.limits())
        self._max_unanswered = broker.configuration.max_in_flight_requests_per_connection
        self._max_idle_seconds = broker.configuration.connections_max_idle_ms / 1000
        self._idle_timer: asyncio.TimerHandle | None = None
        self._last_active = 0.0
        self._admitted = False
        self._transport: asyncio.Transport | None = None
        self._chunks: list[bytes] = []
        self._received = 0
        self._needed = _SIZE_BYTES
        self._unanswered: deque[RequestContext] = deque()
        self._unanswered_bytes = 0
        self._outgoing: list[Buffer] = []
        self._outgoing_bytes = 0
        self._flush_scheduled = False
        self._write_paused = False
        self._reading = True
        self._stopping = False
        self._closing = False
        self.peer_host = ""
        self.peer = ""
        self.local_host = ""

    # --- asyncio's side -----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport over."""
        transport = cast("asyncio.Transport", transport)  # uvloop's is one by its methods only
        self._transport = transport
        transport.set_write_buffer_limits(high=WRITE_HIGH_WATER_BYTES)
        peername = transport.get_extra_info("peername") or ("", 0)
        self.peer_host = str(peername[0])
        self.peer = f"{peername[0]}:{peername[1]}"
        self.local_host = str((transport.get_extra_info("sockname") or ("",))[0])
        sock = transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._admitted = self._register(self) is not False
        if not self._admitted:
            self.abort()
        elif self._max_idle_seconds >= 0:
            self._last_active = self._loop.time()
            self._idle_timer = self._loop.call_later(self._max_idle_seconds, self._look_whether_idle)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget everything; answers that come later find nobody."""
        self._closing = True
        self._transport = None
        self._chunks.clear()
        self._unanswered.clear()
        self._outgoing.clear()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        if self._admitted:
            self._forget(self)

    def data_received(self, data: bytes) -> None:
        """Collect until the frame that has begun is whole."""
        self._last_active = self._loop.time()
        self._chunks.append(data)
        self._received += len(data)
        if self._received >= self._needed and self._reading:
            self._take_frames()

    def pause_writing(self) -> None:
        """Stop reading from a client that does not read."""
        self._write_paused = True

    def resume_writing(self) -> None:
        """Go on."""
        self._write_paused = False
        self._go_on()

    # --- requests -----------------------------------------------------------------------------------------------------

    def _take_frames(self) -> None:
        data = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        view = memoryview(data)
        position, end, needed = 0, len(data), _SIZE_BYTES
        while end - position >= _SIZE_BYTES:
            if self._is_full():
                self._stop_reading()
                break
            size = _size_of(data, position)[0]
            if size > self._max_request_bytes:
                self.refuse(f"a request of {size} bytes is above socket.request.max.bytes={self._max_request_bytes}")
                return
            if size < _SMALLEST_REQUEST_BYTES:
                self.refuse(f"a request of {size} bytes cannot be one")
                return
            stop = position + _SIZE_BYTES + size
            if stop > end:
                needed = _SIZE_BYTES + size
                break
            self._receive(view[position + _SIZE_BYTES : stop])
            if self._closing:
                return
            position = stop
        # A copy, so that a beginning of a few bytes does not keep the whole chunk alive.
        rest = data if position == 0 else data[position:]
        self._chunks = [rest] if rest else []
        self._received = len(rest)
        self._needed = needed

    def _receive(self, frame: memoryview) -> None:
        try:
            header, body_start = decode_request_header(frame)
        except DecodeError as error:
            self.refuse(f"malformed request header: {error}")
            return
        handler = HANDLERS.get(header.api_key)
        if handler is None:
            self.refuse(f"API key {header.api_key} is not served")
            return
        version = header.api_version
        context = RequestContext(self, handler, version, header.correlation_id, header.client_id or "", len(frame))
        if not handler.min_version <= version <= handler.max_version:
            self._answer_unserved(context, frame[body_start:])
            return
        try:
            request = decode_request(frame, header, body_start, self._most_elements)
        except DecodeError as error:
            if isinstance(error, TooManyElements) and handler.plain_error is not None:
                self._enqueue(context)
                context.reply(handler.plain_error(error_code=ErrorCode.INVALID_REQUEST))
                return
            self.refuse(f"malformed {handler.name} v{version}: {error}")
            return
        self._enqueue(context)
        try:
            handler.handle(self._broker, request, context, context.reply)
        except Exception:  # noqa: BLE001  # a bug in one handler must not end the server
            context.fail()

    def _answer_unserved(self, context: RequestContext, body: memoryview) -> None:
        handler = context.handler
        response = None
        if handler.answer_unserved is not None:
            try:
                response = handler.answer_unserved(context, body)
            except DecodeError as error:
                self.refuse(f"malformed {handler.name} v{context.version}: {error}")
                return
        if response is None:
            self.refuse(f"{handler.name} v{context.version} is not served")
            return
        self._enqueue(context)
        context.send(response)

    def _enqueue(self, context: RequestContext) -> None:
        self._unanswered.append(context)
        self._unanswered_bytes += context.size

    # --- back-pressure ------------------------------------------------------------------------------------------------

    def _is_full(self) -> bool:
        return (
            self._write_paused
            or len(self._unanswered) >= self._max_unanswered
            or self._unanswered_bytes >= MAX_UNANSWERED_BYTES
            or self._outgoing_bytes >= WRITE_HIGH_WATER_BYTES
        )

    def _stop_reading(self) -> None:
        if self._reading and self._transport is not None:
            self._reading = False
            self._transport.pause_reading()

    def _go_on(self) -> None:
        if self._reading or self._stopping or self._closing or self._is_full():
            return
        self._reading = True
        if self._received >= self._needed:
            self._take_frames()
        if self._reading and not self._closing and self._transport is not None:
            self._transport.resume_reading()

    # --- answers ------------------------------------------------------------------------------------------------------

    def answered(self, context: RequestContext, response: list[Buffer]) -> None:
        """Send what has become ready at the head of the queue, at the end of this turn of the loop.

        From now on the request's place counts for the bytes of its answer, which are held until they are sent.
        """
        size = sum(map(len, response))
        self._unanswered_bytes += size - context.size
        context.size = size
        unanswered = self._unanswered
        while unanswered and (ready := unanswered[0].response) is not None:
            first = unanswered.popleft()
            first.response = []  # whoever still knows the request must not keep its answer alive
            size = first.size
            self._unanswered_bytes -= size
            self._outgoing_bytes += size
            self._outgoing.extend(ready)
        if not self._flush_scheduled and not self._closing:
            self._flush_scheduled = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_scheduled = False
        if self._transport is None:
            return
        if self._outgoing:
            outgoing, self._outgoing = self._outgoing, []
            self._outgoing_bytes = 0
            self._last_active = self._loop.time()
            self._transport.writelines(outgoing)
        self._go_on()

    # --- the end ------------------------------------------------------------------------------------------------------

    def refuse(self, reason: str) -> None:
        """Close the connection because of what the client sent; say so in one line."""
        if not self._closing:
            logger.warning("closing the connection of %s: %s", self.peer, reason)
            self._end()

    def _look_whether_idle(self) -> None:
        owes = bool(self._unanswered) or self._write_paused
        idle_seconds = 0.0 if owes else self._loop.time() - self._last_active
        if not owes and idle_seconds >= self._max_idle_seconds:
            self._idle_timer = None
            self.close()
        else:
            left = self._max_idle_seconds - idle_seconds
            self._idle_timer = self._loop.call_later(left, self._look_whether_idle)

    def stop_taking_requests(self) -> None:
        """Read no more; what has been read is still answered."""
        self._stopping = True
        self._stop_reading()

    def close(self) -> None:
        """Close once everything that is ready has been sent."""
        if not self._closing:
            self._end()

    def abort(self) -> None:
        """Close at once."""
        self._closing = True
        if self._transport is not None:
            self._transport.abort()

    def _end(self) -> None:
        self._closing = True
        self._chunks.clear()
        if self._transport is not None:
            if self._outgoing:
                outgoing, self._outgoing = self._outgoing, []
                self._transport.writelines(outgoing)
            self._transport.close()
