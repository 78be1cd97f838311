"""Timers: commands that the core asks to be sent later."""

from collections.abc import Callable

from exacta.core.commands import Command
from exacta.core.outcome import Timer
from exacta.engine.deadlines import Deadlines


class Timers:
    """Sends each command once its time has come. Of equal commands only the earliest is kept: it asks for more then."""

    def __init__(self, deadlines: Deadlines, send: Callable[[Command], object]) -> None:
        self._deadlines = deadlines
        self._send = send
        self._due_ms: dict[Command, int] = {}

    def __contains__(self, command: Command) -> bool:
        return command in self._due_ms

    def set(self, timer: Timer) -> None:
        """Send the timer's command at its time, unless an equal one will be sent earlier already."""
        command, at_ms = timer.command, timer.at_ms
        if self._due_ms.get(command, at_ms + 1) <= at_ms:
            return
        self._due_ms[command] = at_ms
        self._deadlines.add(at_ms, lambda: self._fire(command, at_ms))

    def _fire(self, command: Command, at_ms: int) -> None:
        if self._due_ms.get(command) == at_ms:
            del self._due_ms[command]
            self._send(command)
