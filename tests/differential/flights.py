"""Requests in flight: several at once on a connection, the same one on two connections, and late ones.

Kafka looks at the requests of one connection one after another; EndTxn comes last in a flight, since Kafka answers it
before its markers are written, so that what follows is a matter of chance there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from tests.differential.calls import HOW, Answer, Call, sends
from tests.differential.side import NOT_YET, Side
from tests.differential.steps import (
    CLIENTS,
    GROUPS,
    PARTITIONS,
    AddGroup,
    AddPartitions,
    CommitOffsets,
    End,
    Produce,
    Step,
    ages,
    usual,
)
from tests.kafka.wire import Wire


@dataclass(frozen=True, kw_only=True, repr=False)
class Flight(Step):
    """Requests that are sent before the first is answered."""

    parts: tuple[Step, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class Late(Step):
    """A request that the client has sent before, so many requests ago, comes once more, on another connection."""

    back: int


@dataclass(frozen=True, kw_only=True, repr=False)
class Twice(Step):
    """A request that comes on two connections at once."""

    part: Step


# --- how they are sent ------------------------------------------------------------------------------------------------


@sends(Flight)
def flight(side: Side, step: Flight) -> Answer:
    """Send all, then read all answers."""
    parts = _in_order(step.parts)
    calls = [_made(side, part) for part in parts]
    for call in calls:
        side.wire.send(call.request, call.version)
    replies = [side.wire.receive(call.request, call.version)[1] for call in calls]
    for part, call, reply in zip(parts, calls, replies, strict=True):
        if call.code(reply) in NOT_YET:  # said before anything was done: as good as sent alone
            reply = side.ask(call.request, call.version, call.code)
        side.parts.append((part, call.describe(reply)))
    if any(call.ends for call in calls):
        side.settle()
    return _of_all(side)


def _of_all(side: Side) -> Answer:
    answers = [answer for _, answer in side.parts]
    return (answers[0][0], *answers)


def _in_order(parts: tuple[Step, ...]) -> list[Step]:
    """Let each batch begin where the one before it in the flight ends."""
    ahead: dict[tuple[str, int, int], int] = {}
    ordered = []
    for part in parts:
        if isinstance(part, Produce):
            key = (part.client, part.age, part.partition)
            before = ahead.get(key, 0)
            ahead[key] = before + part.count
            part = replace(part, skip=part.skip + before)
        ordered.append(part)
    return ordered


def _made(side: Side, step: Step) -> Call:
    made = HOW[type(step)](side, step)
    assert isinstance(made, Call)
    return side.note(step, made)


@sends(Late)
def late(side: Side, step: Late) -> Answer:
    """Send it again, byte for byte, but for its number."""
    sent = side.sent[step.client]
    first, pair, call = sent[-1 - step.back % len(sent)]
    again = replace(first, age=max(first.age, side.which(step.client, pair)))
    if isinstance(again, Produce):
        again = replace(again, repeat=True)
    wire = Wire(side.address)
    try:
        reply = wire.ask(call.request, call.version)
        while call.code(reply) in NOT_YET:
            reply = wire.ask(call.request, call.version)
    finally:
        wire.socket.close()
    if call.ends:
        side.settle()
    side.parts = [(again, call.describe(reply))]
    return side.parts[0][1]


@sends(Twice)
def twice(side: Side, step: Twice) -> Answer:
    """Send it on two connections; which one is first, nobody knows."""
    call = _made(side, step.part)
    other = Wire(side.address)
    try:
        wires = (side.wire, other)
        for wire in wires:
            wire.send(call.request, call.version)
        replies: list[Any] = [wire.receive(call.request, call.version)[1] for wire in wires]
    finally:
        other.socket.close()
    for index, reply in enumerate(replies):
        if call.code(reply) in NOT_YET:
            replies[index] = side.ask(call.request, call.version, call.code)
    if call.ends:
        side.settle()
    side.parts = [(step.part, answer) for answer in sorted(call.describe(reply) for reply in replies)]
    return _of_all(side)


# --- sequences --------------------------------------------------------------------------------------------------------

_client = st.sampled_from(CLIENTS)
_versions = st.sampled_from([(11, 4, 4), (12, 5, 5), (12, 5, 5)])
"""Of Produce, TxnOffsetCommit and EndTxn: of clients of both versions of the protocol."""


@st.composite
def _flights(draw: st.DrawFn) -> Flight:
    client, (produce, commit, end) = draw(_client), draw(_versions)
    age = draw(ages)
    body = st.one_of(
        st.builds(
            Produce,
            client=st.just(client),
            age=st.just(age),
            version=st.just(produce),
            partition=st.sampled_from(PARTITIONS),
            count=st.integers(1, 3),
            skip=st.sampled_from([0, 0, 0, 0, 1, -1]),
        ),
        st.builds(
            CommitOffsets,
            client=st.just(client),
            age=st.just(age),
            version=st.just(commit),
            group=st.sampled_from(GROUPS),
            offset=st.integers(0, 9),
        ),
    )
    parts: list[Step] = []
    if produce < 12:
        parts.append(AddPartitions(client=client, age=age, version=3, partitions=PARTITIONS))
        parts.append(AddGroup(client=client, age=age, version=3, group="g"))
    parts += draw(st.lists(body, min_size=1, max_size=5))
    if draw(st.booleans()):
        parts.append(End(client=client, age=age, version=end, commit=draw(st.booleans())))
    return Flight(client=client, version=0, parts=tuple(parts))


_late = st.builds(Late, client=_client, version=st.just(0), back=st.integers(0, 7))
_twice = usual.filter(lambda step: isinstance(step, Produce | CommitOffsets | AddPartitions | End)).map(
    lambda step: Twice(client=step.client, version=0, part=step)
)

sequences = st.lists(st.one_of(usual, _flights(), _flights(), _late, _twice), min_size=1, max_size=20)
"""What one client does after another, and what does not wait for it."""
