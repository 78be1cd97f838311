"""Handles: the table of `handle.py`, swept; ids, bounds, a loss, and what an operator sees and does."""

import pytest
from msgspec.structs import replace

from exacta.core.commands import (
    AbortByMarker,
    AppendBatch,
    BeginTransaction,
    CommitOffsets,
    EndHandle,
    OffsetToCommit,
)
from exacta.core.events import TransactionEnded
from exacta.core.ids import NO_PRODUCER_ID, Cause, Offset, PartitionId, ProducerEpoch, ProducerId, TransactionId
from exacta.core.rejections import Rejection
from exacta.core.replies import ALREADY_STORED, DONE, Appended
from exacta.core.snapshot import after_recovery, restore, snapshot
from exacta.core.state.incidents import IncidentKind
from exacta.core.transactions.description import incidents_of
from exacta.core.transactions.numbering import IDS_AT_ONCE
from exacta.core.writers import IdempotentWriter, NamedWriter
from tests.core.world import SMALL, Handle, World
from tests.docstring_tables import docstring_table

ENDED, NOT_FOUND = Rejection.TRANSACTION_ENDED, Rejection.TRANSACTION_NOT_FOUND
OPEN, COMMITTED, ABORTED, UNKNOWN = "OPEN", "COMMITTED", "ABORTED", "unknown"
TABLE = docstring_table("exacta.core.transactions.handle", "handle \\ input")
CELLS: dict[str, tuple[object, str | None]] = {
    # what a cell says: the answer, and what the handle is then, if it changes
    "taken": (None, None),
    "commit": (DONE, COMMITTED),
    "abort": (DONE, ABORTED),
    "done": (DONE, None),
    "ENDED": (ENDED, None),
    "NOT_FOUND": (NOT_FOUND, None),
    "-": (None, None),
}
INPUTS = {
    # input: its column, and how it is sent
    "write": ("a write", lambda handle: handle.append()),
    "offsets": ("a write", lambda handle: handle.commit_offsets(7)),
    "commit": ("commit", lambda handle: handle.end(commit=True)),
    "abort": ("abort", lambda handle: handle.end(commit=False)),
    "strict commit": ("commit", lambda handle: handle.end(commit=True, strict=True)),
    "strict abort": ("abort", lambda handle: handle.end(commit=False, strict=True)),
    "time-out": ("time-out, marker, loss", lambda handle: handle.world.pass_time(1000)),
}


def in_state(world: World, state: str) -> Handle:
    if state == UNKNOWN:
        return Handle(world, TransactionId(7_777), ProducerId(7_777))
    handle = world.handle()
    assert isinstance(handle.append(), Appended)
    if state != OPEN:
        assert handle.end(commit=state == COMMITTED) == DONE
    return handle


def state_of(handle: Handle) -> str:
    state = handle.world.state
    if handle.transaction_id in state.transactions:
        return OPEN
    ended = state.ended_handles.get(handle.transaction_id)
    return UNKNOWN if ended is None else COMMITTED if ended.committed else ABORTED


def test_the_table_is_complete() -> None:
    assert set(TABLE.columns) == {column for column, _ in INPUTS.values()}


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("state", TABLE.rows)
def test_every_input_in_every_state(world: World, state: str, name: str) -> None:
    handle = in_state(world, state)
    column, send = INPUTS[name]
    expected, after = CELLS[TABLE[state, column]]
    if name.startswith("strict") and state in (COMMITTED, ABORTED):
        expected, after = NOT_FOUND, None  # as the table's note says
    before, length = snapshot(world.state), len(world.log)
    reply = send(handle)
    if TABLE[state, column] == "taken":
        assert isinstance(reply, Appended) if name == "write" else reply == DONE
    elif name != "time-out":
        assert reply == expected
    assert state_of(handle) == (after or state)
    if isinstance(expected, Rejection):
        assert (snapshot(world.state), len(world.log)) == (before, length), "a refusal changes nothing"
    world.check()


def test_several_writers_write_and_anybody_ends(world: World) -> None:
    """No writer is told from another: none has a sequence under the handle, and none is remembered there."""
    handle = world.handle()
    for partition in (0, 1, 0, 0):
        assert isinstance(handle.append(partition), Appended)
    assert handle.commit_offsets(7) == DONE
    assert all(each.last_stable_offset == 0 for each in world.state.partitions.values())
    assert Handle(world, handle.transaction_id, handle.producer_id).end(commit=True) == DONE
    assert [each.last_stable_offset for each in world.state.partitions.values()] == [4, 2]
    assert not any(each.producers for each in world.state.partitions.values())
    assert world.state.groups["g"].offsets["t"][0].offset == 7
    world.check()


def test_an_abort_takes_records_and_offsets_back(world: World) -> None:
    handle = world.handle()
    handle.append(count=3)
    handle.commit_offsets(7)
    handle.end(commit=False)
    (aborted,) = world.state.partitions[PartitionId(0)].aborted
    assert (aborted.producer_id, aborted.runs) == (handle.producer_id, (0, 2))
    assert world.state.groups["g"].offsets == {}
    world.check()


def test_two_are_open_at_once_and_apart_in_one_partition(world: World) -> None:
    one, other = world.handle(), world.handle()
    for handle in (one, other, one):
        handle.append()
    other.end(commit=False)
    one.end(commit=True)
    assert [each.producer_id for each in world.state.partitions[PartitionId(0)].aborted] == [other.producer_id]
    world.check()


def test_an_owned_transaction_is_no_handle(world: World) -> None:
    """A client that guesses its id can neither write into it nor end it."""
    owner = world.producer()
    owner.add()
    owner.append()
    stranger = Handle(world, world.ongoing().transaction_id, owner.producer_id)
    assert stranger.append() is NOT_FOUND
    assert stranger.commit_offsets(1) is NOT_FOUND
    assert stranger.end(commit=True) is NOT_FOUND
    world.check()


@pytest.mark.parametrize("transactional_id", [None, "x"])
def test_who_presents_a_handles_producer_id_is_not_in_it(world: World, transactional_id: str | None) -> None:
    handle = world.handle()
    handle.append()
    forged = AppendBatch(
        topic="t",
        partition=1,
        record_count=1,
        size=62,
        max_timestamp_ms=0,
        writer=IdempotentWriter(
            producer_id=handle.producer_id,
            producer_epoch=ProducerEpoch(0),
            base_sequence=0,
            transactional_id=transactional_id,
        ),
    )
    assert world.send(forged) is Rejection.INVALID_PRODUCER_ID_MAPPING
    in_it = replace(forged, transaction=handle.transaction_id, handle_producer_id=handle.producer_id)
    assert world.send(in_it) is Rejection.INVALID_PRODUCER_ID_MAPPING, "its sequences would be the handle's"
    world.check()


@pytest.mark.parametrize("whose", ["nobody's", "another's", "its owner's"])
def test_bytes_that_do_not_say_its_producer_id_are_not_in_it(world: World, whose: str) -> None:
    """Readers would take them for plain messages, or for another's, and see them after an abort."""
    handle, other, owner = world.handle(), world.handle(), world.producer("x")
    owner.join(handle)
    said = {"nobody's": NO_PRODUCER_ID, "another's": other.producer_id, "its owner's": owner.producer_id}[whose]
    batch = AppendBatch(
        topic="t",
        partition=0,
        record_count=1,
        size=62,
        max_timestamp_ms=0,
        transaction=handle.transaction_id,
        handle_producer_id=said,
    )
    assert world.send(batch) is Rejection.INVALID_PRODUCER_ID_MAPPING
    assert isinstance(world.send(replace(batch, handle_producer_id=handle.producer_id)), Appended)
    world.check()


def test_named_writers_write_into_a_handle_and_their_repeats_are_known(world: World) -> None:
    handle = world.handle()
    partition = world.state.partition("t", 0)
    assert partition is not None

    def write(name: str, sequence: int) -> object:
        return world.send(
            AppendBatch(
                topic="t",
                partition=0,
                record_count=2,
                size=62,
                max_timestamp_ms=0,
                writer=NamedWriter(name=name, first_sequence=sequence - 1, last_sequence=sequence),
                transaction=handle.transaction_id,
                handle_producer_id=handle.producer_id,
            )
        )

    assert write("a", 5) == Appended(base_offset=Offset(0))
    assert write("b", 1) == Appended(base_offset=Offset(2))
    assert write("a", 5) == ALREADY_STORED
    assert partition.producers == {}, "a named writer is no producer"
    assert partition.open_transactions == {handle.producer_id: 0}
    assert world.send(EndHandle(transaction_id=handle.transaction_id, commit=False)) is DONE
    assert [(each.first_offset, each.last_offset) for each in partition.aborted] == [(0, 4)]
    handle = world.handle()
    assert write("a", 5) == ALREADY_STORED, "what was aborted counts, as in Pulsar"
    assert write("a", 6) is Rejection.PARTLY_STORED
    assert write("a", 7) == Appended(base_offset=Offset(5))
    world.check()


def test_a_group_fences_its_zombies_in_a_handle_too(world: World) -> None:
    world.send(CommitOffsets(group_id="g", offsets=(OffsetToCommit(topic="t", partition=0, offset=1),)))
    handle = world.handle()
    assert handle.commit_offsets(2, member_id="gone", generation=3) is not DONE
    assert state_of(handle) == OPEN
    assert handle.commit_offsets(2, group_id="") is Rejection.INVALID_GROUP_ID
    world.check()


# --- ids --------------------------------------------------------------------------------------------------------------


def test_no_id_is_given_out_twice_over_crashes_that_forget_everything(world: World) -> None:
    """Nothing of a handle need be durable when its begin is answered, but what reserves its ids."""
    given: list[tuple[int, int]] = []
    for _ in range(3):
        handles = [world.handle() for _ in range(3)]
        given += [(each.transaction_id, each.producer_id) for each in handles]
        world.crash(machine_stops=True)
        assert all(each.end(commit=True) is not DONE for each in handles)
    assert len({each for each, _ in given}) == len({each for _, each in given}) == len(given)
    world.check()


def test_a_reservation_lasts_for_a_thousand_and_a_restart_skips_the_rest(world: World) -> None:
    first = world.handle()
    assert world.state.reserved_transaction_id == first.transaction_id + IDS_AT_ONCE
    world.handle()
    assert world.state.reserved_transaction_id == first.transaction_id + IDS_AT_ONCE
    reserved = world.state.reserved_transaction_id, world.state.reserved_producer_id
    world.state = restore(snapshot(world.state), SMALL)
    after_recovery(world.state)
    later = world.handle()
    assert (later.transaction_id, later.producer_id) == reserved
    world.check()


def test_a_producer_id_of_before_a_restart_is_never_another_ones(world: World) -> None:
    idempotent = world.producer(None)
    world.crash()
    assert world.producer(None).producer_id > idempotent.producer_id
    assert world.producer("x").producer_id > idempotent.producer_id
    world.check()


# --- bounds -----------------------------------------------------------------------------------------------------------


def test_no_more_are_open_than_may_be() -> None:
    world = World(replace(SMALL, max_open_handles=2))
    world.topic()
    first, _ = world.handle(), world.handle()
    assert world.send(BeginTransaction(timeout_ms=1000)) is Rejection.LIMIT_REACHED
    first.end(commit=True)
    world.handle()
    world.check()


@pytest.mark.parametrize("timeout_ms", [-1, 0, SMALL.transaction_max_timeout_ms + 1, 2**31 - 1])
def test_every_handle_has_a_time_out_within_bounds(world: World, timeout_ms: int) -> None:
    assert world.send(BeginTransaction(timeout_ms=timeout_ms)) is Rejection.INVALID_TRANSACTION_TIMEOUT


def test_outcomes_are_remembered_up_to_a_number_and_for_a_time() -> None:
    world = World(replace(SMALL, max_ended_handles=2, ended_handle_retention_ms=5_000))
    world.topic()
    handles = [world.handle() for _ in range(3)]
    for handle in handles:
        handle.end(commit=True)
    assert [each.end(commit=True) for each in handles] == [NOT_FOUND, DONE, DONE]
    world.pass_time(5_000)
    assert handles[2].end(commit=True) == DONE
    world.pass_time(1)
    assert handles[2].end(commit=True) is NOT_FOUND
    world.handle().end(commit=False)
    assert len(world.state.ended_handles) == 1, "what is too old goes with the next end"
    world.check()


# --- what ends it otherwise -------------------------------------------------------------------------------------------


def test_it_times_out_also_after_a_restart(world: World) -> None:
    handle = world.handle()
    handle.append()
    world.pass_time(400)
    world.crash()
    world.pass_time(599)
    assert state_of(handle) == OPEN
    world.pass_time(1)
    assert state_of(handle) == ABORTED
    assert handle.end(commit=True) is ENDED
    (incident,) = incidents_of(world.state, handle.name)
    assert (incident.kind, incident.cause) == (IncidentKind.ABORTED, Cause.TIME_OUT)
    world.check()


def test_after_a_loss_every_handle_that_is_found_open_is_aborted(world: World) -> None:
    found, ended = world.handle(), world.handle()
    found.append()
    ended.append()
    ended.end(commit=True)  # durable, with all before
    found.append()
    world.durable_length = len(world.log) - 1
    world.acknowledged.pop()
    world.crash(machine_stops=True)
    assert (state_of(found), state_of(ended)) == (ABORTED, COMMITTED)
    assert found.end(commit=True) is ENDED
    assert ended.end(commit=True) == DONE
    assert {event.cause for event in world.log if isinstance(event, TransactionEnded) and not event.committed} == {
        Cause.LOSS
    }
    world.check()


def test_a_kill_alone_leaves_it_open(world: World) -> None:
    handle = world.handle()
    handle.append()
    world.durable_length = len(world.log)
    world.crash()
    assert handle.end(commit=True) == DONE
    world.check()


def test_a_handle_that_a_loss_has_forgotten_cannot_be_ended(world: World) -> None:
    world.handle().end(commit=True)
    length = len(world.log)
    handle = world.handle()
    handle.append()
    world.durable_length = length
    world.acknowledged.clear()
    world.crash(machine_stops=True)
    assert handle.end(commit=True) is NOT_FOUND
    assert handle.end(commit=False) is NOT_FOUND
    world.check()


def test_an_operators_marker_aborts_it_in_all_partitions(world: World) -> None:
    """The engine's process would stop where the core asks for a transactional id that is not there."""
    handle = world.handle()
    handle.append(0)
    handle.append(1)
    nowhere = AbortByMarker(
        producer_id=handle.producer_id, producer_epoch=ProducerEpoch(0), topic="t", partition=1, client_id="operator"
    )
    assert world.send(replace(nowhere, producer_id=ProducerId(99))) == DONE
    assert state_of(handle) == OPEN
    assert world.send(nowhere) == DONE
    assert state_of(handle) == ABORTED
    assert [each.last_stable_offset for each in world.state.partitions.values()] == [2, 2]
    (incident,) = incidents_of(world.state, handle.name)
    assert (incident.cause, incident.client_id) == (Cause.MARKER, "operator")
    assert world.send(nowhere) == DONE
    world.check()
