"""Long work on bytes, such as conversions between the protocols and compressions: it is done on threads.

What is unpacked may be many times as long as it lies in the log, and is there beside it. So `MOST_AT_ONCE` pieces are
worked on at a time for all clients, and the memory of each is bounded by what may be decompressed at once. The pieces
of one owner, which is a client's host (`hosts.share_of`), are done one after another in their order: so one client
keeps neither another one nor the event loop from the machine's processors. Short work is done where it is asked for,
because the way to a thread and back takes longer.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

from exacta.front.hosts import share_of
from exacta.front.threads import on_thread
from exacta.records.work import SHORT_BYTES

T = TypeVar("T")
OnThread = Callable[[Callable[[], Any], Callable[[Any], None]], None]
"""Call the first function on a thread, and the second one with what came of it, an exception included."""

MOST_AT_ONCE: Final = 2
"""One client's long piece leaves room for another client's. More threads would take the event loop's processor."""


class _Piece(NamedTuple):
    work: Callable[[], Any]
    done: Callable[[Any], None]
    is_wanted: Callable[[], bool]


class Conversions:
    """Does the work of all fronts."""

    def __init__(self, on_thread: OnThread = on_thread) -> None:
        """Begin; long work goes to `on_thread`, which calls back on the loop."""
        self._start = on_thread
        self._waiting: dict[str, deque[_Piece]] = {}
        """The pieces that wait, by their owners; whose turn is next comes first, and nobody without a piece."""
        self._at_work: set[str] = set()
        """The owners of the pieces that are worked on."""

    def convert(
        self,
        size: int,
        work: Callable[[], T],
        done: Callable[[T | Exception], None],
        is_wanted: Callable[[], bool] = lambda: True,
        owner: str = "",
    ) -> None:
        """Call back with what comes of the work on this many bytes, an exception included; at once where they are few.

        Work that is its owner's next and is not wanted any more is forgotten, with what it holds, when other work of
        the owner comes.
        """
        if size <= SHORT_BYTES:
            done(_tried(work))
        else:
            self.on_thread(work, done, is_wanted, owner)

    def on_thread(
        self,
        work: Callable[[], T],
        done: Callable[[T | Exception], None],
        is_wanted: Callable[[], bool] = lambda: True,
        owner: str = "",
    ) -> None:
        """Do the same on a thread, whatever the size."""
        owner = share_of(owner)
        waiting = self._waiting.setdefault(owner, deque())
        waiting.append(_Piece(work, done, is_wanted))
        _forget_unwanted(waiting)
        self._go_on()

    def _go_on(self) -> None:
        while len(self._at_work) < MOST_AT_ONCE:
            owner = next((each for each in self._waiting if each not in self._at_work), None)
            if owner is None:
                return
            waiting = self._waiting.pop(owner)
            _forget_unwanted(waiting)
            if waiting:
                piece = waiting.popleft()
                if waiting:
                    self._waiting[owner] = waiting  # behind the other owners
                self._begin(owner, piece)

    def _begin(self, owner: str, piece: _Piece) -> None:
        self._at_work.add(owner)

        def converted(found: Any) -> None:
            self._at_work.discard(owner)
            try:
                piece.done(found)
            finally:
                self._go_on()

        self._start(piece.work, converted)


def _forget_unwanted(waiting: deque[_Piece]) -> None:
    while waiting and not waiting[0].is_wanted():
        waiting.popleft()


def _tried(work: Callable[[], T]) -> T | Exception:
    try:
        return work()
    except Exception as error:  # noqa: BLE001  # as from a thread
        return error
