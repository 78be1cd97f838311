"""Recovery after a process that died or a machine that stopped: what becomes of unsynced writes (decision 0016)."""

import pytest

from exacta.core.commands import InitProducerId
from exacta.core.ids import Cause, Offset, ProducerEpoch
from exacta.core.rejections import Rejection
from exacta.core.replies import Appended, ProducerBoundReply, TransactionEndedReply
from exacta.core.values.transactions import Phase
from tests.engine.producer import Producer
from tests.engine.rig import Rig


@pytest.mark.exclusive
def test_a_process_that_dies_loses_nothing_and_the_transaction_goes_on(rig: Rig) -> None:
    producer = Producer(rig)
    producer.begin(b"a")
    assert producer.write(b"b") == []
    rig.loop.turn()
    rig.crash()
    rig.append(b"plain", 1)  # a journal that was opened again begins with an append
    rig.loop.settle()
    answers = producer.write(b"c")
    rig.loop.turn()
    assert answers == [Appended(base_offset=Offset(2))]
    assert rig.storage.unsynced == 1
    assert isinstance(producer.end(), TransactionEndedReply)
    assert rig.records().startswith(b"abc<commit")


@pytest.mark.exclusive
def test_a_machine_that_stops_aborts_what_was_open(rig: Rig) -> None:
    idle, producer = Producer(rig, "idle"), Producer(rig)
    producer.idle()
    producer.begin(b"a")
    producer.write(b"b", 1)
    rig.loop.turn()
    rig.stop_machine()
    assert producer.end() is Rejection.PRODUCER_FENCED
    assert rig.records(read_committed=False).startswith(b"a<abort")
    held = rig.engine._state.transactional_ids["x"]
    assert held.phase is not Phase.ONGOING
    assert Cause.LOSS in {each.cause for each in rig.engine._state.incidents["x"]}
    stale = producer.pair
    reply = rig.ask(
        InitProducerId(
            transactional_id="x", transaction_timeout_ms=60_000, producer_id=stale[0], producer_epoch=stale[1]
        )
    )
    assert reply == ProducerBoundReply(producer_id=stale[0], producer_epoch=ProducerEpoch(stale[1] + 1)), (
        "as after a time-out (KIP-360)"
    )
    idle.begin()
    assert isinstance(idle.end(), TransactionEndedReply), "who had nothing open does not notice"


def test_what_was_kept_is_spared(rig: Rig) -> None:
    """The keeping made all of it durable, and nothing is written after it (KIP-939)."""
    producer = Producer(rig)
    producer.begin(b"a")
    producer.write(b"b")
    rig.loop.turn()
    keeping = InitProducerId(transactional_id="x", transaction_timeout_ms=60_000, keep_prepared=True)
    reply = rig.ask(keeping)
    assert isinstance(reply, ProducerBoundReply)
    producer.pair = reply.producer_id, reply.producer_epoch
    rig.stop_machine()
    assert isinstance(producer.end(), TransactionEndedReply)
    assert rig.records().startswith(b"ab<commit")


@pytest.mark.exclusive
def test_a_loss_is_not_forgotten_by_a_second_crash(rig: Rig) -> None:
    producer = Producer(rig)
    producer.begin(b"a")
    producer.write(b"b")
    rig.loop.turn()
    rig.stop_machine()
    rig.crash()  # before anything was written in that life
    assert producer.end() is Rejection.PRODUCER_FENCED


def test_a_clean_stop_loses_nothing(rig: Rig) -> None:
    producer = Producer(rig)
    producer.begin(b"a")
    producer.write(b"b")
    rig.close()
    rig.journal.close()
    rig.stop_machine()
    assert isinstance(producer.end(), TransactionEndedReply)
    assert rig.records().startswith(b"ab<commit")
