"""The coordinator's table, swept over every phase and input; takeover, time-out, exhaustion, repeats."""

import pytest

from exacta.core.commands import ExpireTransaction, InitProducerId
from exacta.core.events import TransactionBegun, TransactionEnded
from exacta.core.ids import ProducerEpoch, TransactionId
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, Appended, ProducerBoundReply, TransactionEndedReply
from exacta.core.snapshot import after_recovery
from exacta.core.values.transactions import Phase
from tests.core.world import Producer, World
from tests.docstring_tables import docstring_table

INVALID = Rejection.INVALID_TRANSACTION_STATE


def in_phase(world: World, phase: Phase) -> Producer:
    producer = world.producer()
    if phase is not Phase.EMPTY:
        producer.add()
        producer.append()
    if phase is Phase.COMPLETE_COMMIT:
        producer.end(commit=True)
    if phase is Phase.COMPLETE_ABORT:
        producer.end(commit=False)
    assert phase_of(world) is phase
    return producer


def phase_of(world: World) -> Phase:
    return world.state.transactional_ids["x"].phase


def expire(producer: Producer) -> object:
    world = producer.world
    world.now_ms += 5000
    begun = [event.transaction_id for event in world.log if isinstance(event, TransactionBegun)]
    return world.send(ExpireTransaction(transaction_id=begun[-1] if begun else TransactionId(0)))


INPUTS = {
    "init": lambda producer: producer.world.send(InitProducerId(transactional_id="x", transaction_timeout_ms=1000)),
    "add": lambda producer: producer.add(1),
    "add_group": lambda producer: producer.add_group(),
    "append": lambda producer: producer.append(),
    "offsets": lambda producer: producer.commit_offsets(1),
    "commit": lambda producer: producer.end(commit=True),
    "abort": lambda producer: producer.end(commit=False),
    "expire": expire,
}
EMPTY, ONGOING, COMMITTED, ABORTED = Phase.EMPTY, Phase.ONGOING, Phase.COMPLETE_COMMIT, Phase.COMPLETE_ABORT
REFUSED = Rejection.TRANSACTION_NOT_BEGUN
MODULE = "exacta.core.transactions.transaction"
LIFE = docstring_table(MODULE, "phase \\ input")
ENDS = docstring_table(MODULE, "phase \\ version 1")
COLUMNS = {
    "add": (LIFE, "AddPartitions, AddGroup"),
    "add_group": (LIFE, "AddPartitions, AddGroup"),
    "expire": (LIFE, "time-out (`expiry.py`)"),
    "commit": (ENDS, "commit"),
    "abort": (ENDS, "abort"),
}
CELLS: dict[str, tuple[object, Phase | None]] = {
    # what a cell says: the answer, and the phase afterwards, if it changes
    "begin": (DONE, ONGOING),
    "extend": (DONE, ONGOING),
    "commit": (TransactionEndedReply, COMMITTED),
    "abort": (TransactionEndedReply, ABORTED),
    "done": (TransactionEndedReply, None),
    "INVALID_STATE": (INVALID, None),
    "abort, bump": (DONE, EMPTY),
    "-": (DONE, None),
}
HAPPENS = {TransactionBegun: "begin", TransactionEnded: "end"}
TABLE: dict[tuple[Phase, str], tuple[object, Phase, int]] = {
    # (phase, input): (answer, phase afterwards, epoch afterwards), for what stands in no docstring
    **{(phase, "init"): (ProducerBoundReply, EMPTY, 1) for phase in Phase},
    **{(phase, name): (REFUSED, phase, 0) for phase in Phase for name in ("append", "offsets")},
    (ONGOING, "append"): (Appended, ONGOING, 0),
}
for name, (table, column) in COLUMNS.items():
    for phase in Phase:
        cell = table[phase.name, column]
        TABLE[phase, name] = (CELLS[cell][0], CELLS[cell][1] or phase, int("bump" in cell))


def test_the_table_is_complete() -> None:
    assert TABLE.keys() == {(phase, name) for phase in Phase for name in INPUTS}
    assert LIFE.rows.keys() == ENDS.rows.keys() == {phase.name for phase in Phase}
    assert {column for _, column in COLUMNS.values()} == {*LIFE.columns, *ENDS.columns}


@pytest.mark.parametrize(("phase", "name"), TABLE)
def test_every_input_in_every_phase(world: World, phase: Phase, name: str) -> None:
    producer = in_phase(world, phase)
    log_before = len(world.log)
    answer = INPUTS[name](producer)
    expected, phase_after, epoch_after = TABLE[phase, name]
    assert answer == expected or (isinstance(expected, type) and isinstance(answer, expected))
    held = world.state.transactional_ids["x"]
    assert (held.phase, held.producer_epoch) == (phase_after, epoch_after)
    if name in COLUMNS:
        said = COLUMNS[name][0][phase.name, COLUMNS[name][1]].split(",")[0]
        found = {
            word for event, word in HAPPENS.items() if any(isinstance(each, event) for each in world.log[log_before:])
        }
        assert found == ({"end" if said in ("commit", "abort") else said} & {"begin", "end"})
    if isinstance(answer, Rejection):
        assert len(world.log) == log_before, "a rejection changes nothing durable"
    world.check()


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("name", sorted(INPUTS.keys() - {"init", "expire"}))
def test_a_zombie_is_fenced_in_every_phase(world: World, phase: Phase, name: str) -> None:
    zombie = world.producer()
    in_phase(world, phase)
    log_before = len(world.log)
    answer = INPUTS[name](zombie)
    fenced = Rejection.INVALID_PRODUCER_EPOCH if name == "append" else Rejection.PRODUCER_FENCED
    assert answer is fenced
    assert len(world.log) == log_before
    world.check()


def test_takeover_aborts_what_the_zombie_left_open(world: World) -> None:
    zombie = world.producer()
    zombie.add()
    zombie.append(count=3)
    successor = world.producer()
    partition = world.state.partition("t", 0)
    assert partition is not None
    assert partition.last_stable_offset == partition.next_offset == 4, "three records and the abort marker"
    assert [(entry.first_offset, entry.last_offset) for entry in partition.aborted] == [(0, 3)]
    successor.add()
    assert isinstance(successor.append(), Appended)
    assert isinstance(successor.end(commit=True), TransactionEndedReply)
    world.check()


def test_markers_only_where_something_was_written(world: World) -> None:
    producer = world.producer()
    producer.add(0)
    producer.add(1)
    producer.append(1)
    producer.end(commit=False)
    untouched = world.state.partition("t", 0)
    assert untouched is not None
    assert (untouched.next_offset, untouched.aborted) == (0, [])
    world.check()


def test_a_timed_out_client_learns_its_epoch_and_a_zombie_does_not(world: World) -> None:
    client = world.producer()
    client.add()
    client.append()
    world.pass_time(1000)
    assert client.end(commit=True) is Rejection.PRODUCER_FENCED
    assert client.init_again() == ProducerBoundReply(producer_id=client.producer_id, producer_epoch=ProducerEpoch(1))
    client.add()
    assert isinstance(client.append(), Appended)
    world.pass_time(1000)
    world.producer()  # somebody else takes over
    assert client.init_again() is Rejection.PRODUCER_FENCED
    world.check()


def test_a_transaction_is_not_aborted_before_its_time_nor_one_that_follows_it(world: World) -> None:
    producer = world.producer(timeout_ms=1000)
    producer.add()
    producer.append()
    world.pass_time(900)
    producer.end(commit=True)
    producer.add()  # same epoch; its own deadline is 1000 ms from here
    producer.append()
    world.pass_time(999)
    assert phase_of(world) is Phase.ONGOING
    world.pass_time(1)
    assert phase_of(world) is Phase.EMPTY
    assert world.state.transactional_ids["x"].producer_epoch == 1
    world.check()


def test_an_early_timer_asks_again(world: World) -> None:
    producer = world.producer(timeout_ms=1000)
    producer.add()
    timer = world.timers[-1]
    world.timers.clear()
    world.now_ms -= 500  # the clock was set back, and the timer fires by another clock
    world.send(timer.command)
    assert world.state.transactional_ids["x"].phase is Phase.ONGOING
    assert world.timers == [timer]


def test_init_with_the_present_pair_bumps_and_its_repeat_does_not(world: World) -> None:
    client = world.producer()
    old = client.epoch
    first = client.init_again()
    assert client.epoch == old + 1
    client.epoch = old
    assert client.init_again() == first, "the answer was lost: the same request again (KIP-360)"
    client.add()
    late = Producer(world, "x", client.producer_id, old)
    assert late.init_again() is Rejection.PRODUCER_FENCED, "a late repeat must not abort the transaction begun since"
    assert world.state.transactional_ids["x"].phase is Phase.ONGOING
    world.check()


@pytest.mark.parametrize("how", ["takeover", "bump", "timeout"])
def test_an_exhausted_epoch_rotates_the_producer_id(world: World, how: str) -> None:
    client = world.producer()
    first_id = client.producer_id
    while client.epoch < world.state.limits.highest_epoch:
        client = world.producer()
    zombie = Producer(world, "x", client.producer_id, client.epoch)
    if how == "takeover":
        client = world.producer()
    elif how == "bump":
        client.init_again()
    else:
        client.add()
        client.append()
        world.pass_time(1000)
        client.init_again()
    assert client.producer_id != first_id
    assert client.epoch == 0
    assert zombie.end(commit=True) is Rejection.INVALID_PRODUCER_ID_MAPPING
    assert zombie.append() is Rejection.INVALID_PRODUCER_ID_MAPPING
    client.add()
    assert isinstance(client.append(), Appended)
    assert isinstance(client.end(commit=True), TransactionEndedReply)
    world.check()


@pytest.mark.parametrize("phase", Phase)
def test_a_crash_that_forgets_a_registration_is_not_noticed(world: World, phase: Phase) -> None:
    producer = in_phase(world, phase)
    after_recovery(world.state)  # AddPartitions and AddGroup for this were answered, and then forgotten
    assert isinstance(producer.append(1), Appended)
    assert producer.commit_offsets(5) is DONE
    assert world.state.transactional_ids["x"].phase is Phase.ONGOING
    world.check()
    assert isinstance(producer.end(commit=True), TransactionEndedReply)
    assert producer.append(1) is REFUSED, "what comes after the end was not forgotten by a crash"
    assert producer.commit_offsets(6) is REFUSED
    world.check()


def test_a_transaction_begun_by_a_write_has_its_deadline(world: World) -> None:
    producer = in_phase(world, Phase.COMPLETE_COMMIT)
    after_recovery(world.state)
    producer.append(1)
    world.pass_time(1000)
    assert world.state.transactional_ids["x"].phase is Phase.EMPTY
    assert producer.append(1) is Rejection.INVALID_PRODUCER_EPOCH
    world.check()


def test_a_write_out_of_sequence_begins_nothing(world: World) -> None:
    producer = in_phase(world, Phase.COMPLETE_COMMIT)
    after_recovery(world.state)
    assert producer.append(sequence=5) is Rejection.OUT_OF_ORDER_SEQUENCE
    assert world.state.transactional_ids["x"].phase is Phase.COMPLETE_COMMIT
    world.check()


@pytest.mark.parametrize("phase", [Phase.EMPTY, Phase.COMPLETE_ABORT])
def test_a_forgotten_begin_can_be_aborted_and_is_given_up(world: World, phase: Phase) -> None:
    producer = in_phase(world, phase)
    after_recovery(world.state)
    assert isinstance(producer.end(commit=False), TransactionEndedReply)
    assert isinstance(producer.end(commit=False), TransactionEndedReply), "a repeat gets the same answer"
    assert producer.append() is REFUSED, "a late write of what was aborted must not begin anything"
    producer.add()
    producer.append()
    producer.end(commit=True)
    assert producer.end(commit=False) is INVALID, "commit, then abort: the client must not be told that it aborted"
    world.check()


def test_whose_commit_was_not_answered_is_not_told_that_it_aborted(world: World) -> None:
    """It cannot be told from one whose next begin was forgotten; that one must begin again, as with Apache Kafka."""
    producer = in_phase(world, Phase.COMPLETE_COMMIT)
    after_recovery(world.state)
    assert producer.end(commit=False) is INVALID
    assert isinstance(producer.end(commit=True), TransactionEndedReply)
    world.check()


def test_a_forgotten_begin_of_nothing_can_be_committed(world: World) -> None:
    producer = world.producer()
    after_recovery(world.state)
    assert isinstance(producer.end(commit=True), TransactionEndedReply)


def test_bad_arguments(world: World) -> None:
    init = InitProducerId(transactional_id="x", transaction_timeout_ms=0)
    assert world.send(init) is Rejection.INVALID_TRANSACTION_TIMEOUT
    init = InitProducerId(transactional_id="x", transaction_timeout_ms=900_001)
    assert world.send(init) is Rejection.INVALID_TRANSACTION_TIMEOUT
    assert world.send(InitProducerId(transactional_id="", transaction_timeout_ms=1)) is (
        Rejection.INVALID_TRANSACTIONAL_ID
    )
    producer = world.producer()
    assert producer.add(7) is Rejection.UNKNOWN_TOPIC_OR_PARTITION
    assert producer.add_group("") is Rejection.INVALID_GROUP_ID
    stranger = Producer(world, "y", producer.producer_id, producer.epoch)
    assert stranger.add() is Rejection.INVALID_PRODUCER_ID_MAPPING
    assert isinstance(stranger.init_again(), ProducerBoundReply), "an id that we forgot begins again"
    assert stranger.producer_id != producer.producer_id
