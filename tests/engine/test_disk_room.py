"""The watch over the room on the disk: what the core is told, and what the operator."""

import logging

import pytest

from exacta.core.commands import AppendBatch, CreateTopic
from exacta.core.rejections import Rejection
from exacta.core.state.disk_room import DiskRoom as CoreRoom
from exacta.engine.disk_room import FULL_BELOW_BYTES
from exacta.ports.journal import Room
from tests.kafka.by_hand import Broker

FULL, ENOUGH = "the disk is full: no records", "the disk has room again"
USED_UP = "the disk is full, and its reserve is used up"


def look(broker: Broker, append_bytes: int | None, *, is_used_up: bool = False, is_low: bool = True) -> CoreRoom | None:
    storage = broker.engine._journal._storage  # type: ignore[attr-defined]
    storage.room = None if append_bytes is None else Room(append_bytes, is_used_up=is_used_up, is_low=is_low)
    broker.engine._room.look()
    return broker.engine._state.volatile.disk_room


def test_the_core_goes_by_what_is_measured() -> None:
    broker = Broker()
    assert look(broker, None) is None
    assert look(broker, 500) == CoreRoom(append_bytes=500)
    assert look(broker, 0, is_used_up=True) == CoreRoom(append_bytes=0, is_used_up=True)
    assert look(broker, None) is None


@pytest.mark.parametrize(
    ("rooms", "lines"),
    [
        ([None, 10 * FULL_BELOW_BYTES, FULL_BELOW_BYTES], []),
        ([FULL_BELOW_BYTES - 1, 0, 7], [FULL]),
        ([0, FULL_BELOW_BYTES, 0], [FULL]),
        ([0, 2 * FULL_BELOW_BYTES, 0], [FULL, ENOUGH, FULL]),
        ([0, None], [FULL, ENOUGH]),
        ([0, -1, 0, None], [FULL, USED_UP, FULL, ENOUGH]),
    ],
)
def test_the_operator_is_told_once_of_each_change(
    caplog: pytest.LogCaptureFixture, rooms: list[int | None], lines: list[str]
) -> None:
    broker = Broker()
    with caplog.at_level(logging.INFO, "exacta.server"):
        for room in rooms:
            look(broker, None if room is None else max(0, room), is_used_up=room == -1)
    assert len(caplog.messages) == len(lines)
    assert all(message.startswith(line) for message, line in zip(caplog.messages, lines, strict=True))


def test_no_smaller_batch_overtakes_one_that_was_refused() -> None:
    """The second batch of a producer that is new in a partition would be taken for its first one."""
    broker, answers = Broker(), list[object]()
    broker.engine.submit((CreateTopic(topic="t", topic_id=bytes(16), partition_count=1),), answers.extend)
    look(broker, 500)

    def append(size: int) -> object:
        batch = AppendBatch(topic="t", partition=0, record_count=1, size=size, max_timestamp_ms=0)
        broker.engine.submit((batch,), answers.extend, [b"x" * size])
        broker.settle()
        return answers[-1]

    assert append(600) is Rejection.DISK_FULL
    assert append(100) is Rejection.DISK_FULL
    assert look(broker, 5_000) == CoreRoom(append_bytes=0), "there is a little more room, and not clearly"
    assert look(broker, 599, is_low=False) == CoreRoom(append_bytes=0), "there is not enough for the first one"
    assert look(broker, 600, is_low=False) == CoreRoom(append_bytes=600)
    assert look(broker, 500) == CoreRoom(append_bytes=500)
    assert append(600) is Rejection.DISK_FULL
    assert look(broker, None) is None
    assert look(broker, 500) == CoreRoom(append_bytes=500)


def test_room_that_has_come_in_the_moment_of_a_refusal_does_not_let_later_batches_overtake() -> None:
    """World 9138: the core refused by an older measurement, and the later batches of the same read found room."""
    broker = Broker()
    look(broker, 500)
    storage = broker.engine._journal._storage  # type: ignore[attr-defined]
    storage.room = Room(10 * FULL_BELOW_BYTES, is_used_up=False, is_low=False)
    broker.engine._room.refused(600)
    assert broker.engine._state.volatile.disk_room == CoreRoom(append_bytes=0)
    broker.engine._room.look()
    assert broker.engine._state.volatile.disk_room == CoreRoom(append_bytes=10 * FULL_BELOW_BYTES)
