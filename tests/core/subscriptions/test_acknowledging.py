"""Acknowledgements: the tables of `acknowledging.py`, swept; entries of several messages, bounds, loss, snapshots."""

import pytest
from msgspec.structs import replace

from exacta.core.apply import apply
from exacta.core.ids import ConsumerId, TransactionId
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE
from exacta.core.snapshot import is_same, restore, snapshot
from exacta.core.state.state import State
from exacta.core.values.subscriptions import SubscriptionType
from tests.core.subscriptions.consumer import Consumer, runs
from tests.core.subscriptions.delivering import Dispatcher
from tests.core.world import SMALL, Handle, World, world_of_ten
from tests.docstring_tables import Table, docstring_table

CONFLICT = Rejection.TRANSACTION_CONFLICT
MODULE = "exacta.core.subscriptions.acknowledging"
ONE_BY_ONE = docstring_table(MODULE, "the message is")
CUMULATIVE = docstring_table(MODULE, "all messages before an offset that is")
NOT_YET, ALREADY, OWN, OTHER = ONE_BY_ONE.rows
FREE, ACKED = "free", "acknowledged"
BEHIND, OWN_BEFORE, OTHER_BEFORE, OTHER_ALONE, STANDING_BY, NOT_GOT, BEYOND = CUMULATIVE.rows
INSIDE = {"acknowledged at once": False, "in a transaction": True}


def cells_of(table: Table) -> list[tuple[str, bool, str]]:
    """Return the row, whether it is in a transaction, and the cell, of each cell that has a meaning."""
    return [(row, INSIDE[column], cell) for row, column, cell in table.cells() if cell != "-"]


@pytest.fixture
def world() -> World:
    return world_of_ten()


@pytest.fixture
def consumer(world: World) -> Consumer:
    return Consumer(world).begin()


@pytest.mark.parametrize(("before", "inside", "cell"), cells_of(ONE_BY_ONE))
def test_one_message_in_every_state(world: World, consumer: Consumer, before: str, inside: bool, cell: str) -> None:
    own, other = world.handle(), world.handle()
    if before != NOT_YET:
        holder = {ALREADY: None, OWN: own, OTHER: other}[before]
        assert consumer.acknowledge((4, 4), inside=holder) == DONE
    state, length, was = snapshot(world.state), len(world.log), consumer.state_of(4)
    answer = consumer.acknowledge((4, 4), inside=own if inside else None)
    match cell:
        case "acknowledged":
            assert (answer, consumer.state_of(4)) == (DONE, ACKED)
        case "pending":
            assert (answer, consumer.state_of(4)) == (DONE, f"pending in {own.transaction_id}")
        case "nothing to do" | "CONFLICT":
            assert (answer, consumer.state_of(4)) == (CONFLICT if cell == "CONFLICT" else DONE, was)
            assert (snapshot(world.state), len(world.log)) == (state, length), "nothing changes"
        case other_cell:
            raise AssertionError(other_cell)
    world.check()


REPEATS = {
    # what the transaction has acknowledged before: the answer to 4 to 6, by a command that may be a repeat
    ((4, 6),): DONE,
    ((3, 7),): DONE,
    ((4, 4), (5, 6)): DONE,
    ((4, 5),): CONFLICT,
    ((4, 4), (6, 6)): CONFLICT,
    (): DONE,
}


@pytest.mark.parametrize("before", REPEATS)
def test_a_command_that_may_be_a_repeat(world: World, consumer: Consumer, before: tuple[tuple[int, int], ...]) -> None:
    own, other = world.handle(), world.handle()
    if before:
        assert consumer.acknowledge(*before, inside=own) == DONE
    state = snapshot(world.state)
    assert consumer.acknowledge((4, 6), inside=own, may_repeat=True) == REPEATS[before]
    assert before == () or snapshot(world.state) == state, "nothing is done twice"
    held = {message for message in range(10) if consumer.state_of(message) == f"pending in {own.transaction_id}"}
    assert held == {message for first, last in before or ((4, 6),) for message in range(first, last + 1)}
    assert consumer.acknowledge((4, 6), inside=other, may_repeat=True) == CONFLICT
    own.end(commit=True)
    assert consumer.acknowledge((4, 6), inside=other, may_repeat=True) == CONFLICT
    assert consumer.acknowledge((4, 6), inside=own, may_repeat=True) == Rejection.TRANSACTION_ENDED
    world.check()


@pytest.mark.parametrize(("where", "inside", "cell"), cells_of(CUMULATIVE))
def test_all_messages_before_an_offset(world: World, consumer: Consumer, where: str, inside: bool, cell: str) -> None:
    dispatcher = Dispatcher(world, SubscriptionType.FAILOVER)
    active = dispatcher.connect("a", permits=2 if where == NOT_GOT else 100)
    sender = dispatcher.connect("b") if where == STANDING_BY else active
    dispatcher.pump()
    if where == NOT_GOT:  # it gives back what it has got, and asks for no more
        dispatcher.permit(active, -100)
        dispatcher.redeliver(active)
        dispatcher.pump()
    own, other = world.handle(), world.handle()
    if where == BEHIND:
        consumer.acknowledge_before(4)
    elif where == OTHER_ALONE:
        consumer.acknowledge((2, 2), inside=other)
    elif where in (OWN_BEFORE, OTHER_BEFORE):
        consumer.acknowledge_before(4, inside=own if where == OWN_BEFORE else other)
    state, length = snapshot(world.state), len(world.log)
    answer = consumer.acknowledge_before(4, inside=own if inside else None, consumer_id=sender)
    match cell:
        case "acknowledged":
            assert (answer, consumer.subscription.position) == (DONE, 4)
        case "pending":
            assert answer == DONE
            assert {consumer.state_of(message) for message in range(4)} == {f"pending in {own.transaction_id}"}
        case "nothing to do" | "CONFLICT":
            assert answer == (CONFLICT if cell == "CONFLICT" else DONE)
            assert (snapshot(world.state), len(world.log)) == (state, length), "nothing changes"
        case other_cell:
            raise AssertionError(other_cell)
    assert (len(world.log) > length) is (cell in ("acknowledged", "pending"))
    assert consumer.state_of(4) == FREE
    world.check()


def test_the_two_kinds_are_checked_against_each_other(world: World, consumer: Consumer) -> None:
    """Apache Pulsar 4.2 does not: two transactions that both commit then have one message."""
    one, other = world.handle(), world.handle()
    assert consumer.acknowledge_before(4, inside=one) == DONE
    assert consumer.acknowledge((3, 3), inside=other) == CONFLICT
    assert consumer.acknowledge((4, 4), inside=other) == DONE
    assert consumer.acknowledge_before(6, inside=one) == CONFLICT
    assert consumer.acknowledge((5, 5), inside=one) == DONE
    world.check()


def test_a_transaction_goes_on_cumulatively_over_what_it_has_one_by_one(world: World, consumer: Consumer) -> None:
    handle = world.handle()
    assert consumer.acknowledge((2, 3), inside=handle) == DONE
    assert consumer.acknowledge_before(4, inside=handle) == DONE
    assert consumer.acknowledge_before(6, inside=handle) == DONE
    assert handle.end(commit=True) == DONE
    assert consumer.subscription.position == 6
    world.check()


@pytest.mark.parametrize(
    ("kind", "who", "inside", "expected"),
    [
        (SubscriptionType.EXCLUSIVE, "active", True, DONE),
        (SubscriptionType.FAILOVER, "active", True, DONE),
        (SubscriptionType.FAILOVER, "standing by", True, CONFLICT),
        (SubscriptionType.FAILOVER, "gone", True, Rejection.CONSUMER_NOT_FOUND),
        (SubscriptionType.FAILOVER, "standing by", False, DONE),
        (SubscriptionType.FAILOVER, "gone", False, Rejection.CONSUMER_NOT_FOUND),
    ],
)
def test_only_the_active_consumer_acknowledges_all_before_an_offset_in_a_transaction(
    world: World, consumer: Consumer, kind: SubscriptionType, who: str, inside: bool, expected: object
) -> None:
    """Another one may have messages that the active one has got meanwhile, and both could commit them."""
    dispatcher = Dispatcher(world, kind)
    ids = {"active": dispatcher.connect(permits=100), "gone": ConsumerId(9)}
    dispatcher.pump()
    if kind is SubscriptionType.FAILOVER:
        ids["standing by"] = dispatcher.connect("z")
    handle = world.handle() if inside else None
    assert consumer.acknowledge_before(4, inside=handle, consumer_id=ids[who]) == expected
    world.check()


@pytest.mark.parametrize("commit", [True, False])
def test_an_end_moves_records_offsets_and_acknowledgements_at_once(world: World, commit: bool) -> None:
    consumers = [Consumer(world, name).begin() for name in ("s", "u")]
    handle = world.handle()
    handle.append(1)
    handle.commit_offsets(7)
    consumers[0].acknowledge((1, 2), (5, 5), inside=handle)
    consumers[1].acknowledge_before(3, inside=handle)
    assert handle.end(commit=commit) == DONE
    found = [[each.state_of(message) for message in (0, 1, 2, 3, 5)] for each in consumers]
    done = ACKED if commit else FREE
    assert found == [[FREE, done, done, FREE, done], [done, done, done, FREE, FREE]]
    assert bool(world.state.groups["g"].offsets) is commit
    assert not any(each.subscription.pending for each in consumers)
    world.check()


def test_messages_of_one_entry_conflict_only_where_they_overlap(world: World, consumer: Consumer) -> None:
    one, other = world.handle(), world.handle()
    assert consumer.acknowledge((2, 4), inside=one) == DONE
    assert consumer.acknowledge((5, 6), (0, 1), inside=other) == DONE
    assert consumer.acknowledge((7, 8), (4, 5), inside=other) == CONFLICT
    assert consumer.state_of(7) == FREE, "one message in the way refuses all"
    assert consumer.acknowledge((7, 8), (8, 9), inside=other) == CONFLICT, "nor may a command name one twice"
    world.check()


def test_a_plain_acknowledgement_takes_a_message_out_of_its_transaction(world: World, consumer: Consumer) -> None:
    handle = world.handle()
    consumer.acknowledge((2, 4), inside=handle)
    assert consumer.acknowledge((3, 3)) == DONE
    assert handle.end(commit=False) == DONE
    assert [consumer.state_of(message) for message in (2, 3, 4)] == [FREE, ACKED, FREE]
    world.check()


def test_the_position_passes_what_is_acknowledged(world: World, consumer: Consumer) -> None:
    for pair in ((1, 1), (3, 5), (2, 2)):
        consumer.acknowledge(pair)
    assert (consumer.subscription.position, consumer.subscription.acknowledged) == (0, [(1, 5)])
    consumer.acknowledge((0, 0))
    assert (consumer.subscription.position, consumer.subscription.acknowledged) == (6, [])
    length = len(world.log)
    assert consumer.acknowledge((2, 4)) == DONE, "a repeat is answered like the first try"
    assert len(world.log) == length, "and leaves nothing in the journal"
    world.check()


def test_only_messages_that_a_consumer_can_have_seen_are_acknowledged(world: World, consumer: Consumer) -> None:
    handle, reader = world.handle(), world.handle()
    handle.append(count=2)
    for inside in (None, reader):
        assert consumer.acknowledge((11, 11), inside=inside) == Rejection.OFFSET_OUT_OF_RANGE
        assert consumer.acknowledge((5, 4), inside=inside) == Rejection.OFFSET_OUT_OF_RANGE
        assert consumer.acknowledge((-1, 4), inside=inside) == Rejection.OFFSET_OUT_OF_RANGE
        assert consumer.acknowledge_before(12, inside=inside) == Rejection.OFFSET_OUT_OF_RANGE
    assert consumer.acknowledge_before(11) == DONE
    world.check()


@pytest.mark.parametrize("commit", [True, False])
def test_what_comes_after_the_end_is_refused_for_ever(world: World, consumer: Consumer, commit: bool) -> None:
    handle = world.handle()
    handle.end(commit=commit)
    assert consumer.acknowledge((1, 1), inside=handle) == Rejection.TRANSACTION_ENDED
    nobody = Handle(world, TransactionId(7_777), handle.producer_id)
    assert consumer.acknowledge((1, 1), inside=nobody) == Rejection.TRANSACTION_NOT_FOUND
    world.check()


def test_a_time_out_gives_messages_back(world: World, consumer: Consumer) -> None:
    handle = world.handle(timeout_ms=100)
    consumer.acknowledge((1, 1), inside=handle)
    world.pass_time(200)
    assert consumer.state_of(1) == FREE
    assert handle.end(commit=True) == Rejection.TRANSACTION_ENDED
    world.check()


def test_a_stop_of_the_machine_keeps_what_was_answered_and_aborts_what_is_open(world: World) -> None:
    consumer = Consumer(world).begin()
    committed, opened = world.handle(), world.handle()
    consumer.acknowledge((1, 1))
    consumer.acknowledge((2, 2), inside=committed)
    committed.end(commit=True)
    consumer.acknowledge((3, 3), inside=opened)
    world.crash(machine_stops=True)
    assert [consumer.state_of(message) for message in range(4)] == [FREE, ACKED, ACKED, FREE]
    assert opened.end(commit=True) != DONE
    world.check()


def test_an_acknowledgement_without_an_answer_may_be_forgotten(world: World, consumer: Consumer) -> None:
    assert consumer.acknowledge((1, 1), soon=True) == DONE
    assert consumer.state_of(1) == ACKED
    world.crash(machine_stops=True)
    assert consumer.state_of(1) == FREE


def test_a_snapshot_holds_all_of_it(world: World, consumer: Consumer) -> None:
    one, other = world.handle(), world.handle()
    consumer.acknowledge((1, 1), (7, 8))
    consumer.acknowledge((3, 3), inside=one)
    Consumer(world, "u").begin().acknowledge_before(5, inside=other)
    again = restore(snapshot(world.state), SMALL)
    assert is_same(again, world.state)
    assert (again.volatile.pending_runs, again.volatile.subscriptions) == (1, 2)
    folded = State(limits=SMALL)
    for event in world.log:
        apply(folded, event)
    assert is_same(folded, again)


def test_runs_of_one_subscription_are_bounded(world: World) -> None:
    consumer = Consumer(world).begin()
    world.state.limits = replace(SMALL, max_acknowledged_runs=2)
    assert consumer.acknowledge((2, 2), (4, 4)) == DONE
    assert consumer.acknowledge((6, 6)) == Rejection.LIMIT_REACHED
    assert consumer.acknowledge((0, 0)) == DONE, "an acknowledgement at the position is always taken"
    assert consumer.acknowledge((1, 1)) == DONE
    assert consumer.acknowledge((6, 6)) == DONE, "there is room again"
    assert consumer.subscription.acknowledged == list(runs((4, 4), (6, 6)))
    world.check()


@pytest.mark.parametrize(
    "limit",
    [
        {"max_acknowledged_runs_per_transaction": 2},
        {"max_pending_runs": 2},
        {"max_pending_transactions_per_subscription": 1},
    ],
)
def test_what_transactions_hold_is_bounded(world: World, consumer: Consumer, limit: dict[str, int]) -> None:
    one, other = world.handle(), world.handle()
    consumer.acknowledge((0, 0), (2, 2), inside=one)
    world.state.limits = replace(SMALL, **limit)
    full = one if "max_acknowledged_runs_per_transaction" in limit else other
    assert consumer.acknowledge((4, 4), inside=full) == Rejection.LIMIT_REACHED
    one.end(commit=False)
    assert consumer.acknowledge((4, 4), inside=other) == DONE
    world.check()
