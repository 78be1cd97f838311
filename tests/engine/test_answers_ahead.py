"""The table of answers ahead of the sync, cell by cell: for what the engine makes each answer wait.

The code runs its table (`WAITS_FOR`), so that the expectation stands here once more, by hand. What operators and
clients are told is the table of decision D4, which is read from the page.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from exacta.core.commands import (
    AbortByMarker,
    Acknowledge,
    AcknowledgeSoon,
    AddGroup,
    AddPartitions,
    AppendBatch,
    BeginTransaction,
    Command,
    CommitOffsets,
    CommitTransactionalOffsets,
    Connect,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    Deliver,
    EndHandle,
    EndTransaction,
    EndTransactions,
    Heartbeat,
    InitProducerId,
    JoinGroup,
    LeaveGroup,
    Permit,
    Redeliver,
    SetBrokerConfigs,
    SetTopicConfigs,
    Subscribe,
    SyncGroup,
)
from exacta.core.commands.subscriptions import EARLIEST
from exacta.core.ids import ConsumerId, Offset, TransactionId
from exacta.core.promises import Promise
from exacta.core.replies import DONE
from exacta.core.values.subscriptions import SubscriptionType
from exacta.engine.answers_ahead import WAITS_FOR, Foundation
from exacta.engine.commit_group import Wait
from tests.docstring_tables import table_in
from tests.engine.producer import Producer
from tests.engine.rig import Rig, batch

pytestmark = pytest.mark.exclusive

#             STATE   WRITE    REGISTRATION  END     NOTHING   NEW_ID   SOON    INSIDE
EXPECTED = """
NONE          SYNC    SYNC     WRITE         SYNC    NOTHING   SYNC     WRITE   NOTHING
DURABLE       SYNC    WRITE    WRITE         SYNC    NOTHING   WRITE    WRITE   NOTHING
UNSYNCED      SYNC    SYNC     WRITE         SYNC    NOTHING   SYNC     WRITE   NOTHING
NOT_NEEDED    SYNC    WRITE    WRITE         SYNC    NOTHING   WRITE    WRITE   NOTHING
SHARED        SYNC    SYNC     SYNC          SYNC    SYNC      SYNC     SYNC    NOTHING
"""
CELLS = [
    (Foundation[row.split()[0]], promise, Wait[name])
    for row in EXPECTED.strip().splitlines()
    for promise, name in zip(Promise, row.split()[1:], strict=True)
]
OF_BEGINS = [cell for cell in CELLS if cell[1] is not Promise.NEW_ID and cell[0] is not Foundation.SHARED]
"""Those whose foundation is a begin; a new id's is its reservation (`test_handles.py`)."""
OF_SHARED = [cell[1:] for cell in CELLS if cell[1] is not Promise.NEW_ID and cell[0] is Foundation.SHARED]


def no_transaction(producer: Producer) -> None:
    producer.idle()


def begun_durably(producer: Producer) -> None:
    producer.idle()
    producer.begin(b"earlier")


def begun_just_now(producer: Producer) -> None:
    producer.idle()
    producer.add(0)


def begun_soon_after_its_last_end(producer: Producer) -> None:
    producer.begin(b"earlier")
    producer.end()
    producer.add(0)


BEGUN: dict[Foundation, Callable[[Producer], None]] = {
    Foundation.NONE: no_transaction,
    Foundation.DURABLE: begun_durably,
    Foundation.UNSYNCED: begun_just_now,
    Foundation.NOT_NEEDED: begun_soon_after_its_last_end,
}


def command(producer: Producer, promise: Promise, *, inside: bool) -> Command:
    sequence = producer.sequences.get(0, 0)
    return {
        Promise.STATE: CreateTopic(topic="new", topic_id=b"1" * 16, partition_count=1),
        Promise.WRITE: batch(b"now", 0, producer.pair, sequence, transactional_id="x") if inside else batch(b"now"),
        Promise.REGISTRATION: AddPartitions(**producer.who(), partitions=(("t", 1), ("u", 0))),
        Promise.END: EndTransaction(**producer.who(), commit=inside),
        Promise.NOTHING: Heartbeat(group_id="g", member_id="m", generation=1),
        Promise.SOON: AcknowledgeSoon(topic="s", partition=0, subscription="s", before=Offset(1)),
        Promise.INSIDE: Deliver(topic="s", partition=0, subscription="s"),
    }[promise]


@pytest.mark.parametrize(("foundation", "promise", "expected"), OF_BEGINS, ids=lambda value: value.name)
def test_each_answer_waits_as_the_table_says(
    rig: Rig, foundation: Foundation, promise: Promise, expected: Wait
) -> None:
    rig.topic("u", 1)
    subscribe_to_one_message(rig)
    producer, other = Producer(rig), Producer(rig, "other")
    other.begin()
    rig.loop.pass_time(1)
    BEGUN[foundation](producer)
    # Something is written and not synced: whatever waits for a sync cannot be answered at once.
    other.write(b"pending")
    inside = foundation is not Foundation.NONE
    if inside:
        assert rig.engine._writer.ahead.foundation(open_of(rig)) is foundation
    asked = command(producer, promise, inside=inside)
    assert asked.promises is promise
    answered: list[Wait] = []

    def done(answers: object) -> None:
        answered.append(Wait.WRITE if rig.storage.unsynced else Wait.SYNC)

    rig.engine.submit((asked,), done, [b"now"])
    if expected is Wait.NOTHING:
        assert answered, "it is answered at once"
    else:
        assert not answered
        rig.settle()
        assert answered == [expected]


@pytest.mark.parametrize(("promise", "expected"), OF_SHARED, ids=lambda value: value.name)
def test_no_answer_comes_early_where_others_may_append(promise: Promise, expected: Wait) -> None:
    rig = Rig(is_exclusive=False)
    rig.topic()
    rig.topic("u", 1)
    subscribe_to_one_message(rig)
    producer = Producer(rig)
    begun_durably(producer)
    answered: list[Wait] = []
    rig.engine.submit((command(producer, promise, inside=True),), lambda answers: answered.append(Wait.SYNC), [b"now"])
    rig.loop.turn()  # the group goes to the journal
    assert answered == ([] if expected is Wait.SYNC else [Wait.SYNC])
    rig.settle()
    assert answered == [Wait.SYNC]


def subscribe_to_one_message(rig: Rig) -> None:
    rig.ask(CreateTopic(topic="s", topic_id=b"s" * 16, partition_count=1))
    rig.ask(batch(b"message", topic="s"), payloads=[b"message"])
    subscribe = Subscribe(
        topic="s", partition=0, subscription="s", subscription_type=SubscriptionType.SHARED, begin=EARLIEST
    )
    rig.ask(subscribe)


def open_of(rig: Rig, transactional_id: str = "x") -> TransactionId:
    found = rig.engine._state.transactional_ids[transactional_id].open
    assert found is not None
    return found


def test_the_table_has_a_row_for_each_foundation_and_a_column_for_each_promise() -> None:
    assert WAITS_FOR.keys() == set(Foundation)
    for row in WAITS_FOR.values():
        assert row.keys() == set(Promise)
    assert [(row, promise, WAITS_FOR[row][promise]) for row, promise, _ in CELLS] == CELLS


def test_a_begin_that_is_in_flight_is_durable_before_the_write_is_written(rig: Rig) -> None:
    producer = Producer(rig)
    producer.idle()
    producer.add(0)
    ahead, begun = rig.engine._writer.ahead, open_of(rig)
    assert ahead.foundation(begun) is Foundation.UNSYNCED
    rig.loop.turn()
    assert rig.storage.unsynced
    assert ahead.foundation(begun) is Foundation.UNSYNCED
    rig.loop.turn()
    assert rig.engine._writer.in_flight is not None
    assert ahead.foundation(begun) is Foundation.DURABLE


def test_an_acknowledgement_by_a_reader_keeps_nobody_waiting(rig: Rig) -> None:
    subscribe_to_one_message(rig)
    where = {"topic": "s", "partition": 0, "subscription": "reader"}
    kind = SubscriptionType.EXCLUSIVE
    rig.ask(Subscribe(**where, subscription_type=kind, begin=EARLIEST, durable=False))  # type: ignore[arg-type]
    rig.ask(Connect(**where, consumer_id=ConsumerId(1), subscription_type=kind, durable=False))  # type: ignore[arg-type]
    answered: list[object] = []
    acknowledge = AcknowledgeSoon(**where, before=Offset(1))  # type: ignore[arg-type]
    rig.engine.submit((acknowledge,), answered.extend)
    rig.settle()
    assert answered == [DONE]
    # Nothing was there to be written: whatever waited for that would hold up all that comes later.
    rig.engine.read(lambda state, now_ms: "seen", answered.append)
    rig.settle()
    rig.topic("later", 1)
    assert answered == [DONE, "seen"]


ARCHITECTURE = Path(__file__).parents[2] / "docs/explanation/architecture.md"
D4 = table_in(ARCHITECTURE.read_text().split('<a id="d4"></a>')[1].split('<a id="d5"></a>')[0], "request")
WAITS = "its answer waits for"
SYNC, PAGE_CACHE = "the sync", "the write into the page cache"
NONE, DURABLE, UNSYNCED, NOT_NEEDED, _ = Foundation
REQUESTS: dict[str, tuple[tuple[type[Command], ...], dict[Foundation, Wait]]] = {
    # the first words of a row: its commands, and what their answers wait for, by what they rest on
    "Produce, SEND": ((AppendBatch, CommitOffsets, Acknowledge), {NONE: Wait.SYNC}),
    "the same inside": (
        (AppendBatch, CommitTransactionalOffsets, Acknowledge),
        {DURABLE: Wait.WRITE, NOT_NEEDED: Wait.WRITE, UNSYNCED: Wait.SYNC},
    ),
    "InitProducerId": ((InitProducerId,), {NONE: Wait.SYNC}),
    "EndTxn": ((EndTransaction, EndHandle, EndTransactions, AbortByMarker), dict.fromkeys(Foundation, Wait.SYNC)),
    "begin of a handle": ((BeginTransaction,), {DURABLE: Wait.WRITE, UNSYNCED: Wait.SYNC}),
    "AddPartitionsToTxn": ((AddPartitions, AddGroup), dict.fromkeys((NONE, DURABLE, UNSYNCED, NOT_NEEDED), Wait.WRITE)),
    "ACK without": ((AcknowledgeSoon,), {NONE: Wait.WRITE}),
    "JoinGroup": ((JoinGroup, SyncGroup, LeaveGroup), {NONE: Wait.SYNC}),
    "Heartbeat": ((Heartbeat,), {NONE: Wait.NOTHING}),
    "FLOW": ((Permit, Redeliver, Deliver), dict.fromkeys(Foundation, Wait.NOTHING)),
    "topics": ((CreateTopic, CreatePartitions, SetTopicConfigs, SetBrokerConfigs, DeleteTopic), {NONE: Wait.SYNC}),
}
WORDS = {
    # what a row says: what its answers wait for, in the best case
    SYNC: Wait.SYNC,
    f"{SYNC} of all that it commits": Wait.SYNC,
    f"{SYNC}, where an event was written": Wait.SYNC,
    PAGE_CACHE: Wait.WRITE,
    f"{PAGE_CACHE}, once the reservation of the ids is durable": Wait.WRITE,
    "nothing": Wait.NOTHING,
    # There is no answer, and the command is written as soon as one that is answered then.
    "nothing; it is written at once, and synced with the next group": Wait.WRITE,
}


@pytest.mark.parametrize("row", D4.rows)
def test_the_table_of_decision_d4_is_the_table_of_the_code(row: str) -> None:
    [begins] = (begins for begins in REQUESTS if row.startswith(begins))
    commands, waits = REQUESTS[begins]
    for command in commands:
        assert {foundation: WAITS_FOR[foundation][command.promises] for foundation in waits} == waits
    assert WORDS[D4[row, WAITS]] is min(waits.values())


def test_the_table_of_decision_d4_speaks_of_all_requests() -> None:
    assert len(D4.rows) == len(REQUESTS)
    told = {command.promises for commands, _ in REQUESTS.values() for command in commands}
    assert told == set(Promise)
