"""Requests that wait for what others do (JoinGroup, SyncGroup), and what groups have told their members.

Whether a broker leaves a request waiting is compared too, without waiting for time: a request behind it, about the
same groups, is answered when the broker has made up its mind. Exacta is asked first; what it has answered must come
from Kafka as well, and what it has not answered must not. (Where Kafka's answer is only late, it comes to light with
the next step.) A request that waits keeps its connection, for Kafka does not read on from it.
"""

from __future__ import annotations

import select
import time
from dataclasses import dataclass, field
from typing import Any

from exacta.protocol.kafka.messages import k13_leave_group, k15_describe_groups
from tests.differential.calls import HANGS_UP, WAITS, Answer, Call
from tests.kafka.wire import Wire

_PATIENCE_S = 1.0
GONE = "gone"
"""A member id that nobody was given."""


@dataclass
class _Parked:
    number: int
    client: str
    call: Call
    wire: Wire


@dataclass
class _Told:
    """What a client knows of itself in a group."""

    ids: list[str] = field(default_factory=list)
    generation: int = -1


class Parking:
    """The members' side of a broker."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._idle: dict[str, list[Wire]] = {}
        self.waiting: list[_Parked] = []
        self.answered: set[int] = set()
        """The steps whose requests were answered with the last one."""

    def close(self) -> None:
        """Hang up."""
        for wire in [
            *(parked.wire for parked in self.waiting),
            *(wire for each in self._idle.values() for wire in each),
        ]:
            wire.socket.close()

    def begin(self, groups: list[str]) -> None:
        """Begin a sequence, which has these groups."""
        self._leave_alone()  # of a sequence that failed
        self._groups = groups
        self._told: dict[tuple[str, str], _Told] = {}
        self._names: dict[str, str] = {}
        self._next = 0
        self.answered = set()

    def finish(self, wire: Wire) -> None:
        """Let all members go; who still waits for an answer then is left alone."""
        for (group, _), told in self._told.items():
            for member_id in told.ids:
                wire.ask(k13_leave_group.LeaveGroupRequest(group_id=group, member_id=member_id), 2)
        self._leave_alone()

    def _leave_alone(self) -> None:
        for parked in self.waiting:
            parked.wire.socket.close()
        self.waiting = []

    # --- what members were told ---------------------------------------------------------------------------------------

    def told(self, group: str, client: str) -> _Told:
        """Return what a client knows of itself in a group."""
        return self._told.setdefault((group, client), _Told())

    def member_id(self, group: str, client: str, age: int) -> str:
        """Return the id that a client was given so long ago; -1 is none."""
        ids = self.told(group, client).ids
        if age < 0 or (age == 0 and not ids):
            return ""
        return ids[-1 - age] if age < len(ids) else GONE

    def given(self, group: str, client: str, member_id: str) -> None:
        """Note that a client was given a member id."""
        ids = self.told(group, client).ids
        if member_id in ids:
            ids.remove(member_id)
        else:
            self._names[member_id] = f"{client}{sum(name[0] == client for name in self._names.values())}"
        ids.append(member_id)

    def name(self, member_id: str) -> str:
        """Return a member id in words that both brokers share."""
        if member_id in self._names:
            return self._names[member_id]
        client, dash, _ = member_id.partition("-")
        return f"{client}?" if dash else member_id  # somebody who has not been told yet

    # --- waiting ------------------------------------------------------------------------------------------------------

    def park(self, client: str, call: Call) -> None:
        """Send a request that the broker may not answer for now."""
        idle = self._idle.setdefault(client, [])
        wire = idle.pop() if idle else self._connect(client)
        wire.send(call.request, call.version)
        self.waiting.append(_Parked(self._next, client, call, wire))

    def _connect(self, client: str) -> Wire:
        wire = Wire(self._address, client)
        self._ask_behind(wire)  # which has accepted it then, and reads from it as from the others
        return wire

    def _ask_behind(self, wire: Wire) -> None:
        wire.ask(k15_describe_groups.DescribeGroupsRequest(groups=self._groups), 0)

    def gather(self, wire: Wire, answer: Answer, like: Parking | None) -> Answer:
        """Return the answer to this step, with those to earlier ones that have come with it."""
        number, self._next = self._next, self._next + 1
        came: dict[int, tuple[_Parked, Any]] = {}
        if like is not None:
            deadline = time.monotonic() + _PATIENCE_S
            while not like.answered <= came.keys() and time.monotonic() < deadline:
                self._poll(came, 0.05)
        # The first one is read together with what was sent before, at the latest; the second one is behind it. A timer
        # without a delay (a group's first rebalance, here) is called in the next millisecond by the clock.
        self._ask_behind(wire)
        due_s = time.monotonic() + 0.002
        self._ask_behind(wire)
        while like is None and time.monotonic() < due_s:
            self._ask_behind(wire)
        self._poll(came, 0)
        self.answered = set(came)
        replies = sorted(came.items())
        for _, (parked, reply) in replies:
            if reply is not None:
                parked.call.learn(reply)
        woken: list[Answer] = []
        for key, (parked, reply) in replies:
            described = (HANGS_UP,) if reply is None else parked.call.describe(reply)
            if key == number:
                answer = described
            else:
                woken.append((key, *described))
        if answer != (WAITS,) and not woken:
            return answer
        return (*answer, ("woken", *woken)) if woken else answer

    def _poll(self, came: dict[int, tuple[_Parked, Any]], patience_s: float) -> None:
        sockets = {parked.wire.socket.fileno(): parked for parked in self.waiting}
        if not sockets:
            return
        poll = select.poll()
        for number in sockets:
            poll.register(number, select.POLLIN)
        for number, _ in poll.poll(patience_s * 1000):
            parked = sockets[number]
            self.waiting.remove(parked)
            try:
                _, reply = parked.wire.receive(parked.call.request, parked.call.version)
            except ConnectionError:
                parked.wire.socket.close()
                came[parked.number] = (parked, None)
                continue
            came[parked.number] = (parked, reply)
            self._idle[parked.client].append(parked.wire)
