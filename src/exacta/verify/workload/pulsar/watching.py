"""Readers of Pulsar's: one that watches live until it is told to stop, and the final read of every partition."""

import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Any

import pulsar

from exacta.verify.history import Isolation, Poll, ReadTo
from exacta.verify.workload.notes import Notes
from exacta.verify.workload.pulsar.clients import connected, offset_of, reader_of
from exacta.verify.workload.pulsar.side import Place
from exacta.verify.workload.spec import Spec

_MOST = 500
_WAIT_S = 0.1
_PROGRESS_WITHIN_MS = 60_000
_AGAIN_AFTER_S = 0.5

Arrived = tuple[Place, int, str, int]
"""A message: its partition, offset and value, and when it came."""


def watch(spec: Spec, notes: Notes, stop: threading.Event) -> None:
    """Read everything from the start, and on, until told to stop; Pulsar's client connects again by itself."""
    arrived: queue.SimpleQueue[Arrived] = queue.SimpleQueue()
    client = connected(spec.pulsar)
    unread = _places(spec)
    while not stop.is_set():
        try:
            while unread and not stop.is_set():
                reader_of(client, unread[0], _listener(notes, unread[0], arrived))
                unread.pop(0)
                _note(spec, notes, _taken(arrived), str(spec.incarnation))
        except pulsar.PulsarException:  # the broker is away
            stop.wait(_AGAIN_AFTER_S)
        _note(spec, notes, _taken(arrived), str(spec.incarnation))
        stop.wait(_WAIT_S)
    client.close()


def _listener(notes: Notes, place: Place, arrived: "queue.SimpleQueue[Arrived]") -> Callable[[Any, Any], None]:
    def take(_: Any, message: Any) -> None:
        arrived.put((place, offset_of(message.message_id()), _value(message), notes.now_us()))

    return take


def _taken(arrived: "queue.SimpleQueue[Arrived]") -> list[Arrived]:
    found: list[Arrived] = []
    with contextlib.suppress(queue.Empty):
        while len(found) < _MOST:
            found.append(arrived.get_nowait())
    return found


def _note(spec: Spec, notes: Notes, found: list[Arrived], session: str, *, final: bool = False) -> None:
    """Write down what came, partition by partition."""
    by_place: dict[Place, list[Arrived]] = {}
    for each in found:
        by_place.setdefault(each[0], []).append(each)
    for (topic, partition), messages in by_place.items():
        poll = Poll(
            process=spec.process,
            isolation=Isolation.PULSAR,
            start_us=messages[0][3],
            end_us=messages[-1][3],
            topic=topic,
            partition=partition,
            records=[(offset, value) for _, offset, value, _ in messages],
            session=session,
            final=final,
        )
        notes.write(poll)


def read_to_the_end(spec: Spec, notes: Notes) -> None:
    """Read every partition up to the last message that the broker names, and write down how far that was.

    However long it takes: it gives up only when nothing comes for a while.
    """
    client = connected(spec.pulsar)
    for place in _places(spec):
        read_to, whole = 0, False
        with contextlib.suppress(pulsar.PulsarException):
            reader = reader_of(client, place)
            while not whole:
                found: list[Arrived] = []
                while len(found) < _MOST and reader.has_message_available():
                    message = reader.read_next(_PROGRESS_WITHIN_MS)
                    found.append((place, offset_of(message.message_id()), _value(message), notes.now_us()))
                _note(spec, notes, found, "final", final=True)
                read_to = found[-1][1] + 1 if found else read_to
                whole = len(found) < _MOST
            reader.close()
        read = ReadTo(
            process=spec.process,
            isolation=Isolation.PULSAR,
            topic=place[0],
            partition=place[1],
            # Behind the last message there are only markers, and what was aborted.
            next_offset=spec.until[place[0]][place[1]] if whole else read_to,
            whole=whole,
        )
        notes.write(read)
    client.close()


def _places(spec: Spec) -> list[Place]:
    return [(topic, partition) for topic, count in spec.topics.items() for partition in range(count)]


def _value(message: Any) -> str:
    return bytes(message.data()).decode(errors="backslashreplace")
