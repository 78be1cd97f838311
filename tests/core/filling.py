"""How a client fills each table of the state: one entry after another, by the commands that the fronts send."""

from collections.abc import Callable

from msgspec.structs import replace

from exacta.core.commands import (
    AlterClientQuotas,
    AlterScramKeys,
    AppendBatch,
    BeginTransaction,
    CommitOffsets,
    Connect,
    CreateAcls,
    CreateTopic,
    InitProducerId,
    JoinGroup,
    OffsetToCommit,
    SetTopicConfigs,
    Subscribe,
)
from exacta.core.ids import ConsumerId, Ticket
from exacta.core.values.acl import Pattern
from exacta.core.values.quotas import EntityType, QuotaAlteration, QuotaEntity, QuotaKey
from exacta.core.values.subscriptions import SubscriptionType
from exacta.core.values.transaction_buffer import SIDECAR, TRANSACTION_BUFFER
from exacta.core.values.usage import Table
from tests.core.access.values import acl, alteration
from tests.core.world import World, named_writer

MEMBER = JoinGroup(
    ticket=Ticket(0),
    group_id="",
    member_id="",
    new_member_id="m",
    client_id="c",
    client_host="/10.0.0.1",
    session_timeout_ms=10_000,
    rebalance_timeout_ms=10_000,
    protocol_type="consumer",
    protocols=(("range", b"\x00" * 100),),
    knows_member_id_required=False,
)
APPEND = AppendBatch(topic="t", partition=0, record_count=1, size=70, max_timestamp_ms=0)
SUBSCRIBE = Subscribe(topic="t", partition=0, subscription="", subscription_type=SubscriptionType.SHARED)


def _topic(world: World, number: int) -> object:
    return world.send(CreateTopic(topic=f"x{number}", topic_id=number.to_bytes(16), partition_count=1))


def _member(world: World, number: int) -> object:
    return world.send(replace(MEMBER, ticket=Ticket(number), group_id=f"g{number}"))


def _offset(world: World, number: int) -> object:
    offset = OffsetToCommit(topic="t", partition=0, offset=0, metadata="m" * 50)
    return world.send(CommitOffsets(group_id=f"g{number}", offsets=(offset,)))


def _transactional_id(world: World, number: int) -> object:
    return world.send(InitProducerId(transactional_id=f"x{number}", transaction_timeout_ms=1000))


def _transaction(world: World, number: int) -> object:
    return world.producer(f"x{number}").add()


def _handle(world: World, number: int) -> object:
    return world.send(BeginTransaction(timeout_ms=1000))


def _producer(world: World, number: int) -> object:
    return world.producer(None).append()


def _aborted(world: World, number: int) -> object:
    handle = world.handle()
    answer = handle.append()
    handle.end(commit=False)
    return answer


def _staged(world: World, number: int) -> object:
    if not number:
        world.send(SetTopicConfigs(topic="t", configs={TRANSACTION_BUFFER: SIDECAR}))
    return world.handle().append()


def _writer(world: World, number: int) -> object:
    return world.send(replace(APPEND, writer=named_writer(f"w{number}", 0)))


def _subscription(world: World, number: int) -> object:
    return world.send(replace(SUBSCRIBE, subscription=f"s{number}"))


def _consumer(world: World, number: int) -> object:
    world.send(replace(SUBSCRIBE, subscription=f"s{number}"))
    return world.send(
        Connect(
            topic="t",
            partition=0,
            subscription=f"s{number}",
            consumer_id=ConsumerId(number),
            subscription_type=SubscriptionType.SHARED,
            name="consumer",
        )
    )


def _acl(world: World, number: int) -> object:
    return world.send(CreateAcls(acls=(acl(name=f"x{number}", pattern=Pattern.PREFIXED),)))


def _user(world: World, number: int) -> object:
    return world.send(AlterScramKeys(alterations=(alteration(f"x{number}"),)))


def _quota(world: World, number: int) -> object:
    entity = QuotaEntity(((EntityType.USER, f"x{number}"),))
    alteration = QuotaAlteration(entity, {QuotaKey.PRODUCER_BYTE_RATE: 1.0})
    return world.send(AlterClientQuotas(alterations=(alteration,)))


FILLS: dict[Table, Callable[[World, int], object]] = {
    Table.TOPICS: _topic,
    Table.MEMBERS: _member,
    Table.OFFSETS: _offset,
    Table.TRANSACTIONAL_IDS: _transactional_id,
    Table.TRANSACTIONS: _transaction,
    Table.HANDLES: _handle,
    Table.PRODUCERS: _producer,
    Table.ABORTED: _aborted,
    Table.STAGED: _staged,
    Table.WRITERS: _writer,
    Table.SUBSCRIPTIONS: _subscription,
    Table.DELIVERIES: _consumer,
    Table.ACLS: _acl,
    Table.USERS: _user,
    Table.QUOTAS: _quota,
}
"""A function that makes the entry of a number, and returns the answer."""
