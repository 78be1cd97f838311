"""Group commit, the release of answers, visibility, fetch waits, deadlines, recovery, fail-stop."""

import pytest

from exacta.core.commands import (
    AddPartitions,
    CreateTopic,
    DeleteTopic,
    EndTransaction,
    InitProducerId,
)
from exacta.core.ids import Offset, PartitionId, ProducerEpoch, ProducerId
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, Appended, ProducerBoundReply, TransactionEndedReply
from exacta.core.snapshot import snapshot
from exacta.core.transactions.loss import UNSEEN_MS
from exacta.core.values.transactions import Phase
from exacta.engine.deadlines import MOST_CANCELLED
from exacta.engine.snapshot_schedule import FOLD_EVERY_MS
from exacta.ports.log import Answer, FetchPartition, FetchRequest, FetchResult, Visible
from simulation.disk.simulated import SimulatedDisk
from tests.engine.disk_rig import DiskRig
from tests.engine.rig import EXPIRIES, Rig, batch


def init(transactional_id: str = "x", timeout_ms: int = 1000) -> InitProducerId:
    return InitProducerId(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms)


def bound(rig: Rig, transactional_id: str = "x") -> tuple[int, int]:
    """Bind a producer, so long ago that its begin must be durable before a write is answered (decision 0022)."""
    reply = rig.ask(init(transactional_id))
    assert isinstance(reply, ProducerBoundReply)
    rig.loop.pass_time(UNSEEN_MS + 1)
    rig.ask(init("another"))
    return reply.producer_id, reply.producer_epoch


def add(producer: tuple[int, int], *partitions: int) -> AddPartitions:
    return AddPartitions(
        transactional_id="x",
        producer_id=ProducerId(producer[0]),
        producer_epoch=ProducerEpoch(producer[1]),
        partitions=tuple(("t", partition) for partition in partitions or (0,)),
    )


def end(producer: tuple[int, int], *, commit: bool) -> EndTransaction:
    return EndTransaction(
        transactional_id="x",
        producer_id=ProducerId(producer[0]),
        producer_epoch=ProducerEpoch(producer[1]),
        commit=commit,
    )


@pytest.mark.exclusive
def test_an_answer_waits_for_its_group_and_no_reader_sees_it_before(rig: Rig) -> None:
    answers = rig.append(b"one")
    rig.loop.turn()  # the group goes to the journal
    assert answers == []
    assert rig.records(read_committed=False) == b""
    assert rig.engine.visible("t", 0) == Visible(Offset(0), Offset(0), Offset(0))
    rig.loop.turn()  # durable
    assert answers == [Appended(base_offset=Offset(0))]
    assert rig.records() == b"one"
    assert rig.engine.visible("t", 0) == Visible(Offset(0), Offset(1), Offset(1))


def test_an_engine_that_was_abandoned_leaves_its_journal_alone() -> None:
    """Its flush may be due already, when the journal is closed."""
    rig = DiskRig(SimulatedDisk())
    rig.topic()
    answers = rig.append(b"one")
    rig.engine.abandon()
    rig.journal.close()
    rig.loop.turn()
    assert (answers, rig.failures) == ([], [])


def test_what_arrives_together_or_during_a_sync_is_written_together(rig: Rig) -> None:
    groups_before = len(rig.storage.groups)
    first, second = rig.append(b"a"), rig.append(b"b")
    rig.loop.turn()
    third, fourth = rig.append(b"c"), rig.append(b"d", partition=1)
    rig.loop.settle()
    assert [first, second, third, fourth] == [[Appended(base_offset=Offset(offset))] for offset in (0, 1, 2, 0)]
    assert len(rig.storage.groups) == groups_before + 2
    assert rig.records() == b"abc"


@pytest.mark.exclusive
def test_a_repeat_of_what_is_not_durable_yet_waits_with_it(rig: Rig) -> None:
    producer = bound(rig)
    rig.submit(add(producer))
    write = batch(b"one", producer=producer, sequence=0, transactional_id="x")
    rig.submit(write, payloads=[b"one"])
    rig.loop.turn()
    repeat = rig.submit(write, payloads=[b"one"])
    assert repeat == [], "a crash now would make this answer a lie"
    rig.loop.turn()
    assert repeat == [Appended(base_offset=Offset(0), repeated=True, max_timestamp_ms=0)]


def test_a_rejection_and_a_view_wait_too(rig: Rig) -> None:
    rig.append(b"one")
    rejection = rig.append(b"two", partition=9)
    seen: list[int] = []
    rig.engine.read(lambda state, now_ms: state.partitions[PartitionId(0)].next_offset, seen.append)
    assert (rejection, seen) == ([], [])
    rig.loop.settle()
    assert (rejection, seen) == ([Rejection.UNKNOWN_TOPIC_OR_PARTITION], [1])


def begin(rig: Rig, producer: tuple[int, int]) -> None:
    """Have a begin acknowledged: it is written by then, and not synced."""
    answers = rig.submit(add(producer))
    rig.loop.turn()
    assert answers == [DONE]
    assert rig.storage.unsynced == 1


@pytest.mark.exclusive
def test_a_begin_is_answered_when_it_is_written_and_synced_with_what_follows(rig: Rig) -> None:
    producer = bound(rig)
    groups_before = len(rig.storage.groups)
    begin(rig, producer)
    rig.submit(batch(b"one", producer=producer, sequence=0, transactional_id="x"), payloads=[b"one"])
    rig.loop.settle()
    assert len(rig.storage.groups) == groups_before + 2
    assert rig.storage.unsynced == 0
    rig.crash()
    (transaction,) = rig.engine._state.transactions.values()
    assert (transaction.owner, len(transaction.partitions)) == ("x", 1)


def test_a_repeated_begin_waits_for_the_first(rig: Rig) -> None:
    producer = bound(rig)
    first, repeat = rig.submit(add(producer)), rig.submit(add(producer))
    assert (first, repeat) == ([], [])
    rig.loop.settle()
    assert (first, repeat) == ([DONE], [DONE])


def committed(rig: Rig) -> tuple[int, int]:
    producer = bound(rig)
    begin(rig, producer)
    rig.submit(batch(b"one", producer=producer, sequence=0, transactional_id="x"), payloads=[b"one"])
    assert isinstance(rig.ask(end(producer, commit=True)), TransactionEndedReply)
    return producer


@pytest.mark.exclusive
def test_a_process_that_dies_forgets_no_begin(rig: Rig) -> None:
    producer = committed(rig)
    begin(rig, producer)
    rig.crash()
    assert isinstance(rig.ask(end(producer, commit=False)), TransactionEndedReply), (
        "it has nothing to do with the commit"
    )


@pytest.mark.exclusive
def test_who_has_not_heard_of_its_commit_is_not_told_that_it_aborted(rig: Rig) -> None:
    producer = committed(rig)
    rig.crash()
    assert rig.ask(end(producer, commit=False)) is Rejection.INVALID_TRANSACTION_STATE
    assert isinstance(rig.ask(end(producer, commit=True)), TransactionEndedReply)


@pytest.mark.exclusive
def test_a_forgotten_begin_is_made_up_for(rig: Rig) -> None:
    producer = bound(rig)
    begin(rig, producer)
    rig.stop_machine()
    write = batch(b"one", producer=producer, sequence=0, transactional_id="x")
    assert rig.ask(write, payloads=[b"one"]) == Appended(base_offset=Offset(0))
    assert isinstance(rig.ask(end(producer, commit=True)), TransactionEndedReply)
    assert rig.records().startswith(b"one")


@pytest.mark.exclusive
def test_a_forgotten_begin_can_be_aborted(rig: Rig) -> None:
    producer = bound(rig)
    begin(rig, producer)
    rig.stop_machine()
    assert isinstance(rig.ask(end(producer, commit=False)), TransactionEndedReply)


def test_all_partitions_of_a_transaction_become_visible_in_one_step(rig: Rig) -> None:
    producer = bound(rig)
    rig.submit(add(producer, 0, 1))
    for partition in (0, 1):
        rig.submit(
            batch(b"x", partition, producer, 0, transactional_id="x"),
            payloads=[b"x"],
        )
    rig.loop.settle()
    assert [rig.records(partition=partition) for partition in (0, 1)] == [b"", b""]
    assert [rig.records(partition=partition, read_committed=False) for partition in (0, 1)] == [b"x", b"x"]
    rig.submit(end(producer, commit=True))
    rig.loop.turn()
    assert [rig.records(partition=partition) for partition in (0, 1)] == [b"", b""]
    rig.loop.turn()
    marker = f"<commit {producer[0]} at 1>".encode()
    assert [rig.records(partition=partition) for partition in (0, 1)] == [b"x" + marker, b"x" + marker]


@pytest.mark.exclusive
def test_one_answer_is_of_one_state_and_two_may_be_of_two(rig: Rig) -> None:
    producer = bound(rig)
    rig.submit(add(producer, 0, 1))
    for partition in (0, 1):
        rig.submit(batch(b"x", partition, producer, 0, transactional_id="x"), payloads=[b"x"])
    rig.loop.settle()
    before = rig.records(partition=0)
    rig.submit(end(producer, commit=True))
    rig.loop.settle()
    assert (before, rig.records(partition=1)[:1]) == (b"", b"x"), "two requests: a part of it"

    both: list[FetchResult] = []
    wanted = [FetchPartition("t", partition, 0, 1 << 20) for partition in (0, 1)]
    rig.engine.fetch(FetchRequest(wanted, 0, 1, 1, read_committed=True), both.extend)
    assert [result.visible for result in both] == [Visible(Offset(0), Offset(2), Offset(2))] * 2
    assert [bool(result.records) for result in both] == [True, False], "a full answer leaves the rest to the next one"


def test_an_aborted_list_comes_with_the_records(rig: Rig) -> None:
    producer = bound(rig)
    rig.submit(add(producer))
    rig.submit(batch(b"x", 0, producer, 0, transactional_id="x"), payloads=[b"x"])
    rig.submit(end(producer, commit=False))
    rig.loop.settle()
    (result,) = rig.fetch()
    assert [(entry.producer_id, entry.first_offset) for entry in result.aborted] == [(producer[0], 0)]
    (result,) = rig.fetch(read_committed=False)
    assert result.aborted == ()


# --- fetch ------------------------------------------------------------------------------------------------------------


def test_a_committed_reader_is_not_woken_by_an_open_transaction(rig: Rig) -> None:
    producer = bound(rig)
    waiting = rig.fetch(max_wait_ms=10_000)
    rig.submit(add(producer))
    rig.submit(batch(b"x", 0, producer, 0, transactional_id="x"), payloads=[b"x"])
    rig.loop.settle()
    assert waiting == []
    rig.submit(end(producer, commit=True))
    rig.loop.settle()
    assert len(waiting) == 1


def test_a_transaction_is_aborted_at_its_time_also_after_a_crash(rig: Rig) -> None:
    for crash in (False, True):
        producer = bound(rig)
        rig.submit(add(producer))
        rig.submit(batch(b"x", 0, producer, 0, transactional_id="x"), payloads=[b"x"])
        rig.loop.settle()
        rig.loop.pass_time(400)
        if crash:
            rig.crash()
        rig.loop.pass_time(599)
        assert rig.engine._state.transactional_ids["x"].phase is Phase.ONGOING
        rig.loop.pass_time(1)
        seen = rig.engine.visible("t", 0)
        assert seen is not None
        assert seen.last_stable_offset == seen.high_watermark
        assert rig.ask(end(producer, commit=True)) is Rejection.PRODUCER_FENCED


# --- crash and failure ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep_in_flight", [False, True])
def test_recovery_brings_back_what_was_acknowledged(rig: Rig, keep_in_flight: bool) -> None:
    producer = bound(rig)
    rig.submit(add(producer))
    write = batch(b"one", producer=producer, sequence=0, transactional_id="x")
    rig.ask(write, payloads=[b"one"])
    unanswered = rig.submit(end(producer, commit=True))
    rig.loop.turn()
    rig.crash(keep_in_flight=keep_in_flight)
    assert unanswered == []
    assert rig.records(read_committed=False).startswith(b"one")
    assert rig.records().startswith(b"one") is keep_in_flight
    assert rig.ask(write, payloads=[b"one"]) == Appended(base_offset=Offset(0), repeated=True, max_timestamp_ms=0)
    assert isinstance(rig.ask(end(producer, commit=True)), TransactionEndedReply), "the retried end gets its answer"
    assert rig.records().startswith(b"one")


def test_a_snapshot_and_the_tail_equal_the_whole_journal(rig: Rig) -> None:
    rig = Rig(segment_bytes=300)
    rig.topic()
    producer = bound(rig)
    for sequence in range(30):
        rig.submit(add(producer))
        rig.submit(batch(b"x", 0, producer, sequence, transactional_id="x"), payloads=[b"x"])
        rig.submit(end(producer, commit=sequence % 3 > 0))
        rig.loop.pass_time(FOLD_EVERY_MS // 4)
    assert len(rig.storage.snapshots) > 4, "segments were rolled, and so snapshots saved"
    rig.crash()
    with_snapshot = snapshot(rig.engine._state)
    rig.storage.snapshots.clear()
    rig.crash()
    assert snapshot(rig.engine._state) == with_snapshot


def test_a_failed_append_answers_nobody_and_stops(rig: Rig) -> None:
    rig.storage.append_fault = "EIO"
    failed = rig.append(b"one")
    rig.loop.turn()
    gathered = rig.append(b"two")
    rig.loop.settle()
    assert (failed, gathered) == ([], [])
    assert len(rig.failures) == 1
    assert rig.append(b"three") == []
    rig.loop.settle()
    assert len(rig.failures) == 1


def test_whoever_believes_in_an_outdated_tail_is_fenced(rig: Rig) -> None:
    old = rig.engine
    rig.start()  # a second engine over the same storage
    rig.append(b"new")
    rig.loop.settle()
    answers: list[object] = []
    old.submit([batch(b"old")], answers.extend, [b"old"])
    rig.loop.settle()
    assert answers == []
    assert old.failed is not None
    assert rig.records() == b"new"


def test_a_clean_stop_writes_what_has_gathered_and_answers_who_waits(rig: Rig) -> None:
    producer = bound(rig)
    rig.submit(add(producer))
    waiting = rig.fetch(max_wait_ms=10_000)
    rig.close()
    assert len(waiting) == 1
    rig.crash()
    assert rig.engine._state.transactional_ids["x"].phase is Phase.ONGOING


def test_a_defect_in_one_front_does_not_keep_the_others_waiting(rig: Rig) -> None:
    def broken(answers: list[Answer]) -> None:
        raise RuntimeError("a bug")

    rig.engine.submit([batch(b"a")], broken, [b"a"])
    answers = rig.append(b"b")
    rig.loop.turn()
    with pytest.raises(RuntimeError, match="a bug"):
        rig.loop.turn()
    assert answers == [Appended(base_offset=Offset(1))]


@pytest.mark.exclusive
def test_create_is_answered_when_it_is_durable(rig: Rig) -> None:
    answers = rig.submit(CreateTopic(topic="u", topic_id=b"1" * 16, partition_count=1))
    assert answers == []
    assert rig.engine.visible("u", 0) is None
    rig.loop.settle()
    assert rig.engine.visible("u", 0) == Visible(Offset(0), Offset(0), Offset(0))


def test_a_transaction_each_millisecond_leaves_few_timers(rig: Rig) -> None:
    producer = bound(rig)
    for sequence in range(1_000):
        rig.submit(add(producer))
        rig.submit(batch(b"x", 0, producer, sequence, transactional_id="x"), payloads=[b"x"])
        rig.submit(end(producer, commit=True))
        rig.loop.pass_time(1)
    assert len(rig.engine._timers) == EXPIRIES
    assert len(rig.engine.deadlines._heap) <= 2 * MOST_CANCELLED


def test_a_defect_while_a_command_is_taken_stops_the_engine(rig: Rig) -> None:
    with pytest.raises(AssertionError):
        rig.engine.submit([batch(b"a")], lambda answers: None)  # no payload: the event is applied and cannot be written
    assert len(rig.failures) == 1
    assert rig.append(b"b") == []
    rig.loop.settle()


@pytest.mark.exclusive
def test_a_topic_id_deletes_no_other_topic_of_that_name(rig: Rig) -> None:
    old_id = rig.engine._state.topics["t"].topic_id
    by_name, again, by_id = (
        DeleteTopic(topic="t"),
        CreateTopic(topic="t", topic_id=b"2" * 16, partition_count=1),
        DeleteTopic(topic_id=old_id),
    )
    answers = rig.submit(by_name, again, by_id)
    rig.loop.settle()
    assert answers[2] is Rejection.UNKNOWN_TOPIC_ID
    assert rig.engine.visible("t", 0) == Visible(Offset(0), Offset(0), Offset(0))
