"""The line of those who rehearse heartbeats of one group: one after another.

Each decision changes its group. What is rehearsed beside another rehearsal of the group, or waits for a thread behind
one, would be in vain (`core/groups/consumer/rehearsal.py`).
"""

from collections import deque

from exacta.front.turns import Until
from exacta.ports.scheduler import Scheduler


class Rehearsals:
    """The lines of all groups; there is one per server."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._waiting: dict[str, deque[Until]] = {}
        """Group id -> those who wait behind the one that rehearses now."""

    def enter(self, group_id: str) -> Until:
        """Return the pause until it is the turn of this one. What has entered must `leave`, also before its turn."""
        turn = Until()
        line = self._waiting.get(group_id)
        if line is None:
            self._waiting[group_id] = deque()
            turn.set()
        else:
            line.append(turn)
        return turn

    def leave(self, group_id: str, turn: Until) -> None:
        """Let the next one in line go on."""
        line = self._waiting[group_id]
        if turn in line:  # it never had its turn
            line.remove(turn)
        elif line:
            self._scheduler.call_soon(line.popleft().set)
        else:
            del self._waiting[group_id]
