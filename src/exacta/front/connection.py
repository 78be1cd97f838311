"""A client's connection whose bytes are frames: bytes to frames, answers to bytes, and the memory that both may hold.

A frame is a size of four bytes, which does not count itself, and this many bytes. This module owns the assembly of
frames, back-pressure and fairness. It knows no protocol: a front derives its connection from `FramedConnection` and
says what a frame means.

Theory of operation. The hooks are what a front overrides; the services are what it calls.

| hook | when it is called |
|---|---|
| `wrong_size` | a size field is out of bounds: the body is not read, and the connection ends for the returned reason |
| `may_begin` | a frame is whole while an answer is owed or the answers' budget is full: False lets the frame wait |
| `receive` | a frame begins: from now on the connection owes an answer to it |
| `has_room` | there may be room for an answer that the front has kept back |
| `described` | a line in the log names a frame |
| `on_closed` | the connection is gone: the front forgets what it owes |

| service | what the front says by it |
|---|---|
| `answer_made` | the answer to one frame is there: the bytes of the frame are free, those of the answer are held |
| `send_answer` | that answer leaves at the end of this turn; the front alone decides in which order |
| `take_room` | an answer that may be long needs room before it is made |
| `push` | bytes leave that answer no frame |
| `work` | a frame takes many steps, or a thread |
| `mute` | no further frame begins for some time, and nothing is read: the client has used its quota |
| `refuse` | the client sent what cannot be understood: the connection ends, with one line in the log |

A frame that wants no answer is answered with no bytes. What has become ready during one turn of the event loop is
written at its end in one call.

Back-pressure: reading stops while too many frames are owed an answer, or too many bytes of them and of their answers
are held, while the client does not read what it asked for, and while all connections together hold too much
(`memory.py`). Until a frame is whole, nothing is held except what has arrived.

Fairness: in one turn of the event loop at most `MAX_FRAMES_PER_TURN` frames begin, and none once the turn is used up
(`turns.py`); the rest waits for the next turn, behind what other clients have sent meanwhile. While the connection
works in steps (`work`), no further frame of it begins.

It reads bytes before a login.
"""

import asyncio
import struct
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from exacta.config.configuration import Configuration
from exacta.front.client_connection import ClientConnection
from exacta.front.memory import (
    ALLOWANCE_BYTES,
    LONG_READ_BYTES,
    READ_BYTES,
    WRITE_HIGH_WATER_BYTES,
    Memory,
    MemoryBudget,
)
from exacta.front.turns import Steps
from exacta.ports.record_format import Buffer

MAX_FRAMES_PER_TURN = 32
"""Clients have no more in flight, unless they do nothing else."""

MAX_OUTGOING_BYTES = 4 << 20

SIZE_BYTES = 4

_size_of = struct.Struct(">i").unpack_from


class FramedConnection(ClientConnection):
    """One connection whose bytes are frames. `largest_frame` is in bytes, without the size field."""

    smallest_frame: int
    """The fewest bytes that a frame may have, without its size field."""

    def __init__(
        self,
        configuration: Configuration,
        memory: Memory,
        loop: asyncio.AbstractEventLoop,
        register: Callable[[Any], bool],
        forget: Callable[[Any], None],
        *,
        largest_frame: int,
    ) -> None:
        super().__init__(configuration, memory, loop, register, forget)
        self._largest_frame = largest_frame
        self._memory = memory
        self._requests = memory.requests
        self._max_owed_bytes = configuration.queued_max_request_bytes_per_connection
        self._max_owed = configuration.max_in_flight_requests_per_connection
        self._begun: bytes | bytearray = b""
        """The bytes that have come of a frame that is not whole, or of several that are not taken yet."""
        self._needed = SIZE_BYTES
        self._last_frame_bytes = 0
        """The size field that came last; its frame may not be whole."""
        self._watched = False
        self._received_bytes = 0
        self._held_bytes = 0
        """The bytes that have come and are not answered; `_done_bytes` of them were answered in this turn."""
        self._done_bytes = 0
        self._begun_this_turn = 0
        self._turns = memory.turns
        self._waits_for_turn = self._has_turn = False
        self._at_work = 0
        """The number of frames that are worked on in steps; no other begins meanwhile."""
        self._owed_bytes = 0
        """The bytes of the frames that are owed an answer, or of their answers where these are made and held back."""
        self._reading = True
        self._stopping = False
        self._mute: asyncio.TimerHandle | None = None
        """The end of the time in which no frame begins, at `_muted_until_s`; None: they begin."""
        self._muted_until_s = 0.0

    # --- hooks: what a front says of its protocol ---------------------------------------------------------------------

    @abstractmethod
    def wrong_size(self, size: int, beginning: bytes) -> str:
        """Return why a frame of this size is refused; `beginning` are the four bytes that were read as its size."""

    @abstractmethod
    def may_begin(self, frame: memoryview) -> bool:
        """Return whether a frame may begin now; else it is asked again after an answer, or when answers have room.

        It must not keep the frame.
        """

    @abstractmethod
    def receive(self, frame: memoryview) -> None:
        """Begin to work on one frame, given without its size field. It must raise nothing."""

    def has_room(self) -> None:
        """Make one answer that waited, if there is one; called while an answer is owed."""

    def described(self, frame: memoryview) -> str:
        """Return what a frame is, in a few words, and who sent it."""
        return f"a frame of {len(frame)} bytes from {self.peer}"

    @abstractmethod
    def on_closed(self) -> int:
        """Forget what is owed; return the bytes of the frames that are still worked on.

        For each of these `answer_made` is called when its work ends.
        """

    # --- asyncio's side -----------------------------------------------------------------------------------------------

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget everything; answers that come later find nobody."""
        self._closing = True
        self._transport = None
        self._outgoing.clear()
        if self._mute is not None:
            self._mute.cancel()
        self._held_bytes -= self.on_closed()
        self._begun = b""
        self._done_bytes = 0
        self._requests.give(self._held_bytes)
        self._requests.leave(self)
        self._answers.give(self._answer_bytes)
        self._answers.leave(self)
        self._gone()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where the next bytes are put: one place for all connections, since it is emptied at once."""
        requests = self._requests
        room = requests.most_bytes - requests.used_bytes
        if room > 0:
            is_long = self._last_frame_bytes > READ_BYTES and room >= LONG_READ_BYTES
            return self._memory.long_buffer if is_long else self._memory.buffer
        if requests.let_on is self and self.is_half_read():
            return self._memory.buffer[: self._needed - len(self._begun)]
        return self._memory.scarce_buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Take the bytes out of the buffer."""
        self.data_received(self._memory.long_buffer[:nbytes])

    def data_received(self, data: Buffer) -> None:
        """Collect until the frame that has begun is whole."""
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
            elif self._requests.used_bytes >= self._requests.most_bytes and not self._closing and not self._may_read():
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
        if self._outgoing and not self._flush_scheduled:
            self._flush_scheduled = True
            self._loop.call_soon(self._flush)
        self.room_again()

    # --- frames -------------------------------------------------------------------------------------------------------

    def _take_frames(self) -> bool:
        """Begin all frames that are whole; return False where some must wait, and `_go_on` will be called."""
        data, answers, turns = self._begun, self._answers, self._turns
        view = memoryview(data)
        position, end, needed = 0, len(data), SIZE_BYTES
        took_all = True
        while end - position >= SIZE_BYTES:
            if self._is_full():
                took_all = False
                break
            size = self._last_frame_bytes = _size_of(data, position)[0]
            if not self.smallest_frame <= size <= self._largest_frame:
                self.refuse(self.wrong_size(size, bytes(data[position : position + SIZE_BYTES])))
                return True
            stop = position + SIZE_BYTES + size
            if stop > end:
                needed = SIZE_BYTES + size
                break
            frame = view[position + SIZE_BYTES : stop]
            if (self._owed or answers.used_bytes >= answers.most_bytes) and not self.may_begin(frame):
                if not self._owed:
                    answers.wait(self)
                took_all = False
                break
            self._begun_this_turn += 1
            self._has_turn = False  # one frame begins in any case
            self._owed += 1
            self._owed_bytes += SIZE_BYTES + size
            began_s = turns.clock()
            self.receive(frame)
            turns.note(began_s, lambda frame=frame: self.described(frame))  # type: ignore[misc]
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

    # --- back-pressure ------------------------------------------------------------------------------------------------

    def _is_full(self) -> bool:
        if self._begun_this_turn >= MAX_FRAMES_PER_TURN:
            self._flush_soon()
            return True
        if self._at_work or self._waits_for_turn:
            return True
        if not self._has_turn and self._turns.is_used_up():
            self._waits_for_turn = True
            self._turns.wait(self._turn_came)
            return True
        return (
            self._write_paused
            or self._mute is not None
            or self._owed >= self._max_owed
            or self._owed_bytes >= self._max_owed_bytes
            or self._outgoing_bytes >= MAX_OUTGOING_BYTES
        )

    def _may_read(self) -> bool:
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

    def stop_taking_requests(self) -> None:
        """Read no more; what has been read is still answered."""
        self._stopping = True
        self._stop_reading()

    def _go_on(self) -> None:
        if self._reading or self._stopping or self._closing or self._is_full():
            return
        if len(self._begun) >= self._needed and not self._take_frames():
            return
        if self._mute is not None:
            return
        if not self._may_read():
            self._requests.wait(self)
        elif not self._closing and self._transport is not None:
            self._reading = True
            self._transport.resume_reading()

    def mute(self, seconds: float) -> None:
        """Begin no frame for this time, and read nothing; what has begun is answered.

        A longer time that was said before holds. While others wait for memory, a connection that holds more than its
        allowance meanwhile is given up.
        """
        until_s = self._loop.time() + seconds
        if self._closing or (self._mute is not None and self._muted_until_s >= until_s):
            return
        if self._mute is None:
            self._requests.watch(self)
        else:
            self._mute.cancel()
        self._muted_until_s = until_s
        self._mute = self._loop.call_later(seconds, self._unmute)
        self._stop_reading()

    @property
    def is_muted(self) -> bool:
        """Return whether no frame begins, because the client has used its quota."""
        return self._mute is not None

    def _unmute(self) -> None:
        self._mute = None
        self._last_active = self._loop.time()
        if not self._watched:
            self._requests.unwatch(self)
        self.room_again()

    def _turn_came(self) -> None:
        self._waits_for_turn, self._has_turn = False, True
        self._go_on()
        self._has_turn = False

    def work(
        self, steps: Steps, failed: Callable[[], None], abandoned: Callable[[], None], what: Callable[[], str]
    ) -> None:
        """Do work in steps; see `Turns.take`. No further frame begins until it has ended.

        When the connection ends, or the server stops, the rest of the steps is not taken. Then `abandoned` is called,
        and the connection is closed: nobody gets the answer.
        """
        is_open = True

        def is_wanted() -> bool:
            nonlocal is_open
            if is_open and (self._closing or self._stopping):
                is_open = False
            return is_open

        def ended() -> None:
            self._at_work -= 1
            if not is_open:
                self.close()
                abandoned()
            elif not self._reading:
                self._flush_soon()

        self._at_work += 1
        self._turns.take(steps, self.peer_host, is_wanted, failed, ended, what)

    def room_again(self) -> None:
        """See `BudgetedConnection`."""
        if self._owed:
            self.has_room()
        self._go_on()

    def moved_bytes(self, budget: MemoryBudget) -> int | None:
        """See `BudgetedConnection`."""
        if budget is self._answers:
            return self._left_bytes()
        if self._mute is not None:
            return self._received_bytes if self._held_bytes > ALLOWANCE_BYTES else None
        return self._received_bytes if self._reading or self._write_paused else None

    def is_half_read(self) -> bool:
        """See `BudgetedConnection`."""
        return SIZE_BYTES < self._needed > len(self._begun)

    def give_up(self, budget: MemoryBudget) -> None:
        """See `BudgetedConnection`."""
        what = "does not take its answers" if budget is self._answers else "does not send the rest of its request"
        if self._mute is not None and budget is self._requests:
            what = "has used its quota and holds requests meanwhile"
        self.logger.warning(
            "closing the connection of %s, which %s: others wait for the memory (%s=%d)",
            self.peer,
            what,
            budget.option,
            budget.most_bytes,
        )
        self.abort()

    # --- answers ------------------------------------------------------------------------------------------------------

    def take_room(self, size: int) -> int | None:
        """Take room for an answer of `size` bytes, or for as much of it as there is; return how long it may be.

        None: there is no room, and `has_room` will be called. Of the returned length at most `size` bytes are taken.
        """
        if self._write_paused or self._closing:
            return None
        answers = self._answers
        if size > WRITE_HIGH_WATER_BYTES and answers.is_full():
            answers.wait(self)
            return None
        most_bytes = answers.share()
        taken = min(size, most_bytes)
        answers.used_bytes += taken
        self._answer_bytes += taken
        return most_bytes

    def answer_made(self, frame_bytes: int, answer_bytes: int, reserved_bytes: int = 0) -> bool:
        """Count the answer to one frame in its place; return False where nobody hears it any more.

        `frame_bytes` count the size field. `reserved_bytes` are counted already, by `take_room`.
        """
        if self._closing:
            self._held_bytes -= frame_bytes
            self._requests.give(frame_bytes)
            return False
        self._done_bytes += frame_bytes
        self._answers.used_bytes += answer_bytes - reserved_bytes
        self._answer_bytes += answer_bytes - reserved_bytes
        self._owed_bytes += answer_bytes - frame_bytes
        if not self._flush_scheduled:
            self._flush_scheduled = True
            self._loop.call_soon(self._flush)
        return True

    def send_answer(self, answer: Sequence[Buffer], answer_bytes: int) -> None:
        """Send an answer that was made, at the end of this turn of the loop: it is owed no more."""
        self._owed -= 1
        self._owed_bytes -= answer_bytes
        self._outgoing_bytes += answer_bytes
        self._outgoing += answer

    def _flush(self) -> None:
        self._flush_scheduled = False
        self._begun_this_turn = 0
        if self._transport is None:
            return
        if self._done_bytes:
            self._give_requests()
        if self._outgoing:
            self._last_active = self._loop.time()
            size = self._send()
            self._sent_bytes += size
            if self._write_paused:
                self._leaving_bytes += size
            else:
                self._answer_bytes -= size
                self._answers.used_bytes -= size
                if self._answers.line:
                    self._answers.wake()
        if self._owed:
            self.has_room()
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
