"""OffsetFetch tells the positions of groups. Version 8 asks for several groups, version 10 names topics by ids."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from exacta.core.groups.reading import NO_POSITIONS, GroupOffset, Positions
from exacta.core.queries.group_offsets import AskedOffsets, FoundOffsets, offsets_of_groups
from exacta.core.rejections import Rejection
from exacta.front.broker import Broker
from exacta.front.turns import STEP_ELEMENTS, Steps
from exacta.kafka.access import allows, describable_topics
from exacta.kafka.at_follower import NOT_COORDINATOR
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Each, Inside, Whole, group_id
from exacta.kafka.pieces import run
from exacta.kafka.request_size import first_time
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

GROUP_ERRORS_SINCE = 2
"""The first version that has room for an error of the group as a whole."""
SEVERAL_GROUPS_SINCE = 8
TOPIC_IDS_SINCE = 10
NO_OFFSET = -1
STORED_OFFSET = -1000
"""The offset beside UNSTABLE_OFFSET_COMMIT. librdkafka takes it for "where the group is" (RD_KAFKA_OFFSET_STORED), and
so asks again.

This deviates from Apache Kafka, which has -1 there (decision 0021).
"""


def handle(broker: Broker, request: OffsetFetchRequest, context: RequestContext, reply: Reply) -> None:
    """Look the positions of all groups up in one state; read the request before that and tell them afterwards."""
    groups: list[_AskedGroup] = []

    def found(offsets: list[FoundOffsets | Rejection]) -> None:
        for group, each in zip(groups, offsets, strict=True):
            _take(context, group, each)
        count = sum(max(len(each.wanted), len(each.positions.committed)) for each in groups)
        context.is_long = context.is_long or count + len(groups) > STEP_ELEMENTS
        run(context, _answer(broker, context, groups, reply))

    def steps() -> Steps:
        yield from _read(broker, context, request, groups)
        broker.read(context, partial(offsets_of_groups, asked=[_question(each) for each in groups]), found)

    run(context, steps())


class _AskedGroup(Struct):
    """A group that is asked about, and what is found."""

    group_id: str
    member_id: str | None = None
    member_epoch: int = -1
    require_stable: bool = False
    wanted: dict[str, list[int]] = {}
    """The topics and their partitions, if the group's offsets are not all asked for."""
    wants_all: bool = False
    unread: list[Any] = []
    """The answers about topics that are not looked up."""
    topic_ids: dict[str, bytes] | None = None
    """The ids of topics by their names, where they are answered."""
    positions: Positions = NO_POSITIONS
    error_code: int = ErrorCode.NONE


def _read(broker: Broker, context: RequestContext, request: OffsetFetchRequest, groups: list[_AskedGroup]) -> Steps:
    """Read the request: which groups are looked up, and which topics of them. Nothing is told twice."""
    is_first = first_time()
    if context.version < SEVERAL_GROUPS_SINCE:
        asked = _AskedGroup(request.group_id, require_stable=request.require_stable, wants_all=request.topics is None)
        groups.append(asked)
        yield from _read_topics(broker, context, asked, request.topics, is_first)
        return
    by_id = context.version >= TOPIC_IDS_SINCE
    for group in request.groups:
        wants_all = group.topics is None
        if wants_all and not is_first(group.group_id):
            continue
        asked = _AskedGroup(
            group.group_id, group.member_id, group.member_epoch, request.require_stable, wants_all=wants_all
        )
        asked.topic_ids = {} if by_id else None
        groups.append(asked)
        yield from _read_topics(broker, context, asked, group.topics, is_first)


def _read_topics(
    broker: Broker,
    context: RequestContext,
    asked: _AskedGroup,
    topics: Sequence[Any] | None,
    is_first: Callable[[Hashable], bool],
) -> Steps:
    asked.wanted, asked.unread = {}, []
    for topic in topics or ():
        name = topic.name if asked.topic_ids is None else broker.engine.advice.topic_name(topic.topic_id)
        if name is None:
            asked.unread.append(_untold(context, topic, ErrorCode.UNKNOWN_TOPIC_ID))
        elif not allows(broker, context, Operation.DESCRIBE, ResourceKind.TOPIC, name):
            asked.unread.append(_untold(context, topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        else:
            if asked.topic_ids is not None:
                asked.topic_ids[name] = topic.topic_id
            indexes = [index for index in topic.partition_indexes if is_first((asked.group_id, name, index))]
            asked.wanted.setdefault(name, []).extend(indexes)
        yield None
    yield None


def _question(asked: _AskedGroup) -> AskedOffsets:
    return AskedOffsets(
        group_id=asked.group_id,
        member_id=asked.member_id,
        member_epoch=asked.member_epoch,
        topics=None if asked.wants_all else asked.wanted.keys(),
        require_stable=asked.require_stable,
    )


def _take(context: RequestContext, asked: _AskedGroup, found: FoundOffsets | Rejection) -> None:
    if isinstance(found, Rejection):
        asked.error_code = context.error_code(found)
        return
    asked.positions = found.positions
    if asked.wants_all and asked.topic_ids is not None:
        asked.topic_ids = dict(found.topic_ids)


def _answer(broker: Broker, context: RequestContext, groups: list[_AskedGroup], reply: Reply) -> Steps:
    several = context.version >= SEVERAL_GROUPS_SINCE
    topic_class: type[Any] = OffsetFetchResponseTopics if several else OffsetFetchResponseTopic
    partition_class: type[Any] = OffsetFetchResponsePartitions if several else OffsetFetchResponsePartition
    told: list[OffsetFetchResponseGroup] = []
    topics: list[Any] = []
    for group in groups:
        topics = []
        found = group.positions
        wanted: Iterable[tuple[str, list[int]]] = group.wanted.items()
        if group.wants_all and found is not NO_POSITIONS:
            names = describable_topics(broker, context, found.topics())
            wanted = ((name, found.partitions(name)) for name in names)
        elif group.error_code:
            wanted = ()
        for name, indexes in wanted:
            if not indexes:
                continue
            topic = topic_class(name=name, partitions=[])
            if group.topic_ids is not None:
                topic.topic_id = group.topic_ids[name]
            topics.append(topic)
            for begin in range(0, len(indexes), STEP_ELEMENTS):
                part = found.told(name, indexes[begin : begin + STEP_ELEMENTS])
                topic.partitions += [partition_class(**_told(each)) for each in part]
                yield None
        topics += () if group.error_code else group.unread
        told.append(OffsetFetchResponseGroup(group_id=group.group_id, topics=topics, error_code=group.error_code))
        yield None
    reply(OffsetFetchResponse(groups=told) if several else OffsetFetchResponse(topics=topics))


def _untold(context: RequestContext, topic: Any, code: ErrorCode) -> Any:
    return (_unread_topic if context.version >= SEVERAL_GROUPS_SINCE else _refused_topic)(topic, code)


def _unread_topic(topic: OffsetFetchRequestTopics, code: ErrorCode) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetFetchResponsePartitions(
                partition_index=index, committed_offset=NO_OFFSET, metadata="", error_code=code
            )
            for index in topic.partition_indexes
        ],
    )


def _refused_topic(topic: OffsetFetchRequestTopic, code: ErrorCode) -> OffsetFetchResponseTopic:
    return OffsetFetchResponseTopic(
        name=topic.name,
        partitions=[
            OffsetFetchResponsePartition(
                partition_index=index, committed_offset=NO_OFFSET, metadata="", error_code=code
            )
            for index in topic.partition_indexes
        ],
    )


def _told(offset: GroupOffset) -> dict[str, Any]:
    """Return the fields of a partition's answer, which have the same names in both forms of it."""
    if offset.unstable:  # KIP-447: the reader must ask again until the transaction has ended
        return {
            "partition_index": offset.partition,
            "committed_offset": STORED_OFFSET,
            "metadata": "",
            "error_code": ErrorCode.UNSTABLE_OFFSET_COMMIT,
        }
    return {
        "partition_index": offset.partition,
        "committed_offset": NO_OFFSET if offset.offset is None else offset.offset,
        "committed_leader_epoch": offset.leader_epoch,
        "metadata": offset.metadata,
    }


HANDLER = Handler(
    ApiKey.OFFSET_FETCH,
    versions=(1, 10),
    needs=(
        Whole(Operation.DESCRIBE, ResourceKind.GROUP, group_id, until=SEVERAL_GROUPS_SINCE - 1),
        Each(Operation.DESCRIBE, ResourceKind.GROUP, "groups", "groups", name="group_id", since=SEVERAL_GROUPS_SINCE),
        Inside(Operation.DESCRIBE, ResourceKind.TOPIC),
    ),
    at_follower=NOT_COORDINATOR,
    handle=handle,
    refusal={"committed_offset": NO_OFFSET, "metadata": ""},
)
