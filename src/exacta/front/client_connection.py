"""A client's connection without its frames: who the client is, what leaves for it, when it is idle, and how it ends.

`FramedConnection` (`connection.py`) adds what comes from the client. The bytes that leave count in the answers' budget
(`memory.py`) from the moment when room is taken for them until the peer's side of the transport has them.

A connection on which nothing has come or gone for `connections.max.idle.ms` is closed, unless it owes an answer:
clients connect again when they need to. One that is not let in (`connection_limits.py`) is closed before it is read,
and one whose login holds no more at once (`revocation.py`).
"""

import asyncio
import logging
import socket
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, cast

from exacta.config.configuration import Configuration
from exacta.front.arrivals import Arrivals
from exacta.front.hosts import same_host
from exacta.front.identity import Identify, NotIdentified, anonymous
from exacta.front.memory import WRITE_HIGH_WATER_BYTES, Memory
from exacta.ports.authorizer import ANONYMOUS, Principal
from exacta.ports.record_format import Buffer
from exacta.security.audit import shown
from exacta.security.exchange import Holds, always

SENT_AT_ONCE = 4 << 20
"""This many bytes are handed to the transport in one turn of the loop, which may copy them; the rest follows in others,
when the transport has room."""


class ClientConnection(asyncio.BufferedProtocol, ABC):
    """One connection, created by the listener; `register` and `forget` keep the server's set of them.

    Where `register` returns False, the connection is not let in, and `forget` hears nothing of it.
    """

    logger: ClassVar[logging.Logger]
    """The front's."""
    front: ClassVar[str]
    """The front's name."""

    def __init__(
        self,
        configuration: Configuration,
        memory: Memory,
        loop: asyncio.AbstractEventLoop,
        register: Callable[[Any], bool],
        forget: Callable[[Any], None],
    ) -> None:
        self.configuration = configuration
        self.principal: Principal = ANONYMOUS
        """The principal on whose behalf the client asks."""
        self.identify: Identify = anonymous
        """Says who the client is by its connection alone; a door with TLS sets another one before that is made."""
        self._arrivals: Arrivals | None = None
        """The connections that have to log in first, where this one is of them: its front says so."""
        self.login_has_ended = False
        """True: the connection was closed because what its client has shown of itself holds no more."""
        self._proofs: dict[str, Holds] = {}
        """The ways to ask whether what the client has shown still holds: its certificate, and its login."""
        self._ends_of_proofs: dict[str, asyncio.TimerHandle] = {}
        self.rests_on = 0
        self.peer_host = ""
        self.peer = ""
        self.local_host = ""
        self._loop = loop
        self._register = register
        self._forget = forget
        self._answers = memory.answers
        self._max_idle_seconds = configuration.connections_max_idle_ms / 1000
        self._idle_timer: asyncio.TimerHandle | None = None
        self._last_active = 0.0
        self._admitted = False
        self._transport: asyncio.Transport | None = None
        self._owed = 0
        """The number of frames that have begun and wait for their answers to leave."""
        self._outgoing: deque[Buffer] = deque()
        self._outgoing_bytes = 0
        self._answer_bytes = 0
        """The bytes of answers that are made or reserved, and not with the peer; the transport has `_leaving_bytes`."""
        self._leaving_bytes = 0
        self._sent_bytes = 0
        self._sent_before = 0
        self._flush_scheduled = False
        self._write_paused = False
        self._closing = False
        self._closes_later = False
        """True: the transport is closed when all that is ready has been handed over."""

    # --- the beginning ------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport over."""
        transport = cast("asyncio.Transport", transport)  # uvloop's is one by its methods only
        self._transport = transport
        transport.set_write_buffer_limits(high=WRITE_HIGH_WATER_BYTES)
        peername = transport.get_extra_info("peername") or ("", 0)
        self.peer_host = same_host(str(peername[0]))
        self.peer = f"{self.peer_host}:{peername[1]}"
        self.local_host = same_host(str((transport.get_extra_info("sockname") or ("",))[0]))
        sock = transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        try:
            identity = self.identify(transport)
        except NotIdentified as error:
            self.logger.warning("closing the connection of %s: %s", self.peer, error)
            self.abort()
            return
        self.principal = identity.principal
        self._has_shown("certificate", identity.holds, identity.expires_in_s)
        self._admitted = self._register(self)
        if self._admitted and self._arrivals is not None:
            self._arrivals.comes(self)
        if not self._admitted:
            self.abort()
        elif self._max_idle_seconds >= 0:
            self._last_active = self._loop.time()
            self._idle_timer = self._loop.call_later(self._max_idle_seconds, self._look_whether_idle)

    # --- the login ----------------------------------------------------------------------------------------------------

    def _has_shown(self, what: str, holds: Holds, expires_in_s: float | None) -> None:
        """Note what the client has shown of itself, in place of what it had shown of the kind before."""
        if what == "login" and self._arrivals is not None:
            self._arrivals.leaves(self)
        timer = self._ends_of_proofs.pop(what, None)
        if timer is not None:
            timer.cancel()
        if holds is not always:
            self._proofs[what] = holds
        else:
            self._proofs.pop(what, None)
        if expires_in_s is not None:
            self._ends_of_proofs[what] = self._loop.call_later(expires_in_s, self.end_login)

    def login_holds(self) -> bool:
        """See `RevocableConnection`."""
        return all(holds() for holds in self._proofs.values())

    def end_login(self) -> None:
        """See `RevocableConnection`."""
        if not self.login_has_ended:
            self.login_has_ended = True
            reason = "what it has shown of itself holds no more"
            self.logger.warning("closing the connection of %s (%s): %s", self.peer, shown(str(self.principal)), reason)
            self.abort()

    def let_go(self) -> Iterator[None]:
        """See `RevocableConnection`; a front whose clients hold something has its own."""
        yield from ()

    # --- what leaves --------------------------------------------------------------------------------------------------

    def push(self, buffers: Sequence[Buffer]) -> None:
        """Send what answers no frame, at the end of this turn of the loop."""
        if not self._closing:
            size = sum(map(len, buffers))
            self._answers.used_bytes += size
            self._answer_bytes += size
            self._outgoing_bytes += size
            self._outgoing += buffers
            self._flush_soon()

    def _flush_soon(self) -> None:
        if not self._flush_scheduled and not self._closing:
            self._flush_scheduled = True
            self._loop.call_soon(self._flush)

    def _send(self) -> int:
        """Hand what is ready to the transport, or a part of it; return how many bytes. More follows by `_flush`."""
        transport = self._transport
        assert transport is not None
        if self._outgoing_bytes <= SENT_AT_ONCE:
            outgoing, self._outgoing = self._outgoing, deque()
            size, self._outgoing_bytes = self._outgoing_bytes, 0
            transport.writelines(outgoing)
        else:
            size = 0 if self._write_paused else self._send_part(transport)
            if not self._write_paused:
                self._flush_scheduled = True
                self._loop.call_soon(self._flush)
        if self._closes_later and not self._outgoing:
            transport.close()
        return size

    def _send_part(self, transport: asyncio.Transport) -> int:
        part: list[Buffer] = []
        room = SENT_AT_ONCE
        while room > 0:
            buffer = self._outgoing.popleft()
            if len(buffer) > room:
                self._outgoing.appendleft(memoryview(buffer)[room:])
                buffer = memoryview(buffer)[:room]
            part.append(buffer)
            room -= len(buffer)
        self._outgoing_bytes -= SENT_AT_ONCE
        transport.writelines(part)
        return SENT_AT_ONCE

    @abstractmethod
    def _flush(self) -> None:
        """Send what is ready; called at the end of a turn of the loop."""

    def _left_bytes(self) -> int:
        """Return how many bytes of answers the transport has got rid of."""
        transport = self._transport
        return self._sent_bytes - (0 if transport is None else transport.get_write_buffer_size())

    # --- the end ------------------------------------------------------------------------------------------------------

    def refuse(self, reason: str) -> None:
        """Close the connection because of what the client sent; say so in one line."""
        if not self._closing:
            self.logger.warning("closing the connection of %s: %s", self.peer, reason)
            self._end()

    def _look_whether_idle(self) -> None:
        waits_for_peer = self._write_paused or self._closing
        if waits_for_peer:
            owes, left_bytes = False, self._left_bytes()
            if left_bytes != self._sent_before:
                self._sent_before, self._last_active = left_bytes, self._loop.time()
        else:
            owes = self._owed > 0
        idle_seconds = 0.0 if owes else self._loop.time() - self._last_active
        if not owes and idle_seconds >= self._max_idle_seconds:
            self._idle_timer = None
            if waits_for_peer:
                self.abort()  # what it has not taken it would not take now
            else:
                self.close()
        else:
            left = self._max_idle_seconds - idle_seconds
            self._idle_timer = self._loop.call_later(left, self._look_whether_idle)

    def close(self) -> None:
        """Close once everything that is ready has been sent."""
        if not self._closing:
            self._end()

    def hand_over(self) -> None:
        """Close as well, and tell the client who leads now where its protocol has a word for that."""
        self.close()

    def close_if_idle(self) -> bool:
        """Close, or do nothing and return False where an answer is owed."""
        if self._owed and not self._closing:
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
            self._closes_later = True
            if self._outgoing:
                self._send()
            else:
                self._transport.close()

    def _gone(self) -> None:
        """Leave the server's set, and look no more whether the connection is idle: the transport is gone."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        for timer in self._ends_of_proofs.values():
            timer.cancel()
        if self._arrivals is not None:
            self._arrivals.leaves(self)
        if self._admitted:
            self._forget(self)
