"""A follower takes the lead: an engine goes on with its state, as after a start, and nothing is read again."""

from typing import Any

import pytest

from exacta.adapters.memory import MemoryJournal
from exacta.core.commands import (
    AddPartitions,
    EndTransaction,
    Heartbeat,
    InitProducerId,
)
from exacta.core.ids import Offset
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, Appended, Joined, ProducerBoundReply
from tests.engine.following import Followed, fetched
from tests.engine.producer import Producer
from tests.engine.rig import batch
from tests.engine.test_groups import join, sync


def test_an_engine_goes_on_without_a_replay(followed: Followed, monkeypatch: pytest.MonkeyPatch) -> None:
    followed.append(b"one")

    def never(journal: MemoryJournal) -> Any:
        raise AssertionError("the log is read again")

    monkeypatch.setattr(MemoryJournal, "replay", never)
    followed.take_over()
    assert followed.records() == b"one"
    assert followed.engine.advice.leader_epoch == 2
    answers = followed.append(b"two")
    followed.settle()
    assert answers == [Appended(base_offset=Offset(1))]
    assert followed.records() == b"onetwo"


def test_the_old_replica_answers_nobody_then(followed: Followed) -> None:
    waiting = fetched(followed.replica, [("t", 0)], max_wait_ms=10_000)
    followed.take_over()
    followed.append(b"one")
    followed.loop.pass_time(20_000)
    told: list[object] = []
    followed.replica.read(lambda state, now_ms: 1, told.append)
    assert (waiting, fetched(followed.replica, [("t", 0)]), told) == ([], [], [])
    assert followed.failures_of_replica == []


def test_members_stay_members(followed: Followed) -> None:
    joined = followed.ask(join(followed))
    assert isinstance(joined, Joined)
    followed.ask(sync(followed, joined.generation))
    followed.take_over()
    beat = Heartbeat(group_id="g", member_id="m", generation=joined.generation)
    assert followed.ask(beat) is DONE
    followed.loop.pass_time(5_999)
    assert followed.ask(beat) is DONE, "its session began again"
    followed.loop.pass_time(6_001)
    assert followed.ask(beat) is not DONE


def test_a_transaction_goes_on_and_its_time_out_runs(followed: Followed) -> None:
    bound = followed.ask(InitProducerId(transactional_id="x", transaction_timeout_ms=1_000))
    assert isinstance(bound, ProducerBoundReply)
    who: dict[str, Any] = {
        "transactional_id": "x",
        "producer_id": bound.producer_id,
        "producer_epoch": bound.producer_epoch,
    }
    followed.ask(AddPartitions(**who, partitions=(("t", 0), ("t", 1))))
    write = batch(b"one", producer=(bound.producer_id, bound.producer_epoch), sequence=0, transactional_id="x")
    assert followed.ask(write, payloads=[b"one"]) == Appended(base_offset=Offset(0))
    followed.take_over()
    repeated = followed.ask(write, payloads=[b"one"])
    assert isinstance(repeated, Appended)
    assert (repeated.base_offset, repeated.repeated) == (0, True)
    followed.loop.pass_time(1_001)
    assert isinstance(followed.ask(EndTransaction(**who, commit=True)), Rejection), "it was aborted in time"
    assert not followed.engine._state.transactions


def test_no_id_is_given_out_twice(followed: Followed) -> None:
    def new_id() -> int:
        bound = followed.ask(InitProducerId(transactional_id=None, transaction_timeout_ms=1_000))
        assert isinstance(bound, ProducerBoundReply)
        return bound.producer_id

    given = [new_id(), new_id()]
    followed.take_over()
    assert new_id() not in given


def test_time_does_not_go_back_over_leaders(followed: Followed) -> None:
    Producer(followed).begin()
    noted_ms = max(each.start_ms for each in followed.engine._state.transactions.values())
    followed.loop.now_ms -= 60_000
    followed.take_over()
    assert followed.engine.now_ms() >= noted_ms > followed.loop.now_ms
