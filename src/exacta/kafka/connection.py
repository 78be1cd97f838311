"""One client's connection: bytes to requests, answers to bytes.

Owns frame assembly, the order of answers, back-pressure, and what becomes of a client that sends nonsense. Owns no API.

Theory of operation. Requests are handed to their handlers the moment they are whole, without waiting for the answers to
earlier ones (pipelining); each is a place in a queue, and answers leave strictly in that order. What has become ready
during one turn of the event loop is written at its end in one call. A request larger than `socket.request.max.bytes` is
refused by its size field alone, before its body is read; until a frame is whole, nothing is held but what has arrived.
One of more elements than `request_size.py` allows is refused before the one too many is read: with an error code where
that alone is an answer, else by the end of the connection.

Back-pressure: reading stops while too many requests, or too many bytes of them and of their answers, are held, while
the client does not read what it asked for, and while all connections together hold too much (`memory.py`). What may be
long is made for the head of the queue only: a fetch waits for records wherever it stands, and reads them when all
earlier answers are on their way.

Fairness: in one turn of the event loop at most `MAX_REQUESTS_PER_TURN` requests are begun; the rest waits for the next
turn, behind what other clients have sent meanwhile.

A connection on which nothing has come or gone for `connections.max.idle.ms` is closed, unless we owe it an answer:
clients connect again when they need to. One that is not let in (`connection_limits.py`) is closed before it is read.

A client that sends what cannot be understood loses this connection, with one line in the log, and nothing else happens.
"""

import asyncio
import logging
import socket
import struct
from collections import deque
from collections.abc import Callable
from typing import cast

from exacta.engine.fetch import Admitted
from exacta.front.memory import ALLOWANCE_BYTES, LONG_ANSWERS, LONG_READ_BYTES, READ_BYTES, Budget
from exacta.kafka.broker import BrokerContext
from exacta.kafka.context import Fetch, RequestContext
from exacta.kafka.handlers import HANDLERS
from exacta.kafka.request_size import most_elements
from exacta.protocol.kafka.codec import DecodeError, TooManyElements, decode_request, decode_request_header
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.schema import Buffer

logger = logging.getLogger("exacta.kafka")

MAX_REQUESTS_PER_TURN = 32
"""A millisecond's work, or two: more than clients have in flight, unless they do nothing else."""

WRITE_HIGH_WATER_BYTES = 64 << 10
"""What the transport may hold of answers before that counts, and their client is read no more."""

MAX_OUTGOING_BYTES = 4 << 20

_HTTP = frozenset({b"GET ", b"POST", b"HEAD", b"PUT ", b"OPTI", b"DELE", b"PATC", b"CONN", b"TRAC", b"PRI "})
"""How requests of HTTP begin; read as sizes, all are above a gigabyte."""
_TLS_HANDSHAKE = b"\x16\x03"

_size_of = struct.Struct(">i").unpack_from
_key_of = struct.Struct(">h").unpack_from
_SIZE_BYTES = 4
_SMALLEST_REQUEST_BYTES = 8  # API key, version, correlation id


def foreign_protocol(beginning: bytes) -> str | None:
    """Say what came instead of the size of a request, by its four bytes; None: it is nothing that is known here."""
    if beginning in _HTTP:
        return "an HTTP request came to the Kafka port"
    if beginning.startswith(_TLS_HANDSHAKE):
        return "a TLS handshake came to the Kafka port, which speaks no TLS: clients set security.protocol=PLAINTEXT"
    return None


class Connection(asyncio.BufferedProtocol):
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
        self.client_software = ""
        """The client names its software here (KIP-511); empty: it has not yet."""
        self.rests_on = 0
        """The number of the last commit group that an answer on this connection rests on (decision 0028)."""
        self._max_request_bytes = broker.configuration.socket_request_max_bytes
        self._most_elements = most_elements(broker.configuration.limits())
        self._memory = broker.memory
        self._requests = broker.memory.requests
        self._answers = broker.memory.answers
        self._max_unanswered_bytes = broker.configuration.queued_max_request_bytes_per_connection
        self._max_unanswered = broker.configuration.max_in_flight_requests_per_connection
        self._max_idle_seconds = broker.configuration.connections_max_idle_ms / 1000
        self._idle_timer: asyncio.TimerHandle | None = None
        self._last_active = 0.0
        self._admitted = False
        self._transport: asyncio.Transport | None = None
        self._begun: bytes | bytearray = b""
        """What has come of a request that is not whole, or of several that are not taken yet."""
        self._needed = _SIZE_BYTES
        self._last_request_bytes = 0
        """What the size field says that came last; the request may not be whole."""
        self._watched = False
        self._received_bytes = 0
        self._held_bytes = 0
        """Of requests, come and not answered; those of `_done_bytes` are, in this turn of the loop."""
        self._done_bytes = 0
        self._taken_this_turn = 0
        self._unanswered: deque[RequestContext] = deque()
        self._unanswered_bytes = 0
        self._outgoing: list[Buffer] = []
        self._outgoing_bytes = 0
        self._answer_bytes = 0
        """Of answers, made or reserved, and not with the peer yet; those of `_leaving_bytes` are with the transport."""
        self._leaving_bytes = 0
        self._sent_bytes = 0
        self._sent_before = 0
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
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
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
        waiting, self._unanswered = self._unanswered, deque()
        self._outgoing.clear()
        for context in waiting:
            if context.fetch is not None:
                self._broker.engine.forget_fetch(context.fetch.request)
                context.fetch.admitted = None
                context.size = 0
            elif context.response is None:
                self._held_bytes -= context.size  # whoever is at work on it still holds it; see `answered`
        self._begun = b""
        self._done_bytes = 0
        self._requests.give(self._held_bytes)
        self._requests.leave(self)
        self._answers.give(self._answer_bytes)
        self._answers.leave(self)
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        if self._admitted:
            self._forget(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where the next bytes are put: one place for all connections, since it is emptied at once."""
        requests = self._requests
        room = requests.most_bytes - requests.used_bytes
        if room > 0:
            is_long = self._last_request_bytes > READ_BYTES and room >= LONG_READ_BYTES
            return self._memory.long_buffer if is_long else self._memory.buffer
        if requests.let_on is self and self.is_half_read():
            return self._memory.buffer[: self._needed - len(self._begun)]
        return self._memory.scarce_buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Take the bytes out of the buffer."""
        self.data_received(self._memory.long_buffer[:nbytes])

    def data_received(self, data: Buffer) -> None:
        """Collect until the request that has begun is whole."""
        size = len(data)
        self._last_active = self._loop.time()
        self._received_bytes += size
        self._held_bytes += size
        self._requests.used_bytes += size
        if not self._begun:
            self._begun = bytes(data)
        else:
            if not isinstance(self._begun, bytearray):
                self._begun = bytearray(self._begun)
            self._begun += data
        if self._reading:
            if len(self._begun) >= self._needed and not self._take_frames():
                self._stop_reading()
            elif self._requests.used_bytes >= self._requests.most_bytes and not self._closing and not self._has_room():
                self._stop_reading()
                self._requests.wait(self)

    def pause_writing(self) -> None:
        """Stop reading from a client that does not read."""
        self._write_paused = True
        self._answers.watch(self)

    def resume_writing(self) -> None:
        """Go on: the peer has taken what the transport had."""
        self._write_paused = False
        self._last_active = self._loop.time()
        self._answers.unwatch(self)
        self._answer_bytes -= self._leaving_bytes
        leaving, self._leaving_bytes = self._leaving_bytes, 0
        self._answers.give(leaving)
        self._admit_first()
        self._go_on()

    # --- requests -----------------------------------------------------------------------------------------------------

    def _take_frames(self) -> bool:
        """Begin all requests that are whole; return False where some must wait, and `_go_on` will be called."""
        data = self._begun
        view = memoryview(data)
        position, end, needed = 0, len(data), _SIZE_BYTES
        took_all = True
        while end - position >= _SIZE_BYTES:
            if self._is_full():
                took_all = False
                break
            size = self._last_request_bytes = _size_of(data, position)[0]
            if size > self._max_request_bytes:
                self.refuse(
                    foreign_protocol(bytes(data[position : position + _SIZE_BYTES]))
                    or f"a request of {size} bytes is above socket.request.max.bytes={self._max_request_bytes}"
                )
                return True
            if size < _SMALLEST_REQUEST_BYTES:
                self.refuse(f"a request of {size} bytes cannot be one")
                return True
            stop = position + _SIZE_BYTES + size
            if stop > end:
                needed = _SIZE_BYTES + size
                break
            full = self._answers.used_bytes >= self._answers.most_bytes
            if (full or self._unanswered) and _key_of(data, position + _SIZE_BYTES)[0] in LONG_ANSWERS:
                if not self._unanswered:
                    self._answers.wait(self)
                took_all = False
                break
            self._receive(view[position + _SIZE_BYTES : stop])
            if self._closing:
                return True
            position = stop
        if position:  # a copy, so that a beginning of a few bytes does not keep all of them alive
            self._begun = data[position:]
        self._needed = needed
        if self._watched is not (needed > ALLOWANCE_BYTES):
            self._watched = not self._watched
            (self._requests.watch if self._watched else self._requests.unwatch)(self)
        return took_all

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
        self._taken_this_turn += 1
        version = header.api_version
        size = _SIZE_BYTES + len(frame)
        context = RequestContext(self, handler, version, header.correlation_id, header.client_id or "", size)
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
        if self._taken_this_turn >= MAX_REQUESTS_PER_TURN:
            self._flush_soon()
            return True
        return (
            self._write_paused
            or len(self._unanswered) >= self._max_unanswered
            or self._unanswered_bytes >= self._max_unanswered_bytes
            or self._outgoing_bytes >= MAX_OUTGOING_BYTES
        )

    def _has_room(self) -> bool:
        requests = self._requests
        return (
            requests.used_bytes < requests.most_bytes
            or self._held_bytes <= ALLOWANCE_BYTES
            or (self.is_half_read() and requests.lets_on(self))
        )

    def _stop_reading(self) -> None:
        if self._reading and self._transport is not None and not self._closing:
            self._reading = False
            self._transport.pause_reading()

    def _go_on(self) -> None:
        if self._reading or self._stopping or self._closing or self._is_full():
            return
        if len(self._begun) >= self._needed and not self._take_frames():
            return
        if not self._has_room():
            self._requests.wait(self)
        elif not self._closing and self._transport is not None:
            self._reading = True
            self._transport.resume_reading()

    def room_again(self) -> None:
        """See `Holder`."""
        self._admit_first()
        self._go_on()

    def moved_bytes(self, budget: Budget) -> int | None:
        """See `Holder`."""
        if budget is self._answers:
            return self._left_bytes()
        return self._received_bytes if self._reading or self._write_paused else None

    def is_half_read(self) -> bool:
        """See `Holder`."""
        return _SIZE_BYTES < self._needed > len(self._begun)

    def give_up(self, budget: Budget) -> None:
        """See `Holder`."""
        what = "does not take its answers" if budget is self._answers else "does not send the rest of its request"
        logger.warning(
            "closing the connection of %s, which %s: others wait for the memory (%s=%d)",
            self.peer,
            what,
            budget.option,
            budget.most_bytes,
        )
        self.abort()

    def _left_bytes(self) -> int:
        """Return how many bytes of answers the transport has got rid of."""
        transport = self._transport
        return self._sent_bytes - (0 if transport is None else transport.get_write_buffer_size())

    # --- answers ------------------------------------------------------------------------------------------------------

    def answered(self, context: RequestContext, response: list[Buffer]) -> None:
        """Send what has become ready at the head of the queue, at the end of this turn of the loop.

        From now on the request's place counts for the bytes of its answer, which are held until they are sent.
        """
        if self._closing:
            self._held_bytes -= context.size
            self._requests.give(context.size)
            context.response = []
            return
        self._done_bytes += context.size
        size = sum(map(len, response))
        more = size if context.fetch is None else size - context.fetch.reserved_bytes
        self._answers.used_bytes += more
        self._answer_bytes += more
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
        if not self._flush_scheduled:
            self._flush_scheduled = True
            self._loop.call_soon(self._flush)

    def admit(self, fetch: Fetch, size: int, admitted: Admitted) -> None:
        """Call back when there is room for an answer of this size, or for a shorter one, and all earlier ones left."""
        if not self._closing:
            fetch.found_bytes, fetch.admitted = size, admitted
            self._admit_first()

    def _admit_first(self) -> None:
        if not self._unanswered or self._write_paused or self._closing:
            return
        context, answers = self._unanswered[0], self._answers
        fetch = context.fetch
        if fetch is None or fetch.admitted is None:
            return
        if fetch.found_bytes > WRITE_HIGH_WATER_BYTES and answers.is_full():
            answers.wait(self)
            return
        admitted, fetch.admitted = fetch.admitted, None
        most_bytes = answers.share()
        fetch.reserved_bytes = min(fetch.found_bytes, most_bytes)
        answers.used_bytes += fetch.reserved_bytes
        self._answer_bytes += fetch.reserved_bytes
        try:
            admitted(most_bytes)
        except Exception:  # noqa: BLE001  # as in `_receive`
            context.fail()

    def _flush_soon(self) -> None:
        if not self._flush_scheduled and not self._closing:
            self._flush_scheduled = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_scheduled = False
        self._taken_this_turn = 0
        if self._transport is None:
            return
        if self._done_bytes:
            self._give_requests()
        if self._outgoing:
            outgoing, self._outgoing = self._outgoing, []
            size, self._outgoing_bytes = self._outgoing_bytes, 0
            self._last_active = self._loop.time()
            self._sent_bytes += size
            self._transport.writelines(outgoing)
            if self._write_paused:
                self._leaving_bytes += size
            else:
                self._answer_bytes -= size
                self._answers.used_bytes -= size
                if self._answers.line:
                    self._answers.wake()
        if self._unanswered:
            self._admit_first()
        if not self._reading:
            self._go_on()

    def _give_requests(self) -> None:
        requests = self._requests
        done, self._done_bytes = self._done_bytes, 0
        self._held_bytes -= done
        requests.used_bytes -= done
        if requests.line:
            requests.wake()
        if requests.let_on is self and self._held_bytes <= ALLOWANCE_BYTES:
            requests.pass_on()

    # --- the end ------------------------------------------------------------------------------------------------------

    @property
    def engine_has_failed(self) -> bool:
        """Whether the process is about to end, and nothing in memory may be relied on."""
        return self._broker.engine.failed is not None

    def refuse(self, reason: str) -> None:
        """Close the connection because of what the client sent; say so in one line."""
        if not self._closing:
            logger.warning("closing the connection of %s: %s", self.peer, reason)
            self._end()

    def _look_whether_idle(self) -> None:
        if self._write_paused:
            owes, left_bytes = False, self._left_bytes()
            if left_bytes != self._sent_before:
                self._sent_before, self._last_active = left_bytes, self._loop.time()
        else:
            owes = bool(self._unanswered)
        idle_seconds = 0.0 if owes else self._loop.time() - self._last_active
        if not owes and idle_seconds >= self._max_idle_seconds:
            self._idle_timer = None
            if self._write_paused:
                self.abort()  # what it has not taken it would not take now
            else:
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

    def close_if_idle(self) -> bool:
        """Close, or do nothing and return False where an answer is owed."""
        if self._unanswered and not self._closing:
            return False
        self.close()
        return True

    def abort(self) -> None:
        """Close at once."""
        self._closing = True
        if self._transport is not None:
            self._transport.abort()

    def _end(self) -> None:
        self._closing = True
        if self._transport is not None:
            if self._outgoing:
                outgoing, self._outgoing = self._outgoing, []
                self._transport.writelines(outgoing)
            self._transport.close()
