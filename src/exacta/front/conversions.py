"""The conversion of records between the protocols: long work is done on a thread, one piece after another.

A converted batch may be many times as long as it lies in the log, and is there beside it. So there is one such batch at
a time, whoever asks for it, and its memory is bounded by what may be decompressed at once. Short work is done where it
is asked for, because the way to a thread and back takes longer.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

from exacta.front.threads import on_thread

T = TypeVar("T")
OnThread = Callable[[Callable[[], Any], Callable[[Any], None]], None]
"""Call the first function on a thread, and the second one with what came of it, an exception included."""

SHORT_BYTES: Final = 64 << 10
"""The most work, in bytes, that is done on the event loop. It takes about a millisecond."""

_MESSAGE_BYTES: Final = 64
"""The work, in bytes, that a message is beside its own bytes."""


def work_bytes(size: int, offset_count: int) -> int:
    """Return the work of a conversion, in bytes. A few compressed bytes may be very many messages."""
    return size + _MESSAGE_BYTES * offset_count


class _Piece(NamedTuple):
    work: Callable[[], Any]
    done: Callable[[Any], None]
    is_wanted: Callable[[], bool]


class Conversions:
    """Does the work of all fronts."""

    def __init__(self, on_thread: OnThread = on_thread) -> None:
        """Begin; long work goes to `on_thread`, which calls back on the loop."""
        self._on_thread = on_thread
        self._waiting: deque[_Piece] = deque()
        self._is_busy = False

    def convert(
        self,
        size: int,
        work: Callable[[], T],
        done: Callable[[T | Exception], None],
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        """Call back with what comes of the work on so many bytes, an exception included; at once where they are few.

        Work that waits and is not wanted any more is forgotten, with what it holds, as soon as other work comes.
        """
        if size <= SHORT_BYTES:
            done(_tried(work))
            return
        self._waiting = deque(each for each in self._waiting if each.is_wanted())
        self._waiting.append(_Piece(work, done, is_wanted))
        self._go_on()

    def _go_on(self) -> None:
        while self._waiting and not self._waiting[0].is_wanted():
            self._waiting.popleft()
        if self._is_busy or not self._waiting:
            return
        work, done, _ = self._waiting.popleft()
        self._is_busy = True

        def converted(found: Any) -> None:
            self._is_busy = False
            try:
                done(found)
            finally:
                self._go_on()

        self._on_thread(work, converted)


def _tried(work: Callable[[], T]) -> T | Exception:
    try:
        return work()
    except Exception as error:  # noqa: BLE001  # as from a thread
        return error
