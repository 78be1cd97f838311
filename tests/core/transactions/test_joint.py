"""Joint transactions: the table of `joining.py`, swept; ends, losses, and what is remembered."""

import pytest
from msgspec.structs import replace

from exacta.core.commands import AbortByMarker, EndHandle, JoinTransaction
from exacta.core.events import BatchAppended, TransactionEnded
from exacta.core.ids import Cause, ProducerEpoch, TransactionId, TransactionVersion
from exacta.core.rejections import Rejection
from exacta.core.replies import (
    DONE,
    Appended,
    ProducerBoundReply,
    TransactionEndedReply,
    TransactionJoinedReply,
)
from exacta.core.snapshot import after_recovery, is_same, restore, snapshot
from exacta.core.transactions.description import explain_handle, explain_transaction, incidents_of
from exacta.core.values.transactions import Phase
from tests.core.world import SMALL, Handle, Producer, World
from tests.docstring_tables import docstring_table

V1, V2 = TransactionVersion
STATE, NOT_FOUND = Rejection.INVALID_TRANSACTION_STATE, Rejection.TRANSACTION_NOT_FOUND
ENDED = Rejection.TRANSACTION_ENDED
ABORTABLE, CONCURRENT = Rejection.TRANSACTION_ABORTABLE, Rejection.CONCURRENT_TRANSACTIONS


def restarted(world: World) -> None:
    """Kill the broker, and recover from a snapshot."""
    world.state = restore(snapshot(world.state), world.state.limits)
    after_recovery(world.state)


def write(producer: Producer, partition: int = 0) -> object:
    """Write as its client does: register the partition first, in version 1."""
    if producer.version is V1 and (answer := producer.add(partition)) is not DONE:
        return answer
    return producer.append(partition)


# --- joining ----------------------------------------------------------------------------------------------------------

NOTHING, OPEN, JOINT, PREPARED = "nothing open", "a transaction open", "a joint one open", "a prepared one open"
OWN, HANDLE, OWN_JOINT = "names no handle", "names an open handle", "names its own joint one"
ENDED_HANDLE, UNKNOWN_HANDLE, ANOTHERS = "ended", "unknown", "another's"
TABLE = docstring_table("exacta.core.transactions.joining", "the transactional id has")
CELLS: dict[str, Rejection | type[object]] = {
    # what a cell says: the answer
    "INVALID_STATE": STATE,
    "CONCURRENT": CONCURRENT,
    "joins": TransactionJoinedReply,
    "the same answer": TransactionJoinedReply,
}
NOT_OPEN = {ENDED_HANDLE: ENDED, UNKNOWN_HANDLE: NOT_FOUND, ANOTHERS: STATE}
"""What is answered for a handle that is not open, or joined by another id, where an open one could be joined."""
JOINING: dict[tuple[str, str], Rejection | type[object]] = {
    (state, named): CELLS[cell] for state, named, cell in TABLE.cells() if cell not in ("-", "see there")
}
for state in (NOTHING, OPEN, JOINT, PREPARED):
    for named, refused in NOT_OPEN.items():
        usual = JOINING[state, HANDLE]
        JOINING[state, named] = refused if usual is TransactionJoinedReply else usual


@pytest.mark.parametrize("version", [V1, V2])
@pytest.mark.parametrize(("state", "named"), JOINING)
def test_every_join_in_every_state(world: World, state: str, named: str, version: TransactionVersion) -> None:
    producer = world.producer(version=version, two_phase=state == PREPARED)
    if state != NOTHING:
        write(producer)
    joint = producer.join() if state == JOINT or (named == OWN_JOINT and state != NOTHING) else None
    if state == PREPARED:
        producer = world.producer(version=version, two_phase=True, keep_prepared=True)
    handle = None if named == OWN else joint if named == OWN_JOINT else world.handle()
    if named == ENDED_HANDLE and handle is not None:
        handle.end(commit=True)
    if named == UNKNOWN_HANDLE and handle is not None:
        handle.transaction_id = TransactionId(99)
    if named == ANOTHERS:
        world.producer("y").join(handle)
    length = len(world.log)
    answer = producer.ask_to_join(handle)
    expected = JOINING[state, named]
    if isinstance(expected, Rejection):
        assert answer is expected
        assert len(world.log) == length
    else:
        assert isinstance(answer, expected)
        assert (len(world.log) > length) is (TABLE[state, named] == "joins"), "the same answer changes nothing"
        assert producer.ask_to_join(handle) == answer == producer.ask_to_join(), "a repeat is answered the same"
    world.check()


def test_who_does_not_hold_the_id_joins_nothing(world: World) -> None:
    before, handle = world.producer(), world.handle()
    world.producer()
    assert before.ask_to_join(handle) is Rejection.PRODUCER_FENCED
    unknown = JoinTransaction(
        transactional_id="z", producer_id=before.producer_id, producer_epoch=before.epoch, transaction=None
    )
    assert world.send(unknown) is Rejection.INVALID_PRODUCER_ID_MAPPING
    assert world.send(replace(unknown, transactional_id="")) is Rejection.INVALID_TRANSACTIONAL_ID
    two_phase = world.producer("y", two_phase=True)
    assert two_phase.ask_to_join(handle) is STATE, "it would have a time-out"


def test_an_own_transaction_that_was_not_joined_is_not_known_by_its_id(world: World) -> None:
    producer = world.producer()
    write(producer)
    transaction = world.open_transaction()
    assert transaction is not None
    handle = Handle(world, transaction.transaction_id, producer.producer_id)
    assert [handle.append(), handle.commit_offsets(1), handle.end(commit=True)] == [NOT_FOUND] * 3
    assert isinstance(producer.join().append(), Appended)
    world.check()


def test_no_more_are_joined_than_handles_may_be_open() -> None:
    world = World(replace(SMALL, max_open_handles=1))
    world.topic()
    first, second = world.producer("x"), world.producer("y")
    for each in (first, second):
        write(each)
    first.join()
    assert second.ask_to_join() is Rejection.LIMIT_REACHED
    first.end(commit=True)
    second.join()
    world.check()


# --- the end ----------------------------------------------------------------------------------------------------------

DIRECTIONS = ("opened by the producer", "opened by its id")


def joint(world: World, direction: str, version: TransactionVersion = V1) -> tuple[Producer, Handle]:
    """A joint transaction to which both sides have written, in one partition both and in one each."""
    producer = world.producer(version=version)
    if direction == DIRECTIONS[0]:
        write(producer)
        handle = producer.join()
        handle.append(0)
    else:
        handle = world.handle()
        handle.append(0)
        producer.join(handle)
        write(producer)
    handle.append(1)
    handle.commit_offsets(7, "g")
    return producer, handle


@pytest.mark.parametrize("by", ["EndTxn", "EndTransactions", "its id"])
@pytest.mark.parametrize("version", [V1, V2])
@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_one_event_ends_all_of_it_whoever_asks(
    world: World, direction: str, commit: bool, version: TransactionVersion, by: str
) -> None:
    producer, handle = joint(world, direction, version)
    last = [each.next_offset for each in world.state.partitions.values()]
    if by == "EndTxn":
        assert isinstance(producer.end(commit=commit), TransactionEndedReply)
    elif by == "EndTransactions":
        assert world.end_all(producer, commit=commit) == DONE
    else:
        assert handle.end(commit=commit) == DONE
    (ended,) = [event for event in world.log if isinstance(event, TransactionEnded)]
    assert [(partition, offset) for partition, offset, _ in ended.markers] == [
        (0, last[0]),
        (0, last[0] + 1),
        (1, last[1]),
    ], "one marker for each side in each partition that it has written to"
    assert all(each.last_stable_offset == each.next_offset for each in world.state.partitions.values())
    assert (world.state.groups["g"].offsets != {}) is commit
    assert handle.end(commit=commit) == DONE, "its outcome is remembered as a handle's"
    assert handle.end(commit=not commit) is ENDED
    assert [handle.append(), handle.commit_offsets(9)] == [ENDED, ENDED]
    restarted(world)
    assert handle.end(commit=commit) == DONE
    world.check()


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_what_each_side_writes_lies_under_a_producer_id_of_its_own(world: World, direction: str) -> None:
    world.producer().end(commit=False)
    producer, handle = joint(world, direction, V2)
    producer.end(commit=True)
    producer, handle = joint(world, direction, V2)
    batches = [event for event in world.log if isinstance(event, BatchAppended)][-3:]
    written = {(each.partition_id, each.producer_id, each.producer_epoch) for each in batches}
    assert producer.epoch > 0
    assert written == {
        (0, producer.producer_id, producer.epoch),
        (0, handle.producer_id, 0),
        (1, handle.producer_id, 0),
    }
    world.check()


# --- what ends it otherwise -------------------------------------------------------------------------------------------


def assert_aborted_and_fenced(world: World, producer: Producer, handle: Handle, cause: Cause) -> None:
    assert handle.end(commit=True) is ENDED
    assert handle.end(commit=False) == DONE
    assert producer.end(commit=True) is Rejection.PRODUCER_FENCED
    assert cause in [each.cause for each in incidents_of(world.state, "x")]
    assert cause in [each.cause for each in incidents_of(world.state, handle.name)]
    assert isinstance(producer.init_again(), ProducerBoundReply), "the client learns its new epoch"
    assert isinstance(write(producer), Appended)
    world.check()


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_time_aborts_it_and_fences_the_producer(world: World, direction: str) -> None:
    producer, handle = joint(world, direction)
    world.pass_time(400)
    restarted(world)
    world.pass_time(600)
    assert_aborted_and_fenced(world, producer, handle, Cause.TIME_OUT)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("whose", [0, 1])
def test_an_operators_marker_aborts_all_of_it(world: World, direction: str, whose: int) -> None:
    producer, handle = joint(world, direction)
    transaction = world.state.transactions[handle.transaction_id]
    marker = AbortByMarker(
        producer_id=transaction.producer_ids[whose], producer_epoch=ProducerEpoch(0), topic="t", partition=0
    )
    assert world.send(marker) == DONE
    assert_aborted_and_fenced(world, producer, handle, Cause.MARKER)


def test_an_operator_who_names_its_id_aborts_all_of_it(world: World) -> None:
    producer, handle = joint(world, DIRECTIONS[1])
    assert world.send(EndHandle(transaction_id=handle.transaction_id, commit=False, cause=Cause.MARKER)) == DONE
    assert_aborted_and_fenced(world, producer, handle, Cause.MARKER)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_loss_aborts_it_and_fences_the_producer(world: World, direction: str) -> None:
    producer, handle = joint(world, direction)
    world.durable_length = len(world.log)
    world.crash(machine_stops=True)
    assert_aborted_and_fenced(world, producer, handle, Cause.LOSS)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_successor_aborts_it(world: World, direction: str) -> None:
    _, handle = joint(world, direction)
    world.producer()
    assert handle.end(commit=True) is ENDED
    world.check()


def test_a_prepared_one_is_only_ended_by_the_holder(world: World) -> None:
    producer = world.producer(two_phase=True)
    write(producer)
    handle = producer.join()
    assert isinstance(handle.append(1), Appended)
    successor = world.producer(two_phase=True, keep_prepared=True)
    assert [handle.append(1), handle.end(commit=True), handle.end(commit=False)] == [STATE] * 3
    assert isinstance(successor.end(commit=True), TransactionEndedReply)
    assert handle.end(commit=True) == DONE
    world.check()


def test_it_is_described_by_both_names(world: World) -> None:
    producer, handle = joint(world, DIRECTIONS[0])
    by_id, by_name = explain_handle(world.state, handle.transaction_id), explain_transaction(world.state, "x")
    assert by_id == by_name
    assert (by_id.transactional_id, by_id.is_joint, by_id.is_handle) == ("x", True, False)
    assert by_id.transaction_id == handle.transaction_id
    producer.end(commit=True)
    ended = explain_handle(world.state, handle.transaction_id)
    assert (ended.transactional_id, ended.is_joint, ended.state) == ("x", True, Phase.COMPLETE_COMMIT.value)
    restored = restore(snapshot(world.state), SMALL)
    assert is_same(restored, world.state)
