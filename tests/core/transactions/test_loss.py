"""When the machine stops: what is open is aborted, and fenced as who may have begun; but for what was durable then."""

import pytest

from exacta.core.commands import FenceAfterLoss
from exacta.core.ids import NO_TIMEOUT_MS, Cause, TransactionVersion
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, Appended, ProducerBoundReply, TransactionEndedReply
from exacta.core.state.incidents import IncidentKind
from exacta.core.transactions.loss import UNSEEN_MS, fences_after_loss, may_begin_unseen
from exacta.core.values.transactions import Phase
from tests.core.world import Producer, World
from tests.docstring_tables import docstring_table


def begin(producer: Producer) -> None:
    if producer.version is TransactionVersion.V1:
        producer.add()
    producer.append()


TABLE = docstring_table("exacta.core.transactions.loss", "at recovery, by what is durable")


@pytest.mark.parametrize("version", TransactionVersion)
@pytest.mark.parametrize("row", TABLE.rows)
def test_every_row_of_the_table(world: World, row: str, version: TransactionVersion) -> None:
    producer = world.producer("x", version=version, two_phase=row in ("of two-phase commits", "prepared"))
    handle = world.handle() if row == "an open handle" else None
    if row in ("ONGOING", "of two-phase commits", "prepared"):
        begin(producer)
    elif row.startswith("ended or bound"):
        begin(producer)
        producer.end(commit=True)
    if row == "prepared":
        producer = world.producer("x", two_phase=True, keep_prepared=True)
    if handle is not None:
        handle.append(1)
    if row == "ended or bound before that":
        world.now_ms += UNSEEN_MS + 1
        world.producer("later")  # the latest that is noted
    world.durable_length = len(world.log)
    held = world.state.transactional_ids["x"]
    phase, epoch = held.phase, held.producer_epoch
    world.crash(machine_stops=True)
    held = world.state.transactional_ids["x"]
    match TABLE[row, "it is"]:
        case "aborted, and fenced":
            assert (held.phase, held.producer_epoch) == (Phase.EMPTY, epoch + 1)
        case "fenced":
            assert held.producer_epoch == epoch + 1
            assert not [each for each in world.state.incidents["x"] if each.kind is not IncidentKind.FENCED]
        case "left as it is":
            assert (held.phase, held.producer_epoch) == (phase, epoch)
        case "aborted":
            assert handle is not None
            assert not world.state.ended_handles[handle.transaction_id].committed
        case other:
            raise AssertionError(other)
    world.check()


@pytest.mark.parametrize("version", TransactionVersion)
def test_what_is_open_is_aborted_and_its_producer_fenced(world: World, version: TransactionVersion) -> None:
    other, producer = world.producer("y", version=version), world.producer("x", version=version)
    begin(other)
    assert isinstance(other.end(commit=True), TransactionEndedReply)
    world.pass_time(UNSEEN_MS + 1)
    begin(producer)
    world.crash(machine_stops=True)
    assert producer.end(commit=True) is Rejection.PRODUCER_FENCED
    held = world.state.transactional_ids["x"]
    assert (held.producer_id, held.producer_epoch) == (producer.producer_id, producer.epoch + 1)
    assert {each.cause for each in world.state.incidents["x"]} == {Cause.LOSS}
    assert "y" not in world.state.incidents
    assert world.state.transactional_ids["y"].phase is Phase.COMPLETE_COMMIT
    world.check()


@pytest.mark.parametrize("idle_ms", [0, UNSEEN_MS, UNSEEN_MS + 1])
@pytest.mark.parametrize("version", TransactionVersion)
@pytest.mark.parametrize("last", ["bound", "committed", "aborted"])
def test_who_may_have_begun_unseen_is_fenced_and_goes_on_with_a_new_epoch(
    world: World, last: str, version: TransactionVersion, idle_ms: int
) -> None:
    producer = world.producer("x", version=version)
    if last != "bound":
        begin(producer)
        assert isinstance(producer.end(commit=last == "committed"), TransactionEndedReply)
    world.pass_time(idle_ms)
    held = world.state.transactional_ids["x"]
    assert may_begin_unseen(held, world.now_ms) is (idle_ms <= UNSEEN_MS)
    world.producer("later")  # the latest that is noted
    epoch = held.producer_epoch
    world.crash(machine_stops=True)
    held = world.state.transactional_ids["x"]
    fenced = idle_ms <= UNSEEN_MS
    assert held.producer_epoch == epoch + fenced
    assert ("x" in world.state.incidents and world.state.incidents["x"][-1].kind is IncidentKind.FENCED) is fenced
    if fenced:
        assert producer.append() is Rejection.INVALID_PRODUCER_EPOCH
        assert producer.end(commit=True) is Rejection.PRODUCER_FENCED
        assert isinstance(producer.init_again(), ProducerBoundReply), "KIP-360"
    begin(producer)
    assert isinstance(producer.end(commit=True), TransactionEndedReply)
    world.check()


@pytest.mark.parametrize("begins_after_ms", [0, UNSEEN_MS])
def test_whatever_else_is_durable_who_began_unseen_is_found(world: World, begins_after_ms: int) -> None:
    """The latest time that is noted is never later than a begin that is missing: time does not go back."""
    producer = world.producer("x")
    world.pass_time(begins_after_ms)
    world.producer("just before")
    begun = len(world.log)
    assert producer.add() == DONE
    assert isinstance(producer.append(), Appended)
    assert world.log[begun:]
    world.durable_length = begun
    world.crash(machine_stops=True)
    assert producer.append() is Rejection.INVALID_PRODUCER_EPOCH


def test_two_phase_commits_and_prepared_transactions_are_spared(world: World) -> None:
    two_phase, prepared = world.producer("x", two_phase=True), world.producer("y")
    for producer in (two_phase, prepared):
        producer.add()
        producer.append()
    prepared.init_again(keep_prepared=True)
    idle = world.producer("z", two_phase=True)
    assert fences_after_loss(world.state) == []
    for transactional_id in ("x", "y", "z", "nobody"):
        assert world.send(FenceAfterLoss(transactional_id=transactional_id)) == DONE
    world.crash(machine_stops=True)
    assert [held.phase for held in world.state.transactional_ids.values()] == [
        Phase.ONGOING,
        Phase.ONGOING,
        Phase.EMPTY,
    ]
    assert world.state.transactional_ids["x"].transaction_timeout_ms == NO_TIMEOUT_MS
    idle.add()
    for producer in (two_phase, prepared, idle):
        assert isinstance(producer.end(commit=True), TransactionEndedReply)
    world.check()
