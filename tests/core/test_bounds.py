"""The bounds of the state's tables: what is refused, what is forgotten, and what always goes on."""

import gc
import tracemalloc

import pytest
from msgspec.structs import replace

from exacta.core.commands import (
    AbandonHandles,
    CommitOffsets,
    Heartbeat,
    InitProducerId,
    JoinGroup,
    LeaveGroup,
    MemberToRemove,
    OffsetToCommit,
    SyncGroup,
)
from exacta.core.ids import Cause, Ticket
from exacta.core.rejections import Rejection
from exacta.core.replies import ALREADY_STORED, DONE, Appended, Joined, ProducerBoundReply, TransactionBegunReply
from exacta.core.snapshot import after_recovery, restore, snapshot
from exacta.core.values.limits import Limits
from exacta.core.values.usage import Table
from tests.core.filling import APPEND, FILLS, MEMBER
from tests.core.world import SMALL, World, named_writer

MIB = 1 << 20
ENTRIES = 300
"""This many are weighed: the memory of a few is less than what a table takes at once as it grows."""


def world(**limits: int) -> World:
    made = World(replace(SMALL, **limits))
    made.topic()
    return made


def room_for(table: Table, entries: int) -> int:
    """Return the bound of a table that has room for this many entries of `FILLS`, and not for one more."""
    here = world()
    before = here.state.volatile.usage[table].total
    for number in range(3):
        FILLS[table](here, number)
    # The first entry may bring more with it than the next ones.
    three = here.state.volatile.usage[table].total - before
    FILLS[table](here, 3)
    each = here.state.volatile.usage[table].total - before - three
    return before + three + each * (entries - 3) + each // 2


@pytest.mark.parametrize("table", Table, ids=lambda table: table.name)
class TestEveryTable:
    def test_a_full_one_refuses_a_further_entry_and_says_so(self, table: Table) -> None:
        here = world(**{table.value: room_for(table, 6)})
        answers = [FILLS[table](here, number) for number in range(9)]
        assert Rejection.LIMIT_REACHED not in answers[:6]
        assert answers[6:] == [Rejection.LIMIT_REACHED] * 3
        here.check()

    def test_what_it_counts_is_what_it_has_after_a_restart(self, table: Table) -> None:
        here = world()
        for number in range(6):
            FILLS[table](here, number)
        here.check()
        here.crash()
        here.check()

    def test_one_owner_alone_fills_half_of_it(self, table: Table) -> None:
        most = room_for(table, 8)
        here = world(**{table.value: most})
        here.owner = "10.0.0.1"
        answers = [FILLS[table](here, number) for number in range(12)]
        assert Rejection.LIMIT_REACHED in answers
        usage = here.state.volatile.usage[table]
        assert usage.total <= most // 2
        here.owner = "10.0.0.2"
        assert FILLS[table](here, 100) is not Rejection.LIMIT_REACHED
        here.owner = ""
        assert FILLS[table](here, 200) is not Rejection.LIMIT_REACHED, "who has no owner has no share"
        here.check()

    def test_it_weighs_at_least_the_memory_that_it_takes(self, table: Table) -> None:
        """Or the bound would say nothing of memory."""
        here = world()
        for number in range(20):  # whatever is made once
            FILLS[table](here, number)
        usage = here.state.volatile.usage
        gc.collect()
        tracemalloc.start()
        try:
            before = sum(each.total for key, each in usage.items() if key is not Table.HANDLES)
            for number in range(1_000, 1_000 + ENTRIES):
                FILLS[table](here, number)
                here.log.clear()
                here.timers.clear()
                here.acknowledged.clear()
            gc.collect()
            taken, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        counted = sum(each.total for key, each in usage.items() if key is not Table.HANDLES) - before
        assert taken <= counted, f"{taken / ENTRIES:.0f} bytes an entry, counted as {counted / ENTRIES:.0f}"
        assert counted <= 8 * taken, f"{taken / ENTRIES:.0f} bytes an entry, counted as {counted / ENTRIES:.0f}"


class TestMembers:
    """JoinGroup and SyncGroup of 45 MiB are refused, and who is a member goes on."""

    @staticmethod
    def join(here: World, ticket: int, size: int, group_id: str = "g") -> object:
        return here.send(
            replace(
                MEMBER,
                ticket=Ticket(ticket),
                group_id=group_id,
                new_member_id=f"m{ticket}",
                protocols=(("range", bytes(size)),),
            )
        )

    def test_a_join_with_metadata_of_many_megabytes_is_refused(self) -> None:
        here = World(Limits(), "10.0.0.1")
        here.topic()
        assert self.join(here, 1, 45 * MIB) is Rejection.LIMIT_REACHED
        assert not here.state.volatile.memberships
        answers = [self.join(here, number, 4 * MIB - 100, f"g{number}") for number in range(20)]
        assert answers[-1] is Rejection.LIMIT_REACHED
        assert here.state.volatile.usage[Table.MEMBERS].total <= Limits().max_member_bytes // 2
        here.owner = "10.0.0.2"
        assert self.join(here, 9, 100, "another") is not Rejection.LIMIT_REACHED
        here.check()

    def test_an_assignment_of_many_megabytes_is_refused(self) -> None:
        here = World(Limits())
        here.topic()
        self.join(here, 1, 100)
        joined = here.woken[1]
        assert isinstance(joined, Joined)
        large = (("m1", bytes(45 * MIB)),)
        sync = SyncGroup(
            ticket=Ticket(2), group_id="g", member_id="m1", generation=joined.generation, assignments=large
        )
        assert here.send(sync) is Rejection.LIMIT_REACHED
        here.check()

    def test_assignments_are_refused_and_the_member_leaves_as_before(self) -> None:
        here = world(max_member_bytes=MIB)
        assert self.join(here, 1, 100) is None
        joined = here.woken[1]
        assert isinstance(joined, Joined)
        sync = SyncGroup(
            ticket=Ticket(2),
            group_id="g",
            member_id="m1",
            generation=joined.generation,
            assignments=(("m1", bytes(MIB)),),
        )
        assert here.send(sync) is Rejection.LIMIT_REACHED
        beat = Heartbeat(group_id="g", member_id="m1", generation=joined.generation)
        assert here.send(beat) == DONE
        assert here.send(replace(sync, assignments=(("m1", bytes(1000)),))) is not Rejection.LIMIT_REACHED
        here.check()
        here.crash()
        here.check()
        here.send(LeaveGroup(group_id="g", members=(MemberToRemove(member_id="m1"),)))
        here.check()
        assert here.state.volatile.usage[Table.MEMBERS].total < 10_000


class TestOffsets:
    def test_metadata_of_many_partitions_are_refused_and_the_same_offsets_go_on(self) -> None:
        here = World(Limits())
        here.topic(partition_count=10_000)
        offsets = tuple(
            OffsetToCommit(topic="t", partition=number, offset=0, metadata="x" * 4_096) for number in range(10_000)
        )
        answers = [here.send(CommitOffsets(group_id=f"g{number}", offsets=offsets)) for number in range(7)]
        assert answers[0] == DONE
        assert answers[-1] is Rejection.LIMIT_REACHED
        moved = tuple(replace(each, offset=7) for each in offsets)
        assert here.send(CommitOffsets(group_id="g0", offsets=moved)) == DONE
        here.check()

    def test_a_commit_that_names_a_partition_twice_is_counted_once(self) -> None:
        here = world()
        twice = tuple(OffsetToCommit(topic="t", partition=0, offset=each, metadata="m" * each) for each in (5, 3))
        assert here.send(CommitOffsets(group_id="g", offsets=twice)) == DONE
        here.check()

    def test_what_a_transaction_puts_aside_is_counted_until_it_ends(self) -> None:
        here = world()
        for commit in (True, False):
            handle = here.handle()
            assert handle.commit_offsets(1, partition=int(commit)) == DONE
            here.check()
            handle.end(commit=commit)
            here.check()


class TestNamesOfWriters:
    """Jobs that name their producers by their pods do not shut a partition for a day."""

    @staticmethod
    def write(here: World, name: str, sequence: int = 0, partition: int = 0) -> object:
        return here.send(replace(APPEND, partition=partition, writer=named_writer(name, sequence)))

    @pytest.mark.parametrize("limit", ["max_named_writers", "max_named_writers_per_partition"])
    def test_names_idle_for_ten_minutes_make_room(self, limit: str) -> None:
        here = world(**{limit: 3})
        for name in "abc":
            assert isinstance(self.write(here, name), Appended)
        here.pass_time(SMALL.producer_protected_ms - 1)
        assert self.write(here, "d") is Rejection.LIMIT_REACHED
        assert isinstance(self.write(here, "b", 1), Appended)
        here.pass_time(1)
        assert isinstance(self.write(here, "d"), Appended)
        assert sorted(writer.name for writer in here.state.writers.values()) == ["b", "d"]
        assert self.write(here, "b", 1) == ALREADY_STORED
        here.check()

    def test_a_name_that_writes_elsewhere_is_not_idle(self) -> None:
        here = world(max_named_writers_per_partition=2)
        for name in "ab":
            self.write(here, name)
        here.pass_time(SMALL.producer_protected_ms)
        self.write(here, "a", 1, partition=1)
        assert isinstance(self.write(here, "c"), Appended)
        assert sorted(writer.name for writer in here.state.writers.values()) == ["a", "c"]
        here.check()

    def test_a_table_of_bytes_makes_room_too(self) -> None:
        here = world(max_writer_bytes=room_for(Table.WRITERS, 4))
        for name in "abcd":
            assert isinstance(self.write(here, "w" + name), Appended)
        assert self.write(here, "we") is Rejection.LIMIT_REACHED
        here.pass_time(SMALL.producer_protected_ms)
        assert isinstance(self.write(here, "we"), Appended)
        here.check()


class TestHandlesOfClosedConnections:
    def begin(self, here: World, count: int) -> list[object]:
        return [FILLS[Table.HANDLES](here, number) for number in range(count)]

    def test_those_without_participants_make_room_and_no_other(self) -> None:
        here = world(max_open_handles=4)
        begun = [here.handle(timeout_ms=900_000) for _ in range(4)]
        assert begun[1].append() is not Rejection.LIMIT_REACHED
        assert self.begin(here, 1) == [Rejection.LIMIT_REACHED]
        closed = AbandonHandles(transactions=tuple(each.transaction_id for each in begun[:2]))
        assert here.send(closed) == DONE
        assert isinstance(self.begin(here, 1)[0], TransactionBegunReply)
        assert here.state.ended_handles[begun[0].transaction_id].cause is Cause.IDLE
        assert self.begin(here, 1) == [Rejection.LIMIT_REACHED], "one has written something, the others are connected"
        assert (begun[1].end(commit=True), begun[2].end(commit=True)) == (DONE, DONE)
        here.check()

    def test_a_client_that_comes_back_goes_on(self) -> None:
        here = world(max_open_handles=2)
        handle = here.handle(timeout_ms=900_000)
        here.send(AbandonHandles(transactions=(handle.transaction_id,)))
        assert isinstance(handle.append(), Appended)
        self.begin(here, 1)
        assert self.begin(here, 1) == [Rejection.LIMIT_REACHED]
        assert handle.end(commit=True) == DONE
        here.check()

    def test_after_a_restart_nobody_is_connected(self) -> None:
        here = world(max_open_handles=2)
        self.begin(here, 2)
        here.crash()
        assert isinstance(self.begin(here, 1)[0], TransactionBegunReply)
        here.check()


class TestProducers:
    def test_silent_ones_are_forgotten_early_while_the_table_is_more_than_half_full(self) -> None:
        here = world(max_producer_bytes=room_for(Table.PRODUCERS, 6))
        for number in range(6):
            FILLS[Table.PRODUCERS](here, number)
        assert FILLS[Table.PRODUCERS](here, 7) is Rejection.LIMIT_REACHED
        here.pass_time(SMALL.producer_protected_ms + SMALL.producer_id_expiry_interval_ms)
        assert isinstance(FILLS[Table.PRODUCERS](here, 8), Appended)
        here.check()


class TestTransactionalIds:
    def test_a_long_one_is_refused(self) -> None:
        here = world(transactional_id_max_bytes=5)
        for transactional_id, taken in (("abcde", True), ("abcdef", False), ("äöü", False)):
            answer = here.send(InitProducerId(transactional_id=transactional_id, transaction_timeout_ms=1000))
            assert isinstance(answer, ProducerBoundReply) is taken

    def test_a_known_one_is_bound_again_where_there_is_no_room(self) -> None:
        here = world(max_transactional_id_bytes=room_for(Table.TRANSACTIONAL_IDS, 3))
        producer = here.producer("x0")
        for number in range(1, 5):
            FILLS[Table.TRANSACTIONAL_IDS](here, number)
        assert isinstance(producer.init_again(), ProducerBoundReply)
        here.check()


def test_a_start_needs_no_more_memory_than_the_tables_weigh() -> None:
    """Besides the bytes of the snapshot, which are fewer."""
    here = world()
    for table in Table:
        for number in range(300):
            FILLS[table](here, 1_000 * list(Table).index(table) + number)
    blob = snapshot(here.state)
    gc.collect()
    tracemalloc.start()
    try:
        state = restore(blob, here.state.limits)
        after_recovery(state)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    weight = sum(usage.total for table, usage in state.volatile.usage.items() if table is not Table.HANDLES)
    assert most <= weight, f"{most:,} bytes at the most, for tables of {weight:,}"
    assert len(blob) <= weight // 2


def test_a_join_of_a_present_member_is_taken_where_nothing_grows() -> None:
    here = world(max_member_bytes=room_for(Table.MEMBERS, 3))
    answers = [FILLS[Table.MEMBERS](here, number) for number in range(5)]
    assert answers[-1] is Rejection.LIMIT_REACHED
    again: JoinGroup = replace(MEMBER, ticket=Ticket(9), group_id="g0", member_id="m")
    assert here.send(again) is not Rejection.LIMIT_REACHED
    here.check()
