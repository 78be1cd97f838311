"""Who is idle for too long is forgotten, nobody else; and what happened to whom is kept, within bounds."""

import pytest
from msgspec.structs import replace

from exacta.core.commands import AbortByMarker, AppendBatch, InitProducerId
from exacta.core.ids import Cause, Offset, PartitionId, TransactionVersion
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, Appended, ProducerBoundReply, TransactionEndedReply
from exacta.core.snapshot import restore, snapshot
from exacta.core.state.incidents import IncidentKind
from exacta.core.values.transactions import Phase
from exacta.core.writers import IdempotentWriter
from tests.core.world import SMALL, Producer, World

FORGETFUL = replace(
    SMALL,
    transactional_id_expiration_ms=10_000,
    transactional_id_expiry_interval_ms=1_000,
    producer_id_expiration_ms=5_000,
    producer_id_expiry_interval_ms=500,
    max_expired_at_once=2,
    max_incidents_per_id=3,
    max_ids_with_incidents=2,
)


@pytest.fixture
def world() -> World:
    world = World(FORGETFUL)
    world.topic()
    return world


def transact(producer: Producer, *, commit: bool = True) -> None:
    producer.add()
    assert isinstance(producer.append(), Appended)
    assert isinstance(producer.end(commit=commit), TransactionEndedReply)


def test_an_idle_transactional_id_is_forgotten_and_binds_anew(world: World) -> None:
    idle, busy = world.producer("idle"), world.producer("busy")
    transact(idle)
    for _ in range(12):
        world.pass_time(900)
        transact(busy)
    assert world.state.transactional_ids.keys() == {"busy"}
    for version in TransactionVersion:
        idle.version = version
        assert idle.append() is Rejection.INVALID_PRODUCER_ID_MAPPING
    assert idle.add() is Rejection.INVALID_PRODUCER_ID_MAPPING
    assert isinstance(idle.init_again(), ProducerBoundReply)
    assert idle.producer_id > busy.producer_id, "a new producer id: nobody of before is taken for it"
    transact(idle)
    world.check()


def test_no_transactional_id_is_forgotten_with_its_transaction_open(world: World) -> None:
    prepared = world.producer("prepared", two_phase=True)
    prepared.add()
    prepared.append()
    also_idle = world.producer("also idle")
    world.pass_time(100_000)
    assert world.state.transactional_ids.keys() == {"prepared"}
    kept = world.state.partitions[PartitionId(0)].producers
    assert prepared.producer_id in kept, "its partition keeps its sequences too"
    assert isinstance(prepared.append(), Appended)
    assert isinstance(prepared.end(commit=True), TransactionEndedReply)
    assert also_idle.end(commit=False) is Rejection.INVALID_PRODUCER_ID_MAPPING
    world.pass_time(100_000)
    assert world.state.transactional_ids == {}
    world.check()


def test_many_are_forgotten_in_steps(world: World) -> None:
    for number in range(7):
        transact(world.producer(f"id {number}"))
    world.pass_time(11_000)
    assert world.state.transactional_ids == {}
    assert world.state.partitions[PartitionId(0)].producers == {}
    world.check()


def test_partitions_forget_the_idle_producer_and_take_it_back(world: World) -> None:
    """As with Kafka: an idempotent producer that comes back after a month goes on at its next sequence."""
    idle, busy = world.producer(None), world.producer(None)
    for _ in range(3):
        idle.append()
    for _ in range(10):
        busy.append()
        world.pass_time(600)
    partition = world.state.partitions[PartitionId(0)]
    assert partition.producers.keys() == {busy.producer_id}
    assert isinstance(idle.append(), Appended)
    assert idle.append(sequence=1) is Rejection.OUT_OF_ORDER_SEQUENCE, "and is held to its sequences again"
    world.check()


def test_a_producer_is_idle_by_our_clock_not_by_its_records(world: World) -> None:
    """Kafka goes by the records' timestamps: who sends last year's events is forgotten at once, retries and all."""
    producer = world.producer(None)
    last_year = AppendBatch(
        topic="t",
        partition=0,
        record_count=1,
        size=62,
        max_timestamp_ms=0,
        writer=IdempotentWriter(
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=0,
        ),
    )
    assert world.send(last_year) == Appended(base_offset=Offset(0))
    world.pass_time(4_000)
    assert world.send(last_year) == Appended(base_offset=Offset(0), repeated=True, max_timestamp_ms=0)
    world.pass_time(5_000)
    assert world.state.partitions[PartitionId(0)].producers == {}


def test_what_is_forgotten_stays_forgotten_after_a_crash(world: World) -> None:
    transact(world.producer("x"))
    world.pass_time(20_000)
    world.crash()
    assert world.state.transactional_ids == {}
    assert world.state.partitions[PartitionId(0)].producers == {}
    assert [each.kind for each in world.state.incidents["x"]] == [IncidentKind.FORGOTTEN]
    assert restore(snapshot(world.state), FORGETFUL).incidents == world.state.incidents
    world.check()


def test_after_a_restart_idle_ones_are_looked_for_again(world: World) -> None:
    transact(world.producer("x"))
    world.crash()
    world.pass_time(20_000)
    assert world.state.transactional_ids == {}


# --- why it happened ------------------------------------------------------------------------------------------------


def happened(world: World, transactional_id: str = "x") -> list[tuple[IncidentKind, Cause, int]]:
    return [(each.kind, each.cause, each.producer_epoch) for each in world.state.incidents.get(transactional_id, [])]


def test_a_takeover_names_the_new_instance(world: World) -> None:
    first = world.producer()
    first.add()
    first.append()
    world.send(
        InitProducerId(transactional_id="x", transaction_timeout_ms=1000, client_id="second", client_host="/10.0.0.2")
    )
    assert happened(world) == [
        (IncidentKind.ABORTED, Cause.NEW_INSTANCE, 0),
        (IncidentKind.FENCED, Cause.NEW_INSTANCE, 0),
    ]
    fenced = world.state.incidents["x"][-1]
    assert (fenced.client_id, fenced.client_host, fenced.at_ms) == ("second", "/10.0.0.2", world.now_ms)
    held = world.state.transactional_ids["x"]
    assert (held.client_id, held.client_host) == ("second", "/10.0.0.2")


def test_a_time_out_is_told_from_a_takeover(world: World) -> None:
    world.send(InitProducerId(transactional_id="x", transaction_timeout_ms=1000, client_id="me", client_host="/h"))
    owner = Producer(world, "x", *[getattr(world.state.transactional_ids["x"], each) for each in PAIR])
    owner.add()
    owner.append()
    world.pass_time(1000)
    assert happened(world) == [(IncidentKind.ABORTED, Cause.TIME_OUT, 0), (IncidentKind.FENCED, Cause.TIME_OUT, 0)]
    assert world.state.transactional_ids["x"].client_id == "me", "it is still the owner's"


PAIR = ("producer_id", "producer_epoch")


@pytest.mark.parametrize("version", TransactionVersion)
def test_an_abort_of_the_owner_is_its_own(world: World, version: TransactionVersion) -> None:
    owner = world.producer(version=version)
    owner.add()
    owner.append()
    owner.end(commit=False)
    assert happened(world) == [(IncidentKind.ABORTED, Cause.OWNER, 0)]
    owner.init_again()
    assert happened(world) == [(IncidentKind.ABORTED, Cause.OWNER, 0)], "it fences itself: nobody has lost anything"


def test_what_is_kept_is_bounded(world: World) -> None:
    for name in ("a", "b", "c"):
        for _ in range(5):
            transact(world.producer(name), commit=False)
    assert {name: len(kept) for name, kept in world.state.incidents.items()} == {"b": 3, "c": 3}


# --- an operator's abort marker ---------------------------------------------------------------------------------------


def marker(world: World, producer: Producer, partition: int = 0, topic: str = "t") -> object:
    return world.send(
        AbortByMarker(
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            topic=topic,
            partition=partition,
            client_id="operator",
        )
    )


@pytest.mark.parametrize("version", TransactionVersion)
def test_a_marker_in_one_partition_aborts_the_whole_transaction(world: World, version: TransactionVersion) -> None:
    producer = world.producer(version=version)
    for partition in (0, 1):
        producer.add(partition)
        producer.append(partition)
    producer.add_group()
    producer.commit_offsets(5)
    assert marker(world, producer, 1) == DONE
    for partition_state in world.state.partitions.values():
        assert partition_state.last_stable_offset == 2
        assert len(partition_state.aborted) == 1
    assert world.state.groups["g"].offsets == {}
    assert producer.end(commit=True) is Rejection.PRODUCER_FENCED
    assert happened(world)[-1] == (IncidentKind.FENCED, Cause.MARKER, 0)
    assert world.state.incidents["x"][-1].client_id == "operator"
    assert isinstance(producer.init_again(), ProducerBoundReply), "its owner may go on (KIP-360)"
    world.check()


def test_a_marker_where_nothing_is_open_writes_nothing(world: World) -> None:
    producer = world.producer()
    assert marker(world, producer) == DONE
    transact(producer)
    length = len(world.log)
    assert marker(world, producer) == DONE
    assert marker(world, producer, 1) == DONE
    assert marker(world, producer, 9) is Rejection.UNKNOWN_TOPIC_OR_PARTITION
    assert len(world.log) == length


def test_a_marker_of_an_earlier_epoch_is_late(world: World) -> None:
    late, again = world.producer(), world.producer()
    again.add()
    again.append()
    assert marker(world, late) is Rejection.INVALID_PRODUCER_EPOCH
    assert world.state.transactional_ids["x"].phase is Phase.ONGOING


def test_a_marker_aborts_a_kept_transaction_by_the_pair_of_its_records(world: World) -> None:
    first = world.producer(two_phase=True)
    first.add()
    first.append()
    for _ in range(2 * SMALL.highest_epoch):
        holder = world.producer(two_phase=True, keep_prepared=True)
    assert holder.producer_id != first.producer_id
    assert marker(world, first) == DONE
    assert len(world.state.partitions[PartitionId(0)].aborted) == 1
    assert holder.end(commit=True) is Rejection.PRODUCER_FENCED
    world.check()
