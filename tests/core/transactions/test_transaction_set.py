"""Ending a set of transactions: the tables of `transaction_set.py`, swept; markers; what a crash may have forgotten."""

import pytest
from msgspec.structs import replace

from exacta.core.commands import EndTransactions, TransactionToEnd
from exacta.core.events import TransactionEnded
from exacta.core.ids import ProducerId, TransactionVersion
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, TransactionsRefused
from exacta.core.snapshot import snapshot
from exacta.core.values.transactions import Phase
from tests.core.world import SMALL, Producer, World
from tests.docstring_tables import docstring_table

EMPTY, ONGOING, COMMITTED, ABORTED = Phase.EMPTY, Phase.ONGOING, Phase.COMPLETE_COMMIT, Phase.COMPLETE_ABORT
INVALID = Rejection.INVALID_TRANSACTION_STATE


def in_phase(world: World, phase: Phase, name: str, partition: int = 0) -> Producer:
    """A producer that has written a record and an offset, and stands in `phase`."""
    producer = world.producer(name)
    if phase is not EMPTY:
        producer.add(partition)
        producer.append(partition)
        producer.add_group(f"group of {name}")
        producer.commit_offsets(7, f"group of {name}")
    if phase in (COMMITTED, ABORTED):
        producer.end(commit=phase is COMMITTED)
    assert world.state.transactional_ids[name].phase is phase
    return producer


def phases(world: World, *producers: Producer) -> list[Phase]:
    return [world.state.transactional_ids[str(producer.transactional_id)].phase for producer in producers]


def test_all_end_in_one_outcome_and_their_markers_follow_each_other(world: World) -> None:
    producers = [in_phase(world, ONGOING, name) for name in "xyz"]
    length = len(world.log)
    assert world.end_all(*producers, commit=True) == DONE
    ended = world.log[length:]
    assert [event.markers for event in ended if isinstance(event, TransactionEnded)] == [
        ((0, 3, producers[0].producer_id),),
        ((0, 4, producers[1].producer_id),),
        ((0, 5, producers[2].producer_id),),
    ]
    assert phases(world, *producers) == [COMMITTED] * 3
    partition = world.state.partition("t", 0)
    assert partition is not None
    assert (partition.last_stable_offset, partition.next_offset, partition.aborted) == (6, 6, [])
    assert [world.state.groups[f"group of {name}"].offsets["t"][0].offset for name in "xyz"] == [7, 7, 7]
    world.check()


def test_all_are_aborted_in_one_outcome(world: World) -> None:
    producers = [in_phase(world, ONGOING, name) for name in "xy"]
    assert world.end_all(*producers, commit=False) == DONE
    partition = world.state.partition("t", 0)
    assert partition is not None
    assert [(entry.first_offset, entry.last_offset) for entry in partition.aborted] == [(0, 2), (1, 3)]
    assert [world.state.groups[f"group of {name}"].offsets for name in "xy"] == [{}, {}]
    world.check()


MODULE = "exacta.core.transactions.transaction_set"
ENTRIES = docstring_table(MODULE, "phase \\ input")
SETS = docstring_table(MODULE, "the entries are")


def entry(world: World, row: str, name: str, partition: int, *, commit: bool) -> TransactionToEnd:
    """Return an entry of this row of the table."""
    wanted, other = (COMMITTED, ABORTED) if commit else (ABORTED, COMMITTED)
    match row:
        case "ONGOING, holds what is named":
            return in_phase(world, ONGOING, name, partition).to_end(("t", partition))
        case "ONGOING, lacks a named partition":
            return in_phase(world, ONGOING, name, partition).to_end(("t", 2))
        case "any, under a pair that is unused":
            producer = in_phase(world, ONGOING, name, partition)
            producer.version = TransactionVersion.V2
            producer.end(commit=commit)
            return producer.to_end()
    phase = {"`wanted`": wanted, "the other COMPLETE phase": other, "EMPTY": EMPTY}[row]
    return in_phase(world, phase, name, partition).to_end()


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("second", ENTRIES.rows)
@pytest.mark.parametrize("first", ENTRIES.rows)
def test_every_pair_of_entries(first: str, second: str, commit: bool) -> None:
    world = World()
    world.topic(partition_count=3)
    entries = (entry(world, first, "x", 0, commit=commit), entry(world, second, "y", 1, commit=commit))
    before, length = snapshot(world.state), len(world.log)
    answer = world.send(EndTransactions(transactions=entries, commit=commit))
    (column,) = ENTRIES.columns
    kinds = [ENTRIES[row, column] for row in (first, second)]
    which = {("open", "open"): "all open", ("ended", "ended"): "all ended"}.get((kinds[0], kinds[1]), "anything else")
    match SETS[which, "the set"]:
        case "every transaction ends, in one outcome":
            assert answer == DONE
            assert len(world.log) == length + 2
            held = [world.state.transactional_ids[name] for name in "xy"]
            assert [each.phase for each in held] == [COMMITTED if commit else ABORTED] * 2
        case "answered as the first time: this is the repeat after a lost answer":
            assert answer == DONE
            assert len(world.log) == length, "a repeat ends nothing"
        case _:
            refused = [INVALID if kind == "INVALID_STATE" else None for kind in kinds]
            mixture = [INVALID if kind == "ended" else None for kind in kinds]
            assert answer == TransactionsRefused(rejections=tuple(refused if any(refused) else mixture))
            assert (len(world.log), snapshot(world.state)) == (length, before), "a rejection changes nothing"
    world.check()


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("phase", Phase)
def test_a_zombie_among_them_stops_all(world: World, phase: Phase, commit: bool) -> None:
    alive, zombie = in_phase(world, ONGOING, "x"), world.producer("y")
    in_phase(world, phase, "y", partition=1)
    stranger = Producer(world, "y", ProducerId(zombie.producer_id + 99), zombie.epoch)
    for outdated, rejection in ((zombie, Rejection.PRODUCER_FENCED), (stranger, Rejection.INVALID_PRODUCER_ID_MAPPING)):
        answer = world.end_all(alive, outdated, commit=commit)
        assert answer == TransactionsRefused(rejections=(None, rejection))
    assert phases(world, alive) == [ONGOING]
    world.check()


def test_a_repeat_of_a_set_that_has_begun_anew_in_part_is_refused(world: World) -> None:
    producers = [in_phase(world, ONGOING, name) for name in "xy"]
    world.end_all(*producers, commit=True)
    producers[1].add(1)
    producers[1].append(1)
    assert world.end_all(*producers, commit=True) == TransactionsRefused(rejections=(INVALID, None))
    assert phases(world, *producers) == [COMMITTED, ONGOING]
    world.check()


def test_a_transaction_that_lacks_a_named_partition_stops_all(world: World) -> None:
    whole, lacking = in_phase(world, ONGOING, "x"), in_phase(world, ONGOING, "y", partition=1)
    lacking.add(0)  # registered is not written to
    refused = TransactionsRefused(rejections=(None, INVALID))
    assert world.end_all(whole, lacking, commit=True, partitions=(("t", 0),)) == refused
    unknown = TransactionsRefused(rejections=(INVALID, INVALID))
    assert world.end_all(whole, lacking, commit=True, partitions=(("t", 9),)) == unknown
    lacking.append(0)
    assert world.end_all(whole, lacking, commit=True, partitions=(("t", 0),)) == DONE
    world.check()


def test_a_repeat_does_not_end_a_handle_that_was_joined_since(world: World) -> None:
    """The handle has written to the named partition, too, but its owner has not."""
    producer = in_phase(world, ONGOING, "x")
    assert world.end_all(producer, commit=True, partitions=(("t", 0),)) == DONE
    handle = world.handle()
    handle.append(0)
    producer.join(handle)
    refused = TransactionsRefused(rejections=(INVALID,))
    assert world.end_all(producer, commit=True, partitions=(("t", 0),)) == refused
    producer.add(0)
    producer.append(0)
    assert world.end_all(producer, commit=True, partitions=(("t", 0),)) == DONE


def test_an_id_that_is_named_twice_is_refused(world: World) -> None:
    one, other = in_phase(world, ONGOING, "x"), in_phase(world, ONGOING, "y")
    twice = Rejection.INVALID_TRANSACTIONAL_ID
    assert world.end_all(one, other, one, commit=True) == TransactionsRefused(rejections=(twice, None, twice))
    assert phases(world, one, other) == [ONGOING, ONGOING]


def test_of_no_transactions_all_end(world: World) -> None:
    assert world.end_all(commit=True) == DONE


@pytest.mark.parametrize("limit", ["max_transactions_ended_at_once", "max_partitions_ended_at_once"])
def test_more_than_may_be_ended_at_once(limit: str) -> None:
    world = World(replace(SMALL, **{limit: 2}))
    world.topic()
    producers = [in_phase(world, ONGOING, name) for name in "xyz"]
    length = len(world.log)
    assert world.end_all(*producers, commit=True) is Rejection.TOO_MANY_TRANSACTIONS
    assert len(world.log) == length
    assert world.end_all(*producers[:2], commit=True) == DONE
    world.check()


def test_a_timed_out_transaction_stops_all(world: World) -> None:
    patient, late = world.producer("x", timeout_ms=2000), in_phase(world, ONGOING, "y")
    patient.add()
    patient.append()
    world.pass_time(1000)
    answer = world.end_all(patient, late, commit=True)
    assert answer == TransactionsRefused(rejections=(None, Rejection.PRODUCER_FENCED))
    world.check()


# --- what a crash may have forgotten (decision 0002) ------------------------------------------------------------------


def test_a_commit_is_repeated_after_a_crash(world: World) -> None:
    producers = [in_phase(world, ONGOING, name) for name in "xy"]
    world.end_all(*producers, commit=True)
    world.crash()
    length = len(world.log)
    assert world.end_all(*producers, commit=True) == DONE
    assert len(world.log) == length
    world.check()


def test_a_begin_that_a_crash_forgot_has_nothing_to_commit(world: World) -> None:
    known, forgotten = in_phase(world, ONGOING, "x"), world.producer("y")
    forgotten.add(1)
    world.crash()
    assert world.end_all(known, forgotten, commit=True) == TransactionsRefused(rejections=(None, INVALID))
    assert phases(world, known, forgotten) == [ONGOING, EMPTY]
    forgotten.append(1)  # brings it back
    assert world.end_all(known, forgotten, commit=True) == DONE
    world.check()
