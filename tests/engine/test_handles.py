"""Handles over a disk: what is answered when, and what a stop of the machine makes of them (decision 0027)."""

import random

import pytest

from exacta.core.commands import BeginTransaction, EndHandle, JoinTransaction
from exacta.core.ids import Offset, ProducerId, TransactionId, TransactionVersion
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, Appended, TransactionBegunReply, TransactionJoinedReply
from exacta.core.state.transaction import handle_name
from exacta.core.transactions.numbering import IDS_AT_ONCE
from exacta.engine.answers_ahead import Foundation
from tests.engine.producer import Producer
from tests.engine.rig import Rig, batch


@pytest.fixture
def rig() -> Rig:
    rig = Rig()
    rig.topic()
    return rig


def begin(rig: Rig) -> TransactionBegunReply:
    reply = rig.ask(BeginTransaction(timeout_ms=60_000))
    assert isinstance(reply, TransactionBegunReply)
    return reply


def write(rig: Rig, handle: TransactionId, payload: bytes = b"x", partition: int = 0) -> list[object]:
    producer_id = rig.engine.advice.handle_producer_id(handle)
    command = batch(payload, partition, transaction=handle, handle_producer_id=producer_id)
    return rig.submit(command, payloads=[payload])


def end(rig: Rig, handle: TransactionId, *, commit: bool = True) -> object:
    return rig.ask(EndHandle(transaction_id=handle, commit=commit))


def test_the_first_begin_waits_for_the_sync_of_the_reservation_and_the_next_for_none(rig: Rig) -> None:
    first = rig.submit(BeginTransaction(timeout_ms=60_000))
    second = rig.submit(BeginTransaction(timeout_ms=60_000))
    assert (first, second) == ([], [])
    rig.loop.settle()
    assert rig.storage.unsynced == 0
    assert {type(each) for each in first + second} == {TransactionBegunReply}
    begin(rig)
    assert rig.storage.unsynced == 1


def test_a_begin_behind_a_reservation_that_is_only_written_waits(rig: Rig) -> None:
    """It came with a registration, which a stop of the machine may forget: the id must not be anybody's before."""
    producer = Producer(rig)
    while rig.engine._state.volatile.next_transaction_id < IDS_AT_ONCE:
        end(rig, begin(rig).transaction_id)
    added = producer.add()
    rig.loop.turn()
    assert (added, rig.storage.unsynced) == ([DONE], 1)
    assert begin(rig).transaction_id == IDS_AT_ONCE + 1
    assert rig.storage.unsynced == 0
    begin(rig)
    assert rig.storage.unsynced == 1


def test_writes_are_answered_when_written_and_the_end_when_all_is_durable(rig: Rig) -> None:
    begun = begin(rig)
    handle, unsynced = begun.transaction_id, rig.storage.unsynced
    answers = write(rig, handle)
    rig.loop.settle()
    assert answers == [Appended(base_offset=Offset(0))]
    assert rig.storage.unsynced == unsynced + 1
    assert end(rig, handle) == DONE
    assert rig.storage.unsynced == 0
    assert rig.records() == f"x<commit {begun.producer_id} at 1>".encode()


def test_a_handle_that_lost_a_write_is_aborted_and_one_that_lost_its_begin_is_not_found(rig: Rig) -> None:
    found = begin(rig).transaction_id  # durable, with the reservation
    forgotten = begin(rig).transaction_id
    for handle in (found, forgotten):
        write(rig, handle)
        rig.loop.settle()
    rig.stop_machine()
    rig.loop.settle()
    assert end(rig, found) is Rejection.TRANSACTION_ENDED
    assert end(rig, forgotten) is Rejection.TRANSACTION_NOT_FOUND
    assert not rig.failures
    assert begin(rig).transaction_id == IDS_AT_ONCE, "a restart goes on behind all that was reserved"


def test_a_start_after_a_loss_says_only_what_it_does(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    begin(rig)
    rig.stop_machine()
    assert [record.getMessage() for record in caplog.records] == [
        "the machine stopped, and may have lost writes: 1 open transactions without a transactional id are aborted"
    ]


def test_a_killed_process_loses_no_handle(rig: Rig) -> None:
    begin(rig)
    handle = begin(rig).transaction_id
    write(rig, handle)
    rig.loop.settle()
    rig.crash()
    assert end(rig, handle) == DONE
    assert b"x<commit" in rig.records()


def test_a_handle_is_aborted_at_its_time_also_after_a_crash(rig: Rig) -> None:
    for crash in (False, True):
        handle = begin(rig).transaction_id
        write(rig, handle)
        rig.loop.settle()
        rig.loop.pass_time(30_000)
        if crash:
            rig.crash()
        rig.loop.pass_time(30_000)
        assert end(rig, handle) is Rejection.TRANSACTION_ENDED
    assert not rig.engine._state.transactions


def test_no_commit_is_granted_to_a_handle_that_lost_a_write_and_no_id_is_given_twice() -> None:
    refused = sum(_lives(seed) for seed in range(40))
    assert refused > 40, "or too seldom a machine stopped while a handle was open"


def _lives(seed: int) -> int:
    """Play random lives of a broker; return how many commits were refused."""
    chance = random.Random(seed)
    rig = Rig()
    rig.topic()
    given: set[tuple[TransactionId, ProducerId]] = set()
    acknowledged: dict[TransactionId, list[tuple[int, bytes]]] = {}
    committed: list[tuple[int, bytes]] = []
    refused = 0
    for number in range(150):
        dice = chance.random()
        if dice < 0.06:
            rig.stop_machine(chance.randint(0, rig.storage.unsynced))
        elif dice < 0.12:
            rig.crash(keep_in_flight=chance.random() < 0.5)
        elif dice < 0.3 or not acknowledged:
            answers = rig.submit(BeginTransaction(timeout_ms=60_000))
            for _ in range(chance.randint(1, 3)):
                rig.loop.turn()
            for begun in answers:
                assert isinstance(begun, TransactionBegunReply)
                for each, producer_id in given:
                    assert begun.transaction_id != each
                    assert begun.producer_id != producer_id
                given.add((begun.transaction_id, begun.producer_id))
                acknowledged[begun.transaction_id] = []
        elif dice < 0.5:
            handle = chance.choice(list(acknowledged))
            reply = end(rig, handle)
            mine = acknowledged.pop(handle)
            if reply == DONE:
                committed += mine
            else:
                refused += 1
        else:
            handle, partition = chance.choice(list(acknowledged)), chance.randrange(2)
            payload = f"{handle_name(handle)}.{number};".encode()
            answers = write(rig, handle, payload, partition)
            for _ in range(chance.randint(1, 3)):
                rig.loop.turn()
            if answers and isinstance(answers[0], Appended):
                acknowledged[handle].append((partition, payload))
    rig.loop.settle()
    for handle in acknowledged:
        end(rig, handle, commit=False)
    for partition in range(2):
        log = rig.records(partition=partition)
        for where, payload in committed:
            assert where != partition or log.count(payload) == 1, (seed, payload)
    return refused


def test_what_is_written_into_a_joined_handle_rests_on_the_join(rig: Rig) -> None:
    """Recovery aborts a handle that nobody has joined, and would not know whom to fence (decision 0038)."""
    producer, handle = Producer(rig), begin(rig).transaction_id
    ahead = rig.engine._writer.ahead
    assert ahead.foundation(handle) is Foundation.NOT_NEEDED
    answers = rig.submit(JoinTransaction(**producer.who(), transaction=handle))
    assert (answers, ahead.foundation(handle)) == ([], Foundation.UNSYNCED)
    rig.loop.settle()
    assert (answers, rig.storage.unsynced) == ([TransactionJoinedReply(transaction_id=handle)], 0)
    assert ahead.foundation(handle) is Foundation.DURABLE
    unsynced, written = rig.storage.unsynced, producer.write(b"by Kafka", version=TransactionVersion.V2)
    rig.loop.settle()
    assert (written, rig.storage.unsynced) == ([Appended(base_offset=Offset(0))], unsynced + 1)


def test_a_joint_transaction_that_lost_a_write_is_aborted_and_its_producer_fenced(rig: Rig) -> None:
    producer, handle = Producer(rig), begin(rig).transaction_id
    rig.ask(JoinTransaction(**producer.who(), transaction=handle))
    producer.write(b"by Kafka", version=TransactionVersion.V2)
    write(rig, handle)
    rig.loop.settle()
    rig.stop_machine()
    rig.loop.settle()
    assert end(rig, handle) is Rejection.TRANSACTION_ENDED
    assert producer.end(commit=True) is Rejection.PRODUCER_FENCED
