"""Binding a transactional id, swept; and two-phase commits (KIP-939), which the holder ends, without a time-out."""

from random import Random

import pytest

from exacta.core.commands import InitProducerId
from exacta.core.events import TransactionEnded
from exacta.core.ids import NO_PRODUCER_ID, NO_TIMEOUT_MS, PartitionId, ProducerEpoch, ProducerId, TransactionVersion
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, Appended, ProducerBoundReply, TransactionEndedReply
from exacta.core.snapshot import after_recovery, restore, snapshot
from exacta.core.values.transactions import Phase
from tests.core.world import SMALL, Producer, World
from tests.docstring_tables import docstring_table
from tests.shares import share_of

V1, V2 = TransactionVersion
FENCED, INVALID = Rejection.PRODUCER_FENCED, Rejection.INVALID_TRANSACTION_STATE
DAY_MS = 86_400_000

PHASES = {
    # a phase: the name of its row without keep_prepared
    "empty": "EMPTY",
    "ongoing": "ONGOING",
    "prepared": "ONGOING",
    "committed": "COMPLETE, ended under the pair",
    "aborted": "COMPLETE, ended under the pair",
    "committed, bumped": "COMPLETE, the pair is unused",
    "aborted, bumped": "COMPLETE, the pair is unused",
}
KEEPING = "ONGOING, with keep_prepared"
TABLE = docstring_table("exacta.core.transactions.binding", "phase \\ InitProducerId presents")


def test_the_table_is_complete() -> None:
    assert TABLE.rows.keys() == {*PHASES.values(), KEEPING}


def in_phase(world: World, phase: str) -> Producer:
    """A client whose transactional id is in this phase, and who has a pair before."""
    client = world.producer(two_phase=True)
    client.init_again()
    if phase != "empty":
        client.add()
        client.append()
    if phase == "prepared":
        client.init_again(keep_prepared=True)
    if phase.startswith(("committed", "aborted")):
        client.version = V2 if phase.endswith("bumped") else V1
        client.end(commit=phase.startswith("committed"))
    return client


def phase_of(world: World) -> str:
    held = world.state.transactional_ids["x"]
    transaction = world.open_transaction()
    if transaction is not None and held.has_prepared(transaction):
        return "prepared"
    return {"CompleteCommit": "committed", "CompleteAbort": "aborted"}.get(held.phase.value, held.phase.value.lower())


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("presented", TABLE.columns)
@pytest.mark.parametrize("phase", PHASES)
def test_every_pair_presented_in_every_phase(world: World, phase: str, presented: str, keep: bool) -> None:
    cell = TABLE[KEEPING if keep and PHASES[phase] == "ONGOING" else PHASES[phase], presented]
    if (phase, presented, keep) == ("ongoing", "the pair before", True):
        cell = "fenced"  # as the table's note says: that pair is not of a prepared transaction's last holder
    in_phase(world, phase)
    held = world.state.transactional_ids["x"]
    transaction = world.open_transaction()
    current, before, open_pair = held.pair, held.previous_pair, None if transaction is None else transaction.pair
    pair = {"nothing": (-1, -1), "the pair": current, "the pair before": before, "another pair": (current[0], 3)}
    log_before = len(world.log)
    reply = world.send(
        InitProducerId(
            transactional_id="x",
            transaction_timeout_ms=1000,
            producer_id=ProducerId(pair[presented][0]),
            producer_epoch=ProducerEpoch(pair[presented][1]),
            keep_prepared=keep,
        )
    )
    after = {"abort, bump": "aborted", "keep, bump": "prepared", "bump": "empty", "fenced": phase.split(",")[0]}.get(
        cell, "prepared" if keep and transaction is not None else "empty"
    )
    if cell == "fenced":
        assert (reply, len(world.log)) == (FENCED, log_before)
    else:
        assert isinstance(reply, ProducerBoundReply)
        assert ((reply.producer_id, reply.producer_epoch) > current) is cell.endswith("bump")
        expected = open_pair if after == "prepared" else (NO_PRODUCER_ID, -1)
        assert (reply.open_producer_id, reply.open_producer_epoch) == expected
        assert (held.producer_id, held.producer_epoch) == (reply.producer_id, reply.producer_epoch)
    ended = [event for event in world.log[log_before:] if isinstance(event, TransactionEnded)]
    aborts = after == "aborted" and not phase.startswith("aborted")
    assert [event.committed for event in ended] == ([False] if aborts else [])
    assert phase_of(world) == ("empty" if aborts else after)
    world.check()


KEPT = {
    "add": (lambda client: client.add(1), INVALID),
    "add_group": (lambda client: client.add_group(), INVALID),
    "append": (lambda client: client.append(), INVALID),
    "offsets": (lambda client: client.commit_offsets(1), INVALID),
    "commit": (lambda client: client.end(commit=True), TransactionEndedReply),
    "abort": (lambda client: client.end(commit=False), TransactionEndedReply),
}


@pytest.mark.parametrize("version", TransactionVersion)
@pytest.mark.parametrize("name", KEPT)
def test_a_kept_transaction_can_only_be_ended(world: World, name: str, version: TransactionVersion) -> None:
    first = world.producer(two_phase=True, version=version)
    first.add()
    first.append()
    first.add_group()
    first.commit_offsets(7)
    second = world.producer(two_phase=True, version=version, keep_prepared=True)
    asks, expected = KEPT[name]
    answer = asks(second)
    assert answer == expected or (isinstance(expected, type) and isinstance(answer, expected))
    partition = world.state.partition("t", 0)
    assert partition is not None
    if expected is INVALID:
        assert phase_of(world) == "prepared"
        assert partition.last_stable_offset == 0
    else:
        assert partition.last_stable_offset == 2
        assert bool(partition.aborted) is (name == "abort")
        offsets = world.state.groups["g"].offsets
        assert ("t" in offsets and offsets["t"][0].offset == 7) is (name == "commit")
    world.check()


@pytest.mark.parametrize("version", TransactionVersion)
def test_who_has_lost_the_id_can_neither_write_nor_end(world: World, version: TransactionVersion) -> None:
    first = world.producer(two_phase=True, version=version)
    first.add()
    first.append()
    second = world.producer(two_phase=True, version=version, keep_prepared=True)
    third = world.producer(two_phase=True, version=version, keep_prepared=True)
    for zombie in (first, second):
        assert zombie.append(sequence=1) is Rejection.INVALID_PRODUCER_EPOCH
        assert zombie.commit_offsets(1) is FENCED
        assert zombie.end(commit=True) is FENCED
        assert zombie.end(commit=False) is FENCED
    assert isinstance(third.end(commit=True), TransactionEndedReply)
    if version is V2:
        assert isinstance(third.append(), Appended)
    world.check()


def test_a_pair_of_two_phase_commits_names_one_transaction_in_version_1_too(world: World) -> None:
    """A client that recovers is told the pair, and takes what is open under it for what was decided."""
    producer = world.producer(two_phase=True)
    producer.add()
    producer.append()
    producer.end(commit=True)
    assert producer.add() is INVALID
    assert producer.add_group() is INVALID
    assert producer.append() is Rejection.TRANSACTION_NOT_BEGUN
    producer.init_again()
    assert producer.add() == DONE
    world.check()


def test_the_pair_before_is_bound_again_to_get_another_time_out(world: World) -> None:
    limited = world.producer(timeout_ms=1000)
    limited.add()
    limited.append()
    world.pass_time(1000)  # timed out, which bumps
    asked = InitProducerId(
        transactional_id="x",
        transaction_timeout_ms=1000,
        producer_id=limited.producer_id,
        producer_epoch=limited.epoch,
        two_phase=True,
    )
    bound = world.send(asked)
    assert isinstance(bound, ProducerBoundReply)
    assert world.send(asked) == bound, "a repeat changes nothing"
    prepared = Producer(world, "x", bound.producer_id, bound.producer_epoch)
    prepared.add()
    prepared.append()
    world.pass_time(DAY_MS)
    assert phase_of(world) == "ongoing"
    world.check()


def test_it_has_no_time_out_and_outlives_restarts(world: World) -> None:
    first = world.producer(two_phase=True)
    first.add()
    first.append()
    world.pass_time(30 * DAY_MS)
    world.crash()
    world.pass_time(30 * DAY_MS)
    assert world.state.transactional_ids["x"].transaction_timeout_ms == NO_TIMEOUT_MS
    second = world.producer(two_phase=True, keep_prepared=True)
    world.state = restore(snapshot(world.state), SMALL)
    after_recovery(world.state)
    world.pass_time(30 * DAY_MS)
    assert isinstance(second.end(commit=True), TransactionEndedReply)
    assert world.state.partitions[PartitionId(0)].aborted == []
    world.check()


@pytest.mark.parametrize("first_two_phase", [False, True])
@pytest.mark.parametrize("second_two_phase", [False, True])
def test_a_kept_transaction_keeps_its_own_time_out(world: World, first_two_phase: bool, second_two_phase: bool) -> None:
    first = world.producer(two_phase=first_two_phase, timeout_ms=1000)
    first.add()
    first.append()
    world.producer(two_phase=second_two_phase, timeout_ms=50, keep_prepared=True)
    world.pass_time(999)
    assert phase_of(world) == "prepared"
    world.pass_time(1)
    assert phase_of(world) == ("prepared" if first_two_phase else "empty")
    world.check()


def test_a_timer_of_before_does_not_touch_it(world: World) -> None:
    limited = world.producer(timeout_ms=1000)
    limited.add()
    limited.append()
    limited.end(commit=True)
    successor = world.producer(two_phase=True)
    successor.add()
    successor.append()
    world.pass_time(1000)
    assert phase_of(world) == "ongoing"


def test_a_later_transaction_of_the_new_holder_has_the_new_time_out(world: World) -> None:
    first = world.producer(two_phase=True)
    first.add()
    first.append()
    second = world.producer(timeout_ms=50, keep_prepared=True)
    second.end(commit=True)
    second.add()
    second.append()
    world.pass_time(50)
    assert phase_of(world) == "empty"
    assert len(world.state.partitions[PartitionId(0)].aborted) == 1
    world.check()


def test_taking_over_again_and_again_rotates_the_producer_id(world: World) -> None:
    first = world.producer(two_phase=True)
    first.add()
    first.append()
    holder = first
    for _ in range(2 * SMALL.highest_epoch):
        holder = world.producer(two_phase=True, keep_prepared=True, version=V2)
    assert holder.producer_id != first.producer_id
    ended = holder.end(commit=True, adopts=False)
    assert isinstance(ended, TransactionEndedReply)
    assert holder.end(commit=True, adopts=False) == ended, "a repeat is recognised"
    assert holder.end(commit=False) is INVALID
    holder.end(commit=True)
    assert isinstance(holder.append(), Appended)
    assert world.state.partitions[PartitionId(0)].last_stable_offset == 2
    world.check()


def test_a_set_ends_it_by_the_pair_of_its_holder(world: World) -> None:
    first = world.producer(two_phase=True)
    first.add()
    first.append()
    second = world.producer(two_phase=True, keep_prepared=True)
    assert world.end_all(first, commit=True) != DONE
    assert world.end_all(second, commit=True, partitions=(("t", 0),)) == DONE
    assert world.end_all(second, commit=True) == DONE
    world.check()


def test_a_set_knows_what_a_kept_transaction_has_written_to(world: World) -> None:
    first = world.producer(two_phase=True)
    first.add()
    first.append()
    for _ in range(2 * SMALL.highest_epoch):
        holder = world.producer(two_phase=True, keep_prepared=True)
    assert holder.producer_id != first.producer_id
    assert world.end_all(holder, commit=True, partitions=(("t", 1),)) != DONE
    assert world.end_all(holder, commit=True, partitions=(("t", 0),)) == DONE
    world.check()


@pytest.mark.parametrize("seed", share_of(range(10)))
def test_what_was_prepared_is_decided_once_and_by_its_holder(seed: int) -> None:
    """Lives in which a coordinator outside decides: participants come and go, and only the decision takes effect."""
    random = Random(seed)
    for _ in range(60):
        world = World()
        world.topic()
        clients = [world.producer(two_phase=True, version=V2)]
        for _ in range(20):
            client = random.choice(clients[-2:])
            match random.choice(["write", "write", "offsets", "end", "keep", "restart", "again", "crash", "time"]):
                case "write":
                    client.append(random.randrange(2), random.randint(1, 2))
                case "offsets":
                    client.commit_offsets(random.randrange(9))
                case "end":
                    client.end(commit=random.random() < 0.7, adopts=random.random() < 0.8)
                case "keep":
                    kept = list(client.written)
                    is_open = world.state.transactional_ids["x"].phase is Phase.ONGOING
                    clients.append(world.producer(two_phase=True, version=V2, keep_prepared=True))
                    if is_open and client is clients[-2]:
                        clients[-1].written = kept
                case "restart":
                    clients.append(world.producer(two_phase=True, version=random.choice([V1, V2])))
                case "again":
                    client.init_again(keep_prepared=random.random() < 0.5)
                case "crash":
                    world.crash()
                case "time":
                    world.pass_time(random.choice([10, 5000]))
            world.check()
