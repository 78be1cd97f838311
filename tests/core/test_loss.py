"""What is open when the machine stops: aborted and fenced, but for what was durable with its acknowledgement."""

import pytest

from exacta.core.commands import AbortAfterLoss
from exacta.core.ids import NO_TIMEOUT_MS, Cause, TransactionVersion
from exacta.core.loss import open_to_loss
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, TransactionEnded
from exacta.core.state import Phase
from tests.core.world import World


@pytest.mark.parametrize("version", TransactionVersion)
def test_what_is_open_is_aborted_and_its_producer_fenced(world: World, version: TransactionVersion) -> None:
    producer, other = world.producer("x", version=version), world.producer("y", version=version)
    for each in (producer, other):
        if version is TransactionVersion.V1:
            each.add()
        each.append()
    assert isinstance(other.end(commit=True), TransactionEnded)
    world.crash(machine_stops=True)
    assert producer.end(commit=True) is Rejection.PRODUCER_FENCED
    held = world.state.transactionals["x"]
    assert (held.producer_id, held.producer_epoch) == (producer.producer_id, producer.epoch + 1)
    assert {each.cause for each in world.state.incidents["x"]} == {Cause.LOSS}
    assert "y" not in world.state.incidents
    assert world.state.transactionals["y"].phase is Phase.COMPLETE_COMMIT
    world.check()


def test_two_phase_commits_and_what_was_kept_are_spared(world: World) -> None:
    two_phase, kept = world.producer("x", two_phase=True), world.producer("y")
    for producer in (two_phase, kept):
        producer.add()
        producer.append()
    kept.init_again(keep_prepared=True)
    assert open_to_loss(world.state) == []
    for transactional_id in ("x", "y", "nobody"):
        assert world.send(AbortAfterLoss(transactional_id=transactional_id)) == DONE
    world.crash(machine_stops=True)
    assert [held.phase for held in world.state.transactionals.values()] == [Phase.ONGOING] * 2
    assert world.state.transactionals["x"].transaction_timeout_ms == NO_TIMEOUT_MS
    for producer in (two_phase, kept):
        assert isinstance(producer.end(commit=True), TransactionEnded)
    world.check()
