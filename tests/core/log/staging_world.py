"""Worlds with sidecar topics in which little is held, and what the tests of staging say of events."""

from collections.abc import Iterable

from msgspec.structs import replace

from exacta.core.commands import AppendBatch, CreateTopic
from exacta.core.events import BatchAppended, BatchStaged, Event, StagedStreamSpilled, TransactionEnded
from exacta.core.ids import Body
from exacta.core.log.staging import FIRST_PROVISIONAL_OFFSET
from exacta.core.replies import DONE, Appended
from exacta.core.state.partition import Partition
from exacta.core.state.staged import HELD
from exacta.core.values.limits import Limits
from tests.core.world import SMALL, Handle, Producer, World

ONE = 62
"""The bytes of a batch of one record, as `tests.core.world` writes it."""
WIDE = 150
"""This many records in one batch are too much for the state."""
SIDECAR, MARKER = {"transaction.buffer": "sidecar"}, {"transaction.buffer": "marker"}
LIMITS = replace(
    SMALL,
    sequence_modulus=2**31,
    max_held_bytes_per_stream=3 * ONE,
    max_held_batches_per_stream=3,
    max_held_bytes=5 * ONE,
    max_staged_bytes=100 * ONE,
)


def world_with(limits: Limits = LIMITS, **topics: dict[str, str]) -> World:
    """Return a world with topics of two partitions each, of these configurations."""
    world = World(limits)
    for name, configs in topics.items():
        topic_id = name.encode().ljust(16, b"0")
        world.send(CreateTopic(topic=name, topic_id=topic_id, partition_count=2, configs=configs))
    return world


def partition_of(world: World, topic: str = "t", index: int = 0) -> Partition:
    partition = world.state.partition(topic, index)
    assert partition is not None
    return partition


def told(place: int, *, repeated: bool = False, timestamp_ms: int = -1) -> Appended:
    base_offset = FIRST_PROVISIONAL_OFFSET + place
    return Appended(base_offset=base_offset, repeated=repeated, max_timestamp_ms=timestamp_ms)  # type: ignore[arg-type]


def since(world: World, length: int) -> list[Event]:
    return [each for each in world.log[length:] if isinstance(each, _OF_STAGING)]


_OF_STAGING = (BatchAppended, BatchStaged, StagedStreamSpilled, TransactionEnded)


def words(events: Iterable[Event]) -> list[str]:
    """Say what happens to a staged stream."""
    found: list[str] = []
    for event in events:
        if isinstance(event, StagedStreamSpilled):
            found.append("spill")
        elif isinstance(event, BatchStaged):
            found.append("stage, held" if event.is_held else "stage, spilled")
        elif isinstance(event, TransactionEnded):
            assert event.markers == ()
            found.append("enter" if event.entries else "nothing enters")
        elif isinstance(event, BatchAppended):
            found.append("append")
    return found


def append_as(
    handle: Handle, *, partition: int = 0, count: int = 1, body: Body = Body.KAFKA, takes_append_time: bool = False
) -> object:
    return handle.world.send(
        AppendBatch(
            topic="t",
            partition=partition,
            record_count=count,
            size=61 + count,
            max_timestamp_ms=handle.world.now_ms,
            body=body,
            takes_append_time=takes_append_time,
            transaction=handle.transaction_id,
            handle_producer_id=handle.producer_id,
        )
    )


def staged_as(world: World, state: str) -> Producer:
    """Return a producer whose stream in partition 0 of `t` is in this state."""
    producer = world.producer()
    assert producer.add() == DONE
    if state == "held":
        assert isinstance(producer.append(), Appended)
    if state == "spilled":
        assert isinstance(producer.append(count=WIDE), Appended)
    stream = partition_of(world).staged.get(producer.producer_id)
    assert ("none" if stream is None else "held" if stream.stream == HELD else "spilled") == state
    return producer
