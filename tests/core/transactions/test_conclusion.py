"""The holder of a concluded id is answered by the table of `conclusion.py`, which is swept here, and repeats are."""

import pytest

from exacta.core.events import TransactionBegun
from exacta.core.ids import TransactionVersion
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, Appended, TransactionEndedReply, TransactionsRefused
from exacta.core.state.transaction import Conclusion
from exacta.core.values.transactions import Phase
from tests.core.transactions.test_joint import restarted, write
from tests.core.world import Producer, World
from tests.docstring_tables import docstring_table

V1, V2 = TransactionVersion
STATE, ABORTABLE = Rejection.INVALID_TRANSACTION_STATE, Rejection.TRANSACTION_ABORTABLE

TABLE = docstring_table("exacta.core.transactions.conclusion", "input")
ANSWERS = {
    # what a cell says: the answer
    "INVALID": STATE,
    "ABORTABLE": ABORTABLE,
    "done": DONE,
    "done, bump": DONE,
    "joins": DONE,
    "as ever": DONE,
}


def offsets(producer: Producer) -> object:
    if producer.version is V1:
        producer.add_group()
    return producer.commit_offsets(3)


def end_as_set(producer: Producer, *, commit: bool) -> object:
    answer = producer.world.end_all(producer, commit=commit)
    return answer.rejections[0] if isinstance(answer, TransactionsRefused) else answer


INPUTS = {
    # the name of a row: how it is sent
    "a write, either version": (write, offsets),
    "AddOffsetsToTxn": (lambda producer: producer.add_group(),),
    "EndTxn(commit)": (lambda producer: producer.end(commit=True),),
    "EndTxn(abort)": (lambda producer: producer.end(commit=False),),
    "EndTransactions(commit)": (lambda producer: end_as_set(producer, commit=True),),
    "EndTransactions(abort)": (lambda producer: end_as_set(producer, commit=False),),
    "JoinTransaction": (lambda producer: producer.ask_to_join(),),
    "JoinTransaction, a handle": (lambda producer: producer.ask_to_join(producer.world.handle()),),
    "InitProducerId": (lambda producer: producer.init_again(),),
}
VERSIONS = {", version 1": (V1,), ", version 2": (V2,), "": (V1, V2)}


def concluded(world: World, version: TransactionVersion, *, committed: bool, has_part: bool) -> Producer:
    """A holder who has not heard yet how its id has ended its joint transaction."""
    producer = world.producer(version=version)
    write(producer)
    producer.end(commit=True)  # it is no new one: its sequences and its last outcome are there
    handle = world.handle()
    handle.append(1)
    producer.join(handle)
    if has_part:
        write(producer)
    assert handle.end(commit=committed) == DONE
    return producer


def name_and_versions(row: str) -> tuple[str, tuple[TransactionVersion, ...]]:
    suffix = next(each for each in VERSIONS if row.endswith(each))
    return row.removesuffix(suffix), VERSIONS[suffix]


CELLS = [
    (name, send, column, version, cell)
    for row, column, cell in TABLE.cells()
    for name, versions in [name_and_versions(row)]
    for send in range(len(INPUTS[name]))
    for version in versions
]


def test_the_table_is_complete() -> None:
    assert {name_and_versions(row)[0] for row in TABLE.rows} == INPUTS.keys()
    assert len(TABLE.columns) == 4


@pytest.mark.parametrize(("name", "send", "column", "version", "cell"), CELLS)
@pytest.mark.parametrize("kill", [True, False])
def test_every_input_of_the_holder_after_the_other_side_has_ended_it(
    world: World, name: str, send: int, column: str, version: TransactionVersion, cell: str, kill: bool
) -> None:
    committed, has_part = column.startswith("committed"), column.endswith("with a part")
    producer = concluded(world, version, committed=committed, has_part=has_part)
    if kill:
        restarted(world)
    held = world.state.transactional_ids["x"]
    before, epoch_before, part = len(world.log), held.producer_epoch, held.concluded
    assert part is (Conclusion.OF_WHAT_IT_WROTE if has_part else Conclusion.OF_NOTHING)
    answer, expected = INPUTS[name][send](producer), ANSWERS[cell]
    if isinstance(expected, Rejection) or name == "AddOffsetsToTxn":
        assert answer is expected
        assert held.concluded is part
        assert not [event for event in world.log[before:] if isinstance(event, TransactionBegun) and event.owner]
        # Nothing is begun under its pair, however often it asks.
        assert write(producer) is ANSWERS[TABLE["a write, either version", column]]
        world.check()
        return
    assert not isinstance(answer, Rejection)
    assert held.concluded is None
    if name.startswith("EndTxn"):
        assert held.producer_epoch == epoch_before + ("bump" in cell)
        commit = name == "EndTxn(commit)"
        again = INPUTS[name][send](producer)
        assert version is V2 or again == answer, "a repeat of version 1 is answered the same"
        assert held.phase is (Phase.COMPLETE_COMMIT if commit else Phase.COMPLETE_ABORT)
    if not name.startswith("EndTransactions") or version is V1:
        assert isinstance(write(producer), Appended), "it goes on with its next transaction"
    world.check()


@pytest.mark.parametrize("commit", [True, False])
def test_a_repeat_of_the_end_in_version_2_is_told_the_same_pair(world: World, commit: bool) -> None:
    producer = concluded(world, V2, committed=commit, has_part=True)
    first = producer.end(commit=commit, adopts=False)
    assert producer.end(commit=commit, adopts=False) == first
    assert producer.end(commit=not commit, adopts=False) is STATE
    world.check()


@pytest.mark.parametrize("version", [V1, V2])
def test_a_handle_that_was_joined_in_vain_leaves_the_holder_its_pair(world: World, version: TransactionVersion) -> None:
    """A repeat in the transaction before is still known, and the next handle is joined."""
    producer = world.producer(version=version)
    write(producer)
    before = Producer(world, "x", producer.producer_id, producer.epoch, version)
    producer.end(commit=True)
    handle = world.handle()
    producer.join(handle)
    if version is V2:
        assert isinstance(before.end(commit=True, adopts=False), TransactionEndedReply)
    handle.end(commit=True)
    producer.join(world.handle())
    assert isinstance(write(producer), Appended)
    assert isinstance(producer.end(commit=True), TransactionEndedReply)
    world.check()
