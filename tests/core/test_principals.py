"""Durable things know the principal of the client that began them (decision 0059)."""

import msgspec
import pytest

from exacta.core.commands import AppendBatch, BeginTransaction, EndHandle, InitProducerId, Subscribe
from exacta.core.event_codec import decode_event, encode_event
from exacta.core.events import ProducerBound, TransactionBegun
from exacta.core.ids import NO_PRINCIPAL, Cause, PartitionId, PrincipalName
from exacta.core.replies import ProducerBoundReply, TransactionBegunReply
from exacta.core.snapshot import restore, snapshot
from exacta.core.transactions.binding import fenced
from exacta.core.values.subscriptions import SubscriptionType
from exacta.core.writers import NamedWriter
from exacta.ports.authorizer import ANONYMOUS, Principal
from simulation.invariants.principals import principals_are_those_that_began
from tests.core.groups.classic.members import Group
from tests.core.groups.consumer.members import Consumer, settle
from tests.core.world import SMALL, World

ALICE = PrincipalName("User:alice")


def begin_all(world: World) -> None:
    world.topic()
    bound = world.send(InitProducerId(transactional_id="x", transaction_timeout_ms=60_000, principal=ALICE))
    assert isinstance(bound, ProducerBoundReply)
    begun = world.send(BeginTransaction(timeout_ms=60_000, principal=ALICE))
    assert isinstance(begun, TransactionBegunReply)
    writer = NamedWriter(name="n", first_sequence=0, last_sequence=0, principal=ALICE)
    world.send(AppendBatch(topic="t", partition=0, record_count=1, size=62, max_timestamp_ms=0, writer=writer))
    world.send(
        Subscribe(topic="t", partition=0, subscription="s", subscription_type=SubscriptionType.SHARED, principal=ALICE)
    )


def principals(world: World) -> set[str]:
    state = world.state
    partition = state.partitions[PartitionId(0)]
    found = (state.transactional_ids, state.transactions, state.writers, partition.subscriptions)
    return {each.principal for table in found for each in table.values()}


def test_they_are_those_of_the_clients_that_asked(world: World) -> None:
    begin_all(world)
    world.check()
    assert principals(world) == {ALICE}


def test_a_restart_keeps_them(world: World) -> None:
    begin_all(world)
    world.state = restore(snapshot(world.state), SMALL)
    assert principals(world) == {ALICE}
    world.crash()
    assert principals(world) == {ALICE}


def test_a_transaction_of_a_transactional_id_is_of_the_principal_of_its_holder(world: World) -> None:
    world.topic()
    world.send(InitProducerId(transactional_id="x", transaction_timeout_ms=60_000, principal=ALICE))
    producer = world.producer("x")
    assert world.state.transactional_ids["x"].principal == NO_PRINCIPAL, "the next one has initialised it"
    producer.add()
    (begun,) = (each for each in world.log if isinstance(each, TransactionBegun))
    assert begun.principal == NO_PRINCIPAL


def test_a_fence_takes_nothing_away(world: World) -> None:
    begin_all(world)
    held = world.state.transactional_ids["x"]
    (fence,) = fenced(world.state, held, cause=Cause.LOSS, now_ms=world.now_ms)
    assert isinstance(fence, ProducerBound)
    assert fence.principal == NO_PRINCIPAL
    world.crash(machine_stops=True)
    assert world.state.transactional_ids["x"].principal == ALICE
    world.check()


def test_members_of_groups_keep_theirs() -> None:
    group = Group()
    group.stable("a", "b")
    consumer = Consumer(group.world, "c", "t", group_id="h")
    consumer.join()
    settle(consumer)
    state = restore(snapshot(group.world.state), SMALL)
    classic, consumers = state.settled["g"].members, state.settled_consumers["h"].members
    assert {name: member.principal for name, member in classic.items()} == {"a": "User:a", "b": "User:b"}
    assert consumers["c"].principal == "User:c"
    group.world.check()


@pytest.mark.parametrize(
    ("principal", "name"), [(ANONYMOUS, ""), (Principal(), ""), (Principal(name="alice"), "User:alice")]
)
def test_a_client_that_has_not_logged_in_takes_no_room(principal: Principal, name: str) -> None:
    assert principal.durable_name == name


def test_an_event_of_before_is_of_nobody() -> None:
    world = World()
    world.topic()
    world.send(BeginTransaction(timeout_ms=60_000, principal=ALICE))
    (begun,) = (each for each in world.log if isinstance(each, TransactionBegun))
    fields = msgspec.msgpack.decode(encode_event(begun))
    before = decode_event(msgspec.msgpack.encode(fields[:-1]))
    assert isinstance(before, TransactionBegun)
    assert before.principal == NO_PRINCIPAL


@pytest.mark.parametrize("kind", ["transactional_ids", "transactions", "writers", "subscriptions"])
def test_the_invariant_sees_another_principal(world: World, kind: str) -> None:
    begin_all(world)
    partition = world.state.partitions[PartitionId(0)]
    table = partition.subscriptions if kind == "subscriptions" else getattr(world.state, kind)
    next(iter(table.values())).principal = "User:mallory"
    (found,) = principals_are_those_that_began(world.state, world.log)
    assert "User:mallory" in found


def test_an_end_by_another_changes_none(world: World) -> None:
    begin_all(world)
    (transaction,) = world.state.transactions.values()
    world.send(EndHandle(transaction_id=transaction.transaction_id, commit=False))
    world.check()
