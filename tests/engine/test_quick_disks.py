"""A group that only one waits for is made durable while the event loop waits, if the disk is quick (decision 0023)."""

import pytest

from exacta.core.replies import DONE, Appended
from tests.engine.rig import Rig, batch
from tests.engine.test_unsynced_writes import Producer


@pytest.fixture
def rig() -> Rig:
    rig = Rig()
    rig.topic()
    rig.append(b"first")  # a journal that was opened anew begins with an append
    rig.loop.settle()
    rig.storage.is_quick = True
    return rig


def test_an_answer_that_only_one_waits_for_comes_within_the_turn_that_writes(rig: Rig) -> None:
    answers = rig.append(b"x")
    assert answers == []
    rig.loop.turn()
    assert answers == [Appended(base_offset=1)]
    assert (rig.storage.in_flight, rig.storage.unsynced) == (None, 0)
    assert rig.records().endswith(b"x"), "readers see it as well"
    rig.stop_machine()
    assert rig.records().endswith(b"x")


def test_where_two_wait_the_loop_does_not(rig: Rig) -> None:
    answers = [rig.append(b"x"), rig.append(b"y")]
    rig.loop.turn()
    assert answers == [[], []]
    assert rig.storage.in_flight is not None
    rig.loop.turn()
    assert answers == [[Appended(base_offset=1)], [Appended(base_offset=2)]]


def test_a_transaction_ends_so_with_all_that_was_written_ahead(rig: Rig) -> None:
    producer = Producer(rig)
    producer.add(0, 1)
    producer.write(b"a")
    rig.loop.turn()
    producer.write(b"b", 1)
    rig.loop.turn()
    assert rig.storage.unsynced == 2
    waiting = rig.fetch(2, max_wait_ms=1_000)
    producer.end()
    assert rig.storage.unsynced == 0
    assert waiting, "who waits for records is told"
    rig.stop_machine()
    assert rig.records().startswith(b"firsta<commit")
    assert rig.records(partition=1).startswith(b"b<commit")


def test_who_is_answered_may_ask_at_once(rig: Rig) -> None:
    producer = Producer(rig)
    producer.begin()
    more: list[list[object]] = []
    producer.write(b"b", then=lambda: more.extend([rig.append(b"x"), producer.add(1)]))
    rig.append(b"y")
    rig.loop.settle()
    assert more == [[Appended(base_offset=4)], [DONE]]
    assert (rig.storage.in_flight, rig.storage.unsynced) == (None, 0)


def test_a_sync_that_fails_answers_nobody(rig: Rig) -> None:
    rig.storage.append_fault = "the disk is gone"
    answers = rig.append(b"x")
    rig.loop.settle()
    assert answers == []
    assert "the disk is gone" in str(rig.failures[0])
    assert len(rig.failures) == 1


def test_an_engine_that_closes_writes_what_one_waits_for(rig: Rig) -> None:
    answers = rig.append(b"x")
    rig.close()
    assert answers == [Appended(base_offset=1)]
    assert rig.storage.unsynced == 0


def test_who_has_waited_longer_is_answered_before_the_next_ones_sync(rig: Rig) -> None:
    order: list[str] = []
    for name in ("first", "second"):
        rig.engine.submit((batch(name.encode()),), lambda _, name=name: order.append(name), [name.encode()])
    rig.loop.turn()
    assert rig.storage.in_flight is not None
    rig.engine.submit((batch(b"third"),), lambda _: order.append("third"), [b"third"])
    rig.loop.turn()
    assert order == ["first", "second"]
    assert len(rig.storage.groups) == 3, "the third is not even written"
    rig.loop.turn()
    assert order == ["first", "second", "third"]


def test_a_timers_command_is_not_waited_for(rig: Rig) -> None:
    producer = Producer(rig)
    producer.begin()
    rig.loop.now_ms += 60_000
    for _, _, callback in list(rig.loop.later):
        callback()
    rig.loop.turn()
    assert rig.storage.in_flight is not None, "the time-out's abort is with the journal's thread"
