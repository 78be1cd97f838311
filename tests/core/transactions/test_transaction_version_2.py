"""Version 2 of the transaction protocol (KIP-890): its tables, repeats, late requests, and changes of version."""

from random import Random

import pytest

from exacta.core.commands import AddPartitions
from exacta.core.ids import ProducerEpoch, TransactionVersion
from exacta.core.rejections import Rejection
from exacta.core.replies import (
    DONE,
    Appended,
    PartitionsVerified,
    ProducerBoundReply,
    TransactionEndedReply,
    TransactionsRefused,
)
from exacta.core.snapshot import after_recovery, restore, snapshot
from exacta.core.values.transactions import Phase
from tests.core.world import SMALL, Producer, World
from tests.docstring_tables import docstring_table
from tests.shares import share_of

V1, V2 = TransactionVersion
EMPTY, ONGOING, COMMITTED, ABORTED = Phase.EMPTY, Phase.ONGOING, Phase.COMPLETE_COMMIT, Phase.COMPLETE_ABORT
INVALID = Rejection.INVALID_TRANSACTION_STATE


def in_phase(world: World, phase: Phase) -> Producer:
    """A client of version 2 whose transactional id is in this phase."""
    producer = world.producer(version=V2)
    if phase is not EMPTY:
        producer.append()
    if phase is COMMITTED:
        producer.end(commit=True)
    if phase is ABORTED:
        producer.end(commit=False)
    assert world.state.transactional_ids["x"].phase is phase
    return producer


def as_before(world: World, producer: Producer) -> Producer:
    """The same client before its last transaction ended: what a late or repeated request of it looks like."""
    held = world.state.transactional_ids["x"]
    if not held.bumped_by_end:
        return Producer(world, "x", producer.producer_id, ProducerEpoch(producer.epoch - 1), V2)
    return Producer(world, "x", held.previous_producer_id, held.previous_producer_epoch, V2)


INPUTS = {
    "append": lambda producer: producer.append(),
    "offsets": lambda producer: producer.commit_offsets(1),
    "commit": lambda producer: producer.end(commit=True),
    "abort": lambda producer: producer.end(commit=False),
}
FENCED, STALE = Rejection.PRODUCER_FENCED, Rejection.INVALID_PRODUCER_EPOCH
ENDS = docstring_table("exacta.core.transactions.transaction", "phase \\ version 2")
CELLS: dict[str, tuple[object, Phase | None, int]] = {
    # what a cell says: the answer, the phase afterwards, if it changes, and by how much the epoch is higher
    "commit, bump": (TransactionEndedReply, COMMITTED, 1),
    "abort, bump": (TransactionEndedReply, ABORTED, 1),
    "done": (TransactionEndedReply, None, 0),
    "INVALID_STATE": (INVALID, None, 0),
    "fenced": (FENCED, None, 0),
}
NOW = {
    # (phase, input): (answer, phase afterwards, by how much the epoch is higher afterwards)
    **{(phase, "append"): (Appended, ONGOING, 0) for phase in Phase},
    **{(phase, "offsets"): (DONE, ONGOING, 0) for phase in Phase},
    **{(phase, name): CELLS[ENDS[phase.name, name]] for phase in Phase for name in ("commit", "abort")},
}
BEFORE = {
    # (phase, input): the answer to the pair before
    **{(phase, "append"): STALE for phase in Phase},
    **{(phase, "offsets"): FENCED for phase in Phase},
    **{
        (phase, name): CELLS[ENDS[phase.name, f"{name}, the pair before"]][0]
        for phase in Phase
        for name in ("commit", "abort")
    },
}


def test_the_tables_are_complete() -> None:
    assert NOW.keys() == BEFORE.keys() == {(phase, name) for phase in Phase for name in INPUTS}
    assert ENDS.rows.keys() == {phase.name for phase in Phase}
    assert len(ENDS.columns) == 4


def is_answer(answer: object, expected: object) -> bool:
    return answer == expected or (isinstance(expected, type) and isinstance(answer, expected))


@pytest.mark.parametrize(("phase", "name"), NOW)
def test_every_input_in_every_phase(world: World, phase: Phase, name: str) -> None:
    producer = in_phase(world, phase)
    held = world.state.transactional_ids["x"]
    log_before, epoch_before = len(world.log), held.producer_epoch
    answer = INPUTS[name](producer)
    expected, phase_after, bumped = NOW[phase, name]
    assert is_answer(answer, expected)
    assert (held.phase, held.producer_epoch - epoch_before) == (phase_after or phase, bumped)
    assert (producer.producer_id, producer.epoch) == (held.producer_id, held.producer_epoch)
    if isinstance(answer, Rejection):
        assert len(world.log) == log_before, "a rejection changes nothing durable"
    world.check()


@pytest.mark.parametrize(("phase", "name"), BEFORE)
def test_every_input_of_the_pair_before_in_every_phase(world: World, phase: Phase, name: str) -> None:
    producer = in_phase(world, phase)
    if phase is ONGOING:
        producer.end(commit=True)  # so that there is a pair before, and another transaction
        producer.append()
    held = world.state.transactional_ids["x"]
    earlier, log_before = as_before(world, producer), len(world.log)
    answer = INPUTS[name](earlier)
    assert is_answer(answer, BEFORE[phase, name])
    assert len(world.log) == log_before, "nothing has happened"
    assert held.phase is phase
    if isinstance(answer, TransactionEndedReply):
        assert (earlier.producer_id, earlier.epoch) == (producer.producer_id, producer.epoch), "told the present pair"
    world.check()


@pytest.mark.parametrize("commit", [True, False])
def test_a_repeated_end_is_recognised_also_after_a_crash(world: World, commit: bool) -> None:
    producer = in_phase(world, ONGOING)
    first = producer.end(commit=commit, adopts=False)
    world.state = restore(snapshot(world.state), SMALL)
    after_recovery(world.state)
    assert producer.end(commit=commit, adopts=False) == first
    world.crash()
    assert producer.end(commit=commit) == first
    assert isinstance(producer.append(), Appended)
    world.check()


def test_a_late_end_does_not_touch_the_next_transaction(world: World) -> None:
    """KAFKA-17754: with version 1 the broker could not tell whose EndTxn it is."""
    client = in_phase(world, ONGOING)
    late = Producer(world, "x", client.producer_id, client.epoch, V2)
    client.end(commit=True)
    client.append()
    assert late.end(commit=True) is FENCED
    assert late.append(sequence=1) is STALE
    assert world.state.transactional_ids["x"].phase is ONGOING
    world.check()


def test_exhausted_epochs_rotate_the_producer_id_and_the_repeat_is_recognised(world: World) -> None:
    producer = world.producer(version=V2)
    first_id = producer.producer_id
    while producer.epoch < SMALL.highest_epoch:
        producer.append()
        producer.end(commit=True)
    producer.append()
    producer.commit_offsets(7)
    repeat = Producer(world, "x", producer.producer_id, producer.epoch, V2)
    ended = producer.end(commit=True)
    assert (producer.producer_id != first_id, producer.epoch) == (True, 0)
    assert world.state.groups["g"].offsets["t"][0].offset == 7
    assert repeat.end(commit=True, adopts=False) == ended
    assert repeat.end(commit=False) is INVALID
    assert repeat.append() is Rejection.INVALID_PRODUCER_ID_MAPPING, "a zombie's"
    assert isinstance(producer.append(), Appended)
    assert repeat.end(commit=True) is Rejection.INVALID_PRODUCER_ID_MAPPING
    world.check()


def test_after_an_end_the_pair_before_may_initialise_once_more(world: World) -> None:
    """KIP-360: a client that lost the answer to its EndTxn, and begins again, is still the same client."""
    producer = in_phase(world, ONGOING)
    producer.end(commit=True, adopts=False)
    assert isinstance(producer.init_again(), ProducerBoundReply)
    assert producer.epoch == world.state.transactional_ids["x"].producer_epoch
    assert isinstance(producer.append(), Appended)


@pytest.mark.parametrize("version", TransactionVersion)
def test_a_late_repeat_of_initialising_does_not_give_out_a_used_pair(world: World, version: TransactionVersion) -> None:
    """Or a second transaction would begin under a pair that names one, and be taken for the whole of it."""
    producer = world.producer(version=version)
    late = Producer(world, "x", producer.producer_id, producer.epoch)
    producer.init_again()
    producer.add()
    producer.append()
    assert world.end_all(producer, commit=False) == DONE
    assert late.init_again() is FENCED
    if version is V2:
        assert producer.append() is Rejection.TRANSACTION_NOT_BEGUN
    else:
        assert isinstance(producer.end(commit=False), TransactionEndedReply), "a repeat gets the same answer"
    world.check()


def test_an_end_is_no_repeat_of_what_initialising_ended(world: World) -> None:
    producer = in_phase(world, ONGOING)
    earlier = Producer(world, "x", producer.producer_id, producer.epoch, V2)
    producer.init_again()  # aborts, and makes the present pair
    assert earlier.end(commit=False) is FENCED
    producer.version = V1
    producer.add()
    producer.end(commit=True)
    assert earlier.end(commit=True) is FENCED, "another transaction's commit must not be taken for that one's"
    world.check()


def test_a_transaction_that_timed_out_is_fenced_and_its_client_may_initialise(world: World) -> None:
    producer = in_phase(world, ONGOING)
    world.pass_time(1000)
    assert producer.append() is STALE
    assert producer.end(commit=False) is FENCED
    assert isinstance(producer.init_again(), ProducerBoundReply)
    assert isinstance(producer.append(), Appended)
    world.check()


@pytest.mark.parametrize("phase", [EMPTY, COMMITTED, ABORTED])
def test_a_transaction_begun_by_offsets_has_its_deadline(world: World, phase: Phase) -> None:
    producer = in_phase(world, phase)
    world.timers.clear()  # those of the transaction before
    producer.commit_offsets(3)
    world.pass_time(1000)
    assert world.state.transactional_ids["x"].phase is EMPTY
    assert world.state.groups["g"].offsets == {}
    world.check()


def test_a_write_that_is_not_the_first_of_its_transaction_begins_nothing(world: World) -> None:
    producer = in_phase(world, COMMITTED)
    assert producer.append(0, sequence=1) is Rejection.OUT_OF_ORDER_SEQUENCE, "known here, but of an earlier epoch"
    assert producer.append(1, sequence=1) is Rejection.OUT_OF_ORDER_SEQUENCE, "never seen here"
    assert world.state.transactional_ids["x"].phase is COMMITTED
    world.check()


def test_versions_may_change_from_transaction_to_transaction_and_within_one(world: World) -> None:
    producer = world.producer(version=V1)
    for version, end_version in ((V1, V2), (V2, V1), (V1, V1), (V1, V2), (V2, V2), (V1, V2)):
        producer.version = version
        if version is V1:
            producer.add()
        assert isinstance(producer.append(), Appended), (version, end_version)
        producer.version = end_version
        if end_version is V1:
            producer.add(1)
        assert isinstance(producer.append(1), Appended)
        assert isinstance(producer.end(commit=True), TransactionEndedReply)
        world.check()
    producer.version = V1
    assert producer.append() is Rejection.TRANSACTION_NOT_BEGUN


def test_version_1_can_end_without_a_bump_and_repeats_of_another_end_are_fenced(world: World) -> None:
    producer = in_phase(world, ONGOING)
    zombie = Producer(world, "x", producer.producer_id, producer.epoch, V2)
    producer.end(commit=False)  # bumps
    producer.version = V1
    producer.add()
    producer.end(commit=True)
    assert zombie.end(commit=True) is FENCED, "what it had begun was aborted"
    world.check()


@pytest.mark.parametrize("crashes", [False, True])
@pytest.mark.parametrize("how", ["by version 1", "in a set"])
@pytest.mark.parametrize("committed", [True, False])
def test_after_an_end_that_kept_the_pair_its_owner_cannot_go_on_under_it(
    world: World, committed: bool, how: str, crashes: bool
) -> None:
    """Somebody else ended the transaction, or the client itself in version 1: a second one must not be taken for it."""
    producer = in_phase(world, ONGOING)
    if how == "in a set":
        assert world.end_all(producer, commit=committed) == DONE
    else:
        producer.version = V1
        producer.end(commit=committed)
        producer.version = V2
    if crashes:
        world.crash()
    assert producer.append() is Rejection.TRANSACTION_NOT_BEGUN
    assert producer.commit_offsets(1) is Rejection.TRANSACTION_NOT_BEGUN
    assert producer.end(commit=not committed) is INVALID
    assert isinstance(producer.end(commit=committed), TransactionEndedReply), "it did end so"
    assert isinstance(producer.append(), Appended), "under the next pair"
    world.check()


def test_a_set_takes_an_unused_pair_for_what_it_is(world: World) -> None:
    producer = in_phase(world, COMMITTED)
    assert isinstance(world.end_all(producer, commit=True), TransactionsRefused)
    world.check()


def test_a_begin_that_a_crash_forgot_may_be_ended_by_version_2(world: World) -> None:
    producer = in_phase(world, COMMITTED)
    producer.add()
    world.crash()
    assert isinstance(producer.end(commit=True), TransactionEndedReply)
    assert producer.end(commit=True) is INVALID, "once"
    world.check()


def test_verifying_tells_and_registers_nothing(world: World) -> None:
    producer = in_phase(world, ONGOING)
    asked = AddPartitions(
        transactional_id="x",
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        partitions=(("t", 0), ("t", 1)),
        verify_only=True,
    )
    assert world.send(asked) == PartitionsVerified(registered=(True, False))
    assert len(world.ongoing().partitions) == 1
    producer.end(commit=True)
    assert world.send(asked) is FENCED


@pytest.mark.parametrize("seed", share_of(range(10)))
def test_what_a_client_is_told_is_so(seed: int) -> None:
    """Lives of one transactional id, dense in ends: `World.check` holds what its clients were told against the log."""
    random = Random(seed)
    for _ in range(60):
        world = World()
        world.topic()
        clients = [world.producer(version=V2)]
        for _ in range(25):
            client = random.choice(clients[-2:])
            match random.choice(["write", "write", "write", "offsets", "end", "end", "set", "crash", "time", "start"]):
                case "write":
                    client.append(random.randrange(2), random.randint(1, 2))
                case "offsets":
                    client.commit_offsets(random.randrange(9))
                case "end":
                    client.end(commit=random.random() < 0.7, adopts=random.random() < 0.8)
                case "set":
                    world.end_all(client, commit=random.random() < 0.5)
                case "crash":
                    world.crash()
                case "time":
                    world.pass_time(500)
                case "start":
                    clients.append(world.producer(version=V2))
                    clients[-2].init_again()
            world.check()
