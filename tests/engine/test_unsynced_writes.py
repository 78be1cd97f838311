"""Writes into open transactions are answered before their sync, and what becomes of them (decision 0016)."""

import pytest

from exacta.core.commands import (
    AddGroup,
    CommitTransactionalOffsets,
    OffsetToCommit,
)
from exacta.core.ids import Offset, PartitionId, TransactionVersion
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, Appended, TransactionEndedReply
from exacta.core.transactions.loss import UNSEEN_MS
from exacta.core.values.limits import Limits
from exacta.ports.log import Visible
from tests.engine.producer import Producer
from tests.engine.rig import Rig, batch

pytestmark = pytest.mark.exclusive


def test_the_first_write_waits_for_the_sync_and_the_next_only_for_the_write(rig: Rig) -> None:
    producer = Producer(rig)
    producer.idle()
    producer.add(0, 1)
    first = producer.write(b"a")
    rig.loop.turn()
    assert first == [], "its transaction's begin is not durable"
    rig.loop.turn()
    assert first == [Appended(base_offset=Offset(0))]
    second = producer.write(b"b", 1)
    assert second == []
    rig.loop.turn()
    assert second == [Appended(base_offset=Offset(0))]
    assert (rig.storage.unsynced, rig.storage.in_flight) == (1, None)


def is_syncing(rig: Rig) -> bool:
    return rig.storage.in_flight is not None


def test_a_begin_is_synced_while_its_client_makes_the_first_write(rig: Rig) -> None:
    producer = Producer(rig)
    producer.idle()
    begun = producer.add(0, 1)
    rig.loop.turn()
    assert (begun, rig.storage.unsynced) == ([DONE], 1)
    rig.loop.turn()
    assert is_syncing(rig)
    early = producer.write(b"a")
    rig.loop.turn()
    assert early == [], "nothing is written while the begin's sync runs"
    rig.loop.turn()
    assert (early, rig.storage.unsynced, is_syncing(rig)) == ([Appended(base_offset=Offset(0))], 1, False)
    rig.stop_machine()
    assert rig.records() == b"", "found open, and aborted"


def test_a_write_that_waits_for_its_begins_sync_is_not_answered_where_that_fails(rig: Rig) -> None:
    producer = Producer(rig)
    producer.idle()
    producer.add(0, 1)
    rig.loop.turn()
    rig.storage.append_fault = "the disk is gone"
    rig.loop.turn()
    assert rig.storage.in_flight is not None or rig.failures
    early = producer.write(b"a")
    rig.loop.settle()
    rig.loop.pass_time(Limits().flush_interval_ms)
    assert (early, len(rig.failures)) == ([], 1)


def test_a_first_write_after_that_waits_for_no_sync(rig: Rig) -> None:
    producer = Producer(rig)
    producer.idle()
    producer.add(0, 1)
    rig.loop.settle()
    assert rig.storage.unsynced == 0
    late = producer.write(b"a")
    rig.loop.turn()
    assert (late, rig.storage.unsynced, is_syncing(rig)) == ([Appended(base_offset=Offset(0))], 1, False)


def test_writes_that_come_together_are_written_together(rig: Rig) -> None:
    producer = Producer(rig)
    producer.begin()
    groups_before = len(rig.storage.groups)
    answers = [producer.write(b"b"), producer.write(b"c"), producer.write(b"d", 1)]
    rig.loop.turn()
    assert [each[0].base_offset for each in answers] == [1, 2, 0]
    assert len(rig.storage.groups) == groups_before + 1


def test_an_acknowledged_offset_is_not_out_of_range_for_anybody(rig: Rig) -> None:
    producer = Producer(rig)
    producer.begin(b"a")
    producer.write(b"b")
    rig.loop.turn()
    for read_committed in (True, False):
        at_the_end = rig.fetch(2, read_committed=read_committed)
        rig.loop.settle()
        assert (at_the_end[0].rejection, at_the_end[0].records) == (None, [])
    beyond = rig.fetch(3)
    rig.loop.settle()
    assert beyond[0].rejection is Rejection.OFFSET_OUT_OF_RANGE


def test_what_is_written_is_synced_by_itself_and_only_shown_then(rig: Rig) -> None:
    producer = Producer(rig)
    producer.begin(b"a")
    waiting = rig.fetch(1, read_committed=False, max_wait_ms=10_000)
    producer.write(b"b")
    rig.loop.settle()
    assert waiting == []
    assert rig.engine.visible("t", 0) == Visible(Offset(0), Offset(1), Offset(0))
    rig.loop.pass_time(Limits().flush_interval_ms)
    assert rig.storage.unsynced == 0
    assert rig.engine.visible("t", 0) == Visible(Offset(0), Offset(2), Offset(0))
    assert waiting[0].records == [b"b"]


def test_a_sync_that_came_by_itself_is_not_made_once_more(rig: Rig) -> None:
    """The timer of what is durable by now serves what was written since, and not before its time."""
    producer = Producer(rig)
    producer.begin()
    for _ in range(3):
        producer.add(0)
        producer.write(b"a")
        rig.loop.pass_time(Limits().flush_interval_ms // 2)
        producer.end()
    producer.add(0)
    producer.write(b"b")
    rig.loop.pass_time(Limits().flush_interval_ms - 1)
    assert rig.storage.unsynced > 0
    rig.loop.pass_time(1)
    assert rig.storage.unsynced == 0


def test_who_reads_what_is_uncommitted_finds_what_was_acknowledged(rig: Rig) -> None:
    producer = Producer(rig)
    producer.begin(b"a")
    producer.write(b"b")
    rig.loop.settle()
    committed = rig.fetch(0)
    assert committed[0].records == [], "there is nothing to wait for"
    before = rig.fetch(0, read_committed=False)
    rig.loop.turn()
    assert rig.storage.in_flight is not None
    during = rig.fetch(1, read_committed=False)
    assert (before, during) == ([], [])
    rig.loop.settle()
    assert b"".join(before[0].records) == b"ab"
    assert during[0].records == [b"b"]


def test_while_a_sync_runs_a_write_waits_for_it_and_is_written_then(rig: Rig) -> None:
    producer = Producer(rig)
    producer.begin()
    plain = rig.append(b"plain", 1)
    rig.loop.turn()
    written = producer.write(b"b")
    rig.loop.turn()
    assert (plain, written) == ([Appended(base_offset=Offset(0))], [])
    rig.loop.turn()
    assert written == [Appended(base_offset=Offset(1))]
    assert rig.storage.unsynced == 1


def test_the_end_makes_all_of_it_durable_at_once(rig: Rig) -> None:
    producer = Producer(rig)
    producer.begin(b"a")
    for payload in (b"b", b"c"):
        producer.write(payload)
        rig.loop.turn()
    assert rig.storage.unsynced == 2
    groups_before = len(rig.storage.groups)
    assert isinstance(producer.end(), TransactionEndedReply)
    assert (rig.storage.unsynced, len(rig.storage.groups)) == (0, groups_before + 1)
    rig.stop_machine()
    assert rig.records().startswith(b"abc<commit")


def test_what_rests_on_a_write_ahead_waits_for_its_sync(rig: Rig) -> None:
    producer = Producer(rig)
    producer.begin()
    producer.write(b"b")
    rig.loop.settle()
    repeat = producer.write(b"b", sequence=1)
    view: list[int] = []
    rig.engine.read(lambda state, now_ms: state.partitions[PartitionId(0)].next_offset, view.append)
    assert (repeat, view) == ([], [])
    rig.loop.settle()
    assert repeat == [Appended(base_offset=Offset(1), repeated=True, max_timestamp_ms=0)]
    assert view == [2]
    assert rig.storage.unsynced == 0


def test_a_view_of_what_has_not_even_been_written_waits_for_its_sync(rig: Rig) -> None:
    producer = Producer(rig)
    producer.begin()
    answers = producer.write(b"b")
    view: list[int] = []
    rig.engine.read(lambda state, now_ms: state.partitions[PartitionId(0)].next_offset, view.append)
    rig.loop.turn()
    assert (answers, view) == ([], [])
    rig.loop.turn()
    assert (answers, view) == ([Appended(base_offset=Offset(1))], [2])


@pytest.mark.parametrize("during_a_sync", [False, True])
@pytest.mark.parametrize("beside", ["a repeat", "a refusal"])
def test_an_answer_to_several_writes_waits_for_what_any_of_them_waits_for(
    rig: Rig, beside: str, during_a_sync: bool
) -> None:
    producer = Producer(rig)
    producer.begin(b"a")
    if during_a_sync:
        rig.append(b"plain", 1)
        rig.loop.turn()
    new = batch(b"b", 0, producer.pair, 1, transactional_id="x")
    other = batch(b"a", 0, producer.pair, 0 if beside == "a repeat" else 5, transactional_id="x")
    answers = rig.submit(new, other, payloads=[b"b", b"a"])
    assert answers == []
    rig.loop.settle()
    repeat = Appended(base_offset=Offset(0), repeated=True, max_timestamp_ms=0)
    assert answers == [
        Appended(base_offset=Offset(1)),
        repeat if beside == "a repeat" else Rejection.OUT_OF_ORDER_SEQUENCE,
    ]
    rig.stop_machine()
    rig.loop.settle()
    assert rig.records(read_committed=False).startswith(b"ab<abort"), "the answer came with the sync"


@pytest.mark.parametrize("ends", ["itself", "by a time-out"])
def test_the_next_transactions_first_write_waits_again_if_it_comes_later(rig: Rig, ends: str) -> None:
    producer = Producer(rig)
    producer.begin()
    producer.write(b"b")
    if ends == "itself":
        producer.end()
    else:
        rig.loop.pass_time(60_000)
        producer.init()
    producer.idle()
    producer.add(0, 1)
    answers = producer.write(b"c")
    rig.loop.turn()
    assert answers == []
    rig.loop.turn()
    assert isinstance(answers[0], Appended)


@pytest.mark.parametrize("version", TransactionVersion)
@pytest.mark.parametrize("after", ["it was bound", "its last transaction ended"])
def test_who_begins_soon_enough_waits_for_no_sync_and_is_fenced_if_all_of_it_is_lost(
    rig: Rig, after: str, version: TransactionVersion
) -> None:
    producer = Producer(rig)
    if after != "it was bound":
        producer.begin()
        producer.end(version=version)
    rig.loop.pass_time(UNSEEN_MS)
    if version is TransactionVersion.V1:
        producer.add(0, 1)
    first = producer.write(b"lost", version=version)
    rig.loop.turn()
    second = producer.write(b"lost", 1, version=version)
    rig.loop.turn()
    assert [type(each) for each in first + second] == [Appended] * 2
    assert (rig.storage.unsynced, rig.storage.in_flight) == (2, None)
    rig.stop_machine()
    lost = producer.write(b"c", version=version)
    rig.loop.settle()
    assert lost == [Rejection.INVALID_PRODUCER_EPOCH], "or a part of the transaction would be committed"
    assert producer.end() is Rejection.PRODUCER_FENCED
    assert b"lost" not in rig.records(read_committed=False)


def test_in_version_2_the_first_write_begins_and_waits(rig: Rig) -> None:
    producer = Producer(rig)
    producer.idle()
    first = producer.write(b"a", version=TransactionVersion.V2)
    rig.loop.turn()
    assert first == []
    rig.loop.turn()
    second = producer.write(b"b", 1, version=TransactionVersion.V2)
    rig.loop.turn()
    assert (first, second) == ([Appended(base_offset=Offset(0))], [Appended(base_offset=Offset(0))])
    assert rig.storage.unsynced == 1
    rig.stop_machine()
    assert producer.end() is Rejection.PRODUCER_FENCED


def test_offsets_of_a_transaction_are_answered_like_its_writes(rig: Rig) -> None:
    producer = Producer(rig)
    producer.begin()
    rig.submit(AddGroup(**producer.who(), group_id="g"))
    offset = OffsetToCommit(topic="t", partition=0, offset=7, leader_epoch=-1, metadata="")
    commit = CommitTransactionalOffsets(**producer.who(), group_id="g", offsets=(offset,), generation=-1, member_id="")
    answers = rig.submit(commit)
    rig.loop.turn()
    assert answers == [DONE]
    assert rig.storage.unsynced == 1
    producer.end()
    rig.stop_machine()
    assert rig.engine._state.groups["g"].offsets["t"][0].offset == 7


@pytest.mark.parametrize("two_phase", [False, True])
def test_who_wants_it_or_takes_part_in_two_phase_commits_waits_for_every_sync(two_phase: bool) -> None:
    rig = Rig(unsynced_writes=two_phase)
    rig.topic()
    producer = Producer(rig, two_phase=two_phase)
    producer.begin(b"a")
    answers = producer.write(b"b")
    rig.loop.turn()
    assert answers == []
    rig.loop.turn()
    assert answers == [Appended(base_offset=Offset(1))]
    rig.stop_machine()
    rig.loop.settle()
    assert isinstance(producer.end(), TransactionEndedReply), "or what was prepared would be lost"
    assert rig.records().startswith(b"ab<commit")


def test_closing_makes_durable_what_was_about_to_be_written(rig: Rig) -> None:
    producer = Producer(rig)
    producer.begin(b"a")
    answers = producer.write(b"b")
    rig.close()
    assert answers == [Appended(base_offset=Offset(1))]
    assert rig.storage.unsynced == 0


def test_a_reader_of_uncommitted_records_is_answered_by_an_engine_that_closes(rig: Rig) -> None:
    producer = Producer(rig)
    producer.begin(b"a")
    producer.write(b"b")
    rig.loop.settle()
    closed: list[bool] = []
    rig.engine.close(lambda: closed.append(True))
    results = rig.fetch(2, read_committed=False, max_wait_ms=10_000)
    rig.loop.settle()
    assert closed
    assert results[0].records == []


def test_a_write_that_fails_is_not_answered_and_ends_the_engine(rig: Rig) -> None:
    producer = Producer(rig)
    producer.begin()
    rig.storage.append_fault = "the disk is gone"
    answers = producer.write(b"b")
    rig.loop.settle()
    assert answers == []
    assert "the disk is gone" in str(rig.failures[0])
