"""A group that only one waits for is made durable while the event loop waits, if the disk is quick (decision 0023)."""

import pytest

from exacta.core.ids import Offset
from exacta.core.replies import DONE, Appended
from tests.engine.producer import Producer
from tests.engine.rig import Rig, batch


@pytest.fixture
def rig() -> Rig:
    rig = Rig()
    rig.topic()
    rig.append(b"first")  # a journal that was opened again begins with an append
    rig.loop.settle()
    rig.storage.is_quick = True
    return rig


def test_an_answer_that_only_one_waits_for_comes_within_the_turn_that_writes(rig: Rig) -> None:
    answers = rig.append(b"x")
    assert answers == []
    rig.loop.turn()
    assert answers == [Appended(base_offset=Offset(1))]
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
    assert answers == [[Appended(base_offset=Offset(1))], [Appended(base_offset=Offset(2))]]


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
    assert more == [[Appended(base_offset=Offset(4))], [DONE]]
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
    assert answers == [Appended(base_offset=Offset(1))]
    assert rig.storage.unsynced == 0


def test_who_has_waited_longer_is_answered_before_the_next_ones_sync(rig: Rig) -> None:
    order: list[tuple[str, int]] = []

    def append(name: str) -> None:
        def send() -> None:
            order.append((name, len(rig.storage.groups)))

        # As connections do: what is ready is sent in the loop's next turn.
        rig.engine.submit((batch(name.encode()),), lambda _: rig.loop.call_soon(send), [name.encode()])

    append("first")
    append("second")
    rig.loop.turn()
    assert rig.storage.in_flight is not None
    append("third")
    rig.loop.settle()
    before = len(rig.storage.groups) - 1
    assert order == [("first", before), ("second", before), ("third", before + 1)]


def test_a_slow_disk_gets_the_next_group_before_the_answers_to_the_last_one(rig: Rig) -> None:
    rig.storage.is_quick = False
    told: list[bool] = []
    rig.engine.submit((batch(b"first"),), lambda _: told.append(rig.storage.in_flight is not None), [b"first"])
    rig.loop.turn()
    rig.append(b"second")
    rig.loop.turn()
    assert told == [True]


def test_an_engine_that_closes_answers_who_gathers_alone_behind_a_group_in_flight(rig: Rig) -> None:
    answers = [rig.append(b"x"), rig.append(b"y")]
    rig.loop.turn()
    assert rig.storage.in_flight is not None
    answers.append(rig.append(b"z"))
    rig.close()
    assert answers == [[Appended(base_offset=Offset(offset))] for offset in (1, 2, 3)]
    assert rig.storage.unsynced == 0


def test_a_timers_command_is_not_waited_for(rig: Rig) -> None:
    producer = Producer(rig)
    producer.begin()
    rig.loop.now_ms += 60_000
    for _, _, callback in list(rig.loop.later):
        callback()
    rig.loop.turn()
    assert rig.storage.in_flight is not None, "the time-out's abort is with the journal's thread"
