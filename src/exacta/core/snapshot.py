"""The durable part of the state as bytes: a cached fold of the journal up to some position, nothing more."""

from collections.abc import Iterable
from itertools import starmap

import msgspec
from msgspec import Struct

from exacta.core.apply import apply
from exacta.core.events import ConsumerGroupUpdated, decode_event
from exacta.core.groups.consumer_updates import made_of_nothing, updated
from exacta.core.ids import PartitionId, ProducerId, WriterId
from exacta.core.state.classic_membership import Membership
from exacta.core.state.group import Group
from exacta.core.state.incidents import Incident
from exacta.core.state.limits import Limits
from exacta.core.state.partition import Partition
from exacta.core.state.state import State
from exacta.core.state.topic import Topic
from exacta.core.state.transaction import Transactional
from exacta.core.state.writer import KnownWriter

SNAPSHOT_SCHEMA = 1
"""The first field of a snapshot. It grows with a change that an older version would misread."""


class OtherSchema(msgspec.DecodeError):
    """The snapshot has a schema that this version does not read."""


class _Head(Struct, frozen=True, array_like=True):
    """The beginning of a snapshot of any schema; the rest is ignored."""

    schema: int


class _Snapshot(_Head, frozen=True, array_like=True):
    """A snapshot of the present schema."""

    topics: list[Topic]
    partitions: list[Partition]
    transactionals: list[Transactional]
    groups: list[Group]
    next_producer_id: ProducerId
    next_partition_id: PartitionId
    next_commit_order: int
    incidents: dict[str, list[Incident]] = {}
    reserved_group_epoch: int = 0
    settled: dict[str, Membership] = {}
    settled_consumers: list[ConsumerGroupUpdated] = []
    """What makes each group from nothing."""
    writers: list[KnownWriter] = []
    next_writer_id: WriterId = WriterId(0)


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Snapshot)
_head_decoder = msgspec.msgpack.Decoder(_Head)


def snapshot(state: State) -> bytes:
    """Encode what is durable of the state."""
    return _encoder.encode(
        _Snapshot(
            schema=SNAPSHOT_SCHEMA,
            topics=list(state.topics.values()),
            partitions=list(state.partitions.values()),
            transactionals=list(state.transactionals.values()),
            groups=list(state.groups.values()),
            next_producer_id=state.next_producer_id,
            next_partition_id=state.next_partition_id,
            next_commit_order=state.next_commit_order,
            incidents=state.incidents,
            reserved_group_epoch=state.reserved_group_epoch,
            settled=state.settled,
            settled_consumers=list(starmap(made_of_nothing, state.settled_consumers.items())),
            writers=list(state.writers.values()),
            next_writer_id=state.next_writer_id,
        )
    )


def restore(blob: bytes | None, limits: Limits) -> State:
    """Decode a snapshot, or begin with nothing.

    Raises `msgspec.DecodeError` if the bytes are no snapshot, `OtherSchema` if this version does not read its schema.
    """
    if blob is None:
        return State(limits=limits)
    held = _decoded(blob)
    state = State(
        limits=limits,
        topics={topic.topic: topic for topic in held.topics},
        partitions={partition.partition_id: partition for partition in held.partitions},
        transactionals={entry.transactional_id: entry for entry in held.transactionals},
        groups={group.group_id: group for group in held.groups},
        next_producer_id=held.next_producer_id,
        next_partition_id=held.next_partition_id,
        next_commit_order=held.next_commit_order,
        incidents=held.incidents,
        reserved_group_epoch=held.reserved_group_epoch,
        settled=held.settled,
        settled_consumers={event.group_id: updated(None, event) for event in held.settled_consumers},
        writers={writer.writer_id: writer for writer in held.writers},
        next_writer_id=held.next_writer_id,
    )
    for topic in held.topics:
        state.volatile.topic_names[topic.topic_id] = topic.topic
    for entry in held.transactionals:
        state.volatile.transactional_by_producer[entry.producer_id] = entry
    for writer in held.writers:
        state.volatile.writer_ids[writer.name] = writer.writer_id
    return state


def _decoded(blob: bytes) -> _Snapshot:
    try:
        held = _decoder.decode(blob)
    except msgspec.DecodeError:
        _check_schema(_head_decoder.decode(blob).schema)
        raise
    _check_schema(held.schema)
    return held


def _check_schema(schema: int) -> None:
    if schema != SNAPSHOT_SCHEMA:
        raise OtherSchema(f"the snapshot has schema {schema}; this version reads schema {SNAPSHOT_SCHEMA}")


def is_same(one: State, other: State) -> bool:
    """Compare what is durable, whatever the order in which sets are encoded."""
    return snapshot(one) == snapshot(other) or (
        list(one.topics.items()) == list(other.topics.items())
        and list(one.partitions.items()) == list(other.partitions.items())
        and list(one.transactionals.items()) == list(other.transactionals.items())
        and one.groups == other.groups
        and one.next_producer_id == other.next_producer_id
        and one.next_partition_id == other.next_partition_id
        and one.next_commit_order == other.next_commit_order
        and one.incidents == other.incidents
        and one.reserved_group_epoch == other.reserved_group_epoch
        and one.settled == other.settled
        and one.settled_consumers == other.settled_consumers
        and list(one.writers.items()) == list(other.writers.items())
        and one.next_writer_id == other.next_writer_id
    )


def fold(blob: bytes | None, events: Iterable[bytes]) -> bytes:
    """Return the snapshot that this one (None: there is none) and the encoded events after it come to.

    Raises `msgspec.DecodeError` for what is neither.
    """
    return snapshot(replayed(blob, events, Limits()))


def replayed(blob: bytes | None, events: Iterable[bytes], limits: Limits) -> State:
    """Return the durable state after a snapshot and the encoded events that follow it."""
    state = restore(blob, limits)
    for encoded in events:
        apply(state, decode_event(encoded))
    return state


def after_recovery(state: State, *, may_have_forgotten: bool = True) -> None:
    """Note of whom a crash may have forgotten what was acknowledged (see `transaction.py`), if it may.

    And let groups go on with the members that they had, and with no epoch that one may have had before.
    """
    state.volatile.has_recovered = bool(state.topics or state.groups or state.reserved_group_epoch)
    state.volatile.first_group_epoch = max(state.volatile.first_group_epoch, state.reserved_group_epoch)
    state.volatile.least_group_epoch = state.reserved_group_epoch
    state.volatile.memberships = dict(state.settled)
    state.volatile.consumer_groups = dict(state.settled_consumers)
    if may_have_forgotten:
        state.volatile.may_have_forgotten = set(state.transactionals)
