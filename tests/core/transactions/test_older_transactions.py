"""What an open transaction holds back of another one that is committed: its later records there, and nothing else."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exacta.core.commands import CommitOffsets, OffsetToCommit
from exacta.core.ids import Offset, TransactionVersion
from exacta.core.replies import DONE, Appended
from exacta.core.values.limits import Limits
from tests.core.groups.reading import fetch_offsets
from tests.core.world import Producer, World
from tests.shares import examples, is_whole

A, B = 0, 1


@pytest.fixture
def world() -> World:
    world = World()
    world.topic()
    return world


def stable(world: World) -> list[Offset]:
    """Return the last stable offsets of A and B, after a look at all invariants."""
    world.check()
    return [partition.last_stable_offset for partition in world.state.partitions.values()]


def write(producer: Producer, *partitions: int) -> Producer:
    for partition in partitions:
        if producer.version is TransactionVersion.V1:
            producer.add(partition)
        producer.append(partition)
    return producer


def group_offset(world: World, *, require_stable: bool = False) -> tuple[int | None, bool]:
    """Return what OffsetFetch says: the offset, and whether it is unstable."""
    (found,) = fetch_offsets(world.state, "g", [("t", [A])], require_stable=require_stable)
    return found.offset, found.unstable


@pytest.mark.parametrize("version", TransactionVersion)
@pytest.mark.parametrize("older_commits", [True, False])
def test_it_holds_back_the_partition_that_it_wrote_to_before_until_it_ends(
    world: World, version: TransactionVersion, older_commits: bool
) -> None:
    older = write(world.producer("older", version=version), A)
    producer = write(world.producer("x", version=version), A, B)
    assert stable(world) == [0, 0]
    producer.end(commit=True)
    assert stable(world) == [0, 2], "of B a reader gets the record and its marker, of A nothing"
    older.end(commit=older_commits)
    assert stable(world) == [4, 2]


def test_so_it_does_with_a_set_that_ends_in_one_step(world: World) -> None:
    older = write(world.producer("older"), A)
    both = [write(world.producer(name), A, B) for name in "xy"]
    assert world.end_all(*both, commit=True) == DONE
    assert stable(world) == [0, 4]
    older.end(commit=True)
    assert stable(world) == [6, 4]


def test_of_one_partition_it_holds_back_what_lies_behind_its_first_record(world: World) -> None:
    producer = write(world.producer("x"), A)
    other = write(world.producer("other"), A)
    write(producer, A)
    producer.end(commit=True)
    assert stable(world) == [1, 0], "the record at 0 is there, that at 2 is not"
    other.end(commit=False)
    assert stable(world) == [5, 0]


def test_it_holds_back_nothing_where_it_has_not_written_before(world: World) -> None:
    elsewhere = write(world.producer("elsewhere"), B)
    registered = world.producer("registered")
    registered.add(A)
    producer = write(world.producer("x"), A)
    younger = write(world.producer("younger"), A)
    producer.end(commit=True)
    assert stable(world) == [1, 0], "the younger one's record is at 1"
    write(registered, A)
    assert stable(world) == [1, 0]
    for each in (elsewhere, registered, younger):
        each.end(commit=True)
    assert stable(world) == [6, 2]


def test_it_holds_back_no_offsets_of_groups_but_from_readers_that_ask_for_stable_ones(world: World) -> None:
    older, producer, younger = (world.producer(name) for name in ("older", "x", "younger"))
    for offset, each in enumerate((older, producer, younger)):
        each.add_group()
        each.commit_offsets(offset)
    producer.end(commit=True)
    assert group_offset(world) == (1, False)
    assert group_offset(world, require_stable=True) == (1, True)
    older.end(commit=True)
    assert group_offset(world) == (1, False), "what was written later stays"
    assert group_offset(world, require_stable=True) == (1, True), "a younger one has an offset pending, too"
    younger.end(commit=False)
    assert group_offset(world, require_stable=True) == (1, False)
    world.check()


def test_an_offset_that_was_committed_later_outside_of_transactions_stays(world: World) -> None:
    producer = world.producer()
    producer.add_group()
    producer.commit_offsets(3)
    world.send(CommitOffsets(group_id="g", offsets=(OffsetToCommit(topic="t", partition=A, offset=5),)))
    producer.end(commit=True)
    assert group_offset(world) == (5, False)
    world.check()


def test_nothing_else_ever_holds_back_a_record() -> None:
    """Three producers write, commit and abort at random; each record is looked at after every step."""
    torn = 0
    steps = st.tuples(st.integers(0, 2), st.sampled_from([A, B, "commit", "abort"]))

    @settings(max_examples=examples(200))
    @given(st.lists(steps, min_size=4, max_size=24))
    def play(history: list[tuple[int, int | str]]) -> None:
        nonlocal torn
        world = World(Limits())
        world.topic()
        producers = [world.producer(f"{number}") for number in range(3)]
        transactions = [0, 0, 0]
        """The number of each producer's open transaction."""
        ended: dict[tuple[int, int], bool] = {}
        """Whether they were committed."""
        logs: dict[int, list[tuple[tuple[int, int], Offset]]] = {A: [], B: []}
        """By partition: whose records lie where."""
        for number, step in history:
            transaction = number, transactions[number]
            if isinstance(step, int):
                producers[number].add(step)
                appended = producers[number].append(step)
                assert isinstance(appended, Appended)
                logs[step].append((transaction, appended.base_offset))
            elif any(each == transaction for log in logs.values() for each, _ in log):
                producers[number].end(commit=step == "commit")
                ended[transaction] = step == "commit"
                transactions[number] += 1
            ends = dict(zip((A, B), stable(world), strict=True))
            readable = {(each, offset < ends[place]) for place, log in logs.items() for each, offset in log}
            for place, log in logs.items():
                for each, offset in log:
                    is_held_back = any(other not in ended and first < offset for other, first in log)
                    assert (offset < ends[place]) is (each in ended and not is_held_back)
            torn += any(committed and {(each, True), (each, False)} <= readable for each, committed in ended.items())

    play()
    assert torn > 10 or not is_whole(), "of a committed transaction a part was to be read, and a part was not"
