"""The durable part of the state as bytes: a cached fold of the journal up to some position, nothing more."""

from collections.abc import Iterable
from itertools import starmap

import msgspec
from msgspec import Struct

from exacta.core.apply import apply
from exacta.core.event_codec import decode_event
from exacta.core.events import ConsumerGroupUpdated
from exacta.core.groups.consumer_updates import made_of_nothing, updated
from exacta.core.ids import PartitionId, ProducerId, TransactionId, WriterId
from exacta.core.state.classic_membership import Membership
from exacta.core.state.group import Group
from exacta.core.state.incidents import Incident
from exacta.core.state.partition import Partition
from exacta.core.state.staged import HELD
from exacta.core.state.state import State
from exacta.core.state.topic import Topic
from exacta.core.state.transaction import EndedHandle, Transaction, TransactionalId
from exacta.core.state.weights import weigh
from exacta.core.state.writer import KnownWriter
from exacta.core.values.acl import Acl
from exacta.core.values.leader_epochs import FIRST_EPOCH
from exacta.core.values.limits import Limits
from exacta.core.values.quotas import QuotaEntity, QuotaKey
from exacta.core.values.scram import ScramKey
from exacta.core.values.secret import decode_secret, encode_secret

SNAPSHOT_SCHEMA = 3
"""The first field of a snapshot. It grows with a change that an older version would misread."""
READ_SCHEMAS = (2, SNAPSHOT_SCHEMA)
"""The schemas that this version reads. A snapshot of an older one has fewer fields, and the others have defaults."""


class OtherSchema(msgspec.DecodeError):
    """The snapshot has a schema that this version does not read."""


class _Head(Struct, frozen=True, array_like=True):
    """The beginning of a snapshot of any schema; the rest is ignored."""

    schema: int


class _Snapshot(_Head, frozen=True, array_like=True):
    """A snapshot of a schema that this version reads; fields are added at the end, with a default."""

    topics: list[Topic]
    partitions: list[Partition]
    transactional_ids: list[TransactionalId]
    transactions: list[Transaction]
    ended_handles: list[EndedHandle]
    groups: list[Group]
    reserved_producer_id: ProducerId
    reserved_transaction_id: TransactionId
    next_partition_id: PartitionId
    next_commit_order: int
    incidents: dict[str, list[Incident]] = {}
    reserved_group_epoch: int = 0
    settled: dict[str, Membership] = {}
    settled_consumers: list[ConsumerGroupUpdated] = []
    """The events that make each group from nothing."""
    writers: list[KnownWriter] = []
    next_writer_id: WriterId = WriterId(0)
    broker_configs: dict[str, dict[str, str]] = {}
    commit_number: int = 0
    leader_epoch: int = FIRST_EPOCH
    acls: list[Acl] = []
    scram_keys: dict[str, tuple[ScramKey, ...]] = {}
    client_quotas: list[tuple[QuotaEntity, dict[QuotaKey, float]]] = []


_encoder = msgspec.msgpack.Encoder(enc_hook=encode_secret)
_decoder = msgspec.msgpack.Decoder(_Snapshot, dec_hook=decode_secret)
_head_decoder = msgspec.msgpack.Decoder(_Head)


def snapshot(state: State) -> bytes:
    """Encode what is durable of the state."""
    held = _Snapshot(
        schema=SNAPSHOT_SCHEMA,
        topics=list(state.topics.values()),
        partitions=list(state.partitions.values()),
        transactional_ids=list(state.transactional_ids.values()),
        transactions=list(state.transactions.values()),
        ended_handles=list(state.ended_handles.values()),
        groups=list(state.groups.values()),
        reserved_producer_id=state.reserved_producer_id,
        reserved_transaction_id=state.reserved_transaction_id,
        next_partition_id=state.next_partition_id,
        next_commit_order=state.next_commit_order,
        incidents=state.incidents,
        reserved_group_epoch=state.reserved_group_epoch,
        settled=state.settled,
        settled_consumers=list(starmap(made_of_nothing, state.settled_consumers.items())),
        writers=list(state.writers.values()),
        next_writer_id=state.next_writer_id,
        broker_configs=state.broker_configs,
        commit_number=state.commit_number,
        leader_epoch=state.leader_epoch,
        acls=list(state.acls),
        scram_keys=state.scram_keys,
        client_quotas=list(state.client_quotas.items()),
    )
    return _encoder.encode(held)


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
        transactional_ids={entry.transactional_id: entry for entry in held.transactional_ids},
        transactions={entry.transaction_id: entry for entry in held.transactions},
        ended_handles={entry.transaction_id: entry for entry in held.ended_handles},
        groups={group.group_id: group for group in held.groups},
        reserved_producer_id=held.reserved_producer_id,
        reserved_transaction_id=held.reserved_transaction_id,
        next_partition_id=held.next_partition_id,
        next_commit_order=held.next_commit_order,
        incidents=held.incidents,
        reserved_group_epoch=held.reserved_group_epoch,
        settled=held.settled,
        settled_consumers={event.group_id: updated(None, event) for event in held.settled_consumers},
        writers={writer.writer_id: writer for writer in held.writers},
        next_writer_id=held.next_writer_id,
        broker_configs=held.broker_configs,
        commit_number=held.commit_number,
        leader_epoch=held.leader_epoch,
        acls=dict.fromkeys(held.acls),
        scram_keys=held.scram_keys,
        client_quotas=dict(held.client_quotas),
    )
    _rebuild_indexes(state)
    return state


def _rebuild_indexes(state: State) -> None:
    volatile = state.volatile
    for topic in state.topics.values():
        volatile.topic_names[topic.topic_id] = topic.topic
    for writer in state.writers.values():
        volatile.writer_ids[writer.name] = writer.writer_id
    for acl in state.acls:
        volatile.acl_index.add(acl)
    for holder in state.transactional_ids.values():
        volatile.holder_by_producer[holder.producer_id] = holder
    for transaction in state.transactions.values():
        volatile.transaction_by_producer.update(dict.fromkeys(transaction.producer_ids, transaction))
        volatile.open_handles += transaction.is_known_by_id
        volatile.handle_participants += transaction.participants if transaction.is_known_by_id else 0
        volatile.pending_runs += transaction.acknowledged_runs
    volatile.subscriptions = sum(len(partition.subscriptions) for partition in state.partitions.values())
    for partition in state.partitions.values():
        for stream in partition.staged.values():
            volatile.staged_bytes += stream.size
            volatile.held_bytes += 0 if stream.stream != HELD else stream.size
            volatile.held_batches += len(stream.held)
    volatile.nameless_writers = sum(partition.nameless_writers for partition in state.partitions.values())
    volatile.usage = weigh(state)


def _decoded(blob: bytes) -> _Snapshot:
    try:
        held = _decoder.decode(blob)
    except msgspec.DecodeError:
        _check_schema(_head_decoder.decode(blob).schema)
        raise
    _check_schema(held.schema)
    return held


def _check_schema(schema: int) -> None:
    if schema not in READ_SCHEMAS:
        read = " and ".join(map(str, READ_SCHEMAS))
        raise OtherSchema(f"the snapshot has schema {schema}; this version reads schema {read}")


_NOT_DURABLE = frozenset({"limits", "volatile"})
"""The fields of the state that no event and no snapshot holds."""


def is_same(one: State, other: State) -> bool:
    """Compare what is durable, with the order of all that has one, whatever the order in which sets are encoded."""
    durable = [name for name in State.__struct_fields__ if name not in _NOT_DURABLE]
    return all(_in_order(getattr(one, name)) == _in_order(getattr(other, name)) for name in durable)


def _in_order(value: object) -> object:
    return list(value.items()) if isinstance(value, dict) else value


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
    """Let a recovered state go on: groups with the members that they had, and no number given out a second time.

    `may_have_forgotten`: a crash may have forgotten what was acknowledged to transactional ids (see `transaction.py`).
    """
    volatile = state.volatile
    volatile.has_recovered = bool(state.topics or state.groups or state.reserved_group_epoch)
    volatile.first_group_epoch = max(volatile.first_group_epoch, state.reserved_group_epoch)
    volatile.least_group_epoch = state.reserved_group_epoch
    volatile.next_producer_id = state.reserved_producer_id
    volatile.next_transaction_id = state.reserved_transaction_id
    volatile.streams_let_go = []
    volatile.memberships = dict(state.settled)
    volatile.consumer_groups = dict(state.settled_consumers)
    volatile.usage = weigh(state)
    handles = (each for each in state.transactions.values() if each.owner is None and not each.participants)
    volatile.abandoned = {each.transaction_id: None for each in handles}
    if may_have_forgotten:
        volatile.may_have_forgotten = set(state.transactional_ids)
