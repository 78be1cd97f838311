"""OffsetFetch tells the positions of groups. Version 8 asks for several groups, version 10 names topics by ids."""

from collections.abc import Callable, Hashable
from itertools import groupby
from operator import attrgetter
from typing import Any

from msgspec import Struct

from exacta.core.groups.committing import check_reader
from exacta.core.groups.reading import GroupOffset, fetch_offsets
from exacta.core.state.state import State
from exacta.front.broker import Broker
from exacta.front.turns import STEP_ELEMENTS, Steps
from exacta.kafka.access import allows, describable_topics
from exacta.kafka.context import RequestContext
from exacta.kafka.errors import error_code
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Each, Inside, Whole, group_id
from exacta.kafka.request_size import first_time
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

KEY = ApiKey.OFFSET_FETCH
MIN_VERSION = 1
MAX_VERSION = 10
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

NEEDS = (
    Whole(Operation.DESCRIBE, ResourceKind.GROUP, group_id, until=SEVERAL_GROUPS_SINCE - 1),
    Each(Operation.DESCRIBE, ResourceKind.GROUP, "groups", "groups", name="group_id", since=SEVERAL_GROUPS_SINCE),
    Inside(Operation.DESCRIBE, ResourceKind.TOPIC),
)


def handle(broker: Broker, request: OffsetFetchRequest, context: RequestContext, reply: Reply) -> None:
    """Look all groups up in one state, and make the answer of it in steps."""

    def view(state: State, now_ms: int) -> list[_Found]:
        is_first = first_time()
        if context.version < SEVERAL_GROUPS_SINCE:
            return [_one_group(broker, context, state, request, is_first)]
        return [
            _group(broker, context, state, group, is_first, require_stable=request.require_stable)
            for group in request.groups
            if group.topics is not None or is_first(group.group_id)
        ]

    def found(groups: list[_Found]) -> None:
        context.is_long = len(groups) + sum(len(each.offsets) for each in groups) > STEP_ELEMENTS
        context.in_steps(_answer(groups, context, reply))

    broker.read(context, view, found)


class _Found(Struct):
    """The offsets of a group, and the answers about topics that were not looked up."""

    group_id: str
    offsets: list[GroupOffset] = []
    unread: list[Any] = []
    topic_ids: dict[str, bytes] | None = None
    error_code: int = ErrorCode.NONE


def _answer(found: list[_Found], context: RequestContext, reply: Reply) -> Steps:
    several = context.version >= SEVERAL_GROUPS_SINCE
    topic_class: type[Any] = OffsetFetchResponseTopics if several else OffsetFetchResponseTopic
    partition_class: type[Any] = OffsetFetchResponsePartitions if several else OffsetFetchResponsePartition
    groups: list[OffsetFetchResponseGroup] = []
    for group in found:
        topics: list[Any] = []
        for name, of_topic in groupby(group.offsets, key=attrgetter("topic")):
            topic = topic_class(name=name, partitions=[partition_class(**_told(each)) for each in of_topic])
            if group.topic_ids is not None:
                topic.topic_id = group.topic_ids[name]
            topics.append(topic)
            yield None
        topics += group.unread
        groups.append(OffsetFetchResponseGroup(group_id=group.group_id, topics=topics, error_code=group.error_code))
        yield None
    reply(OffsetFetchResponse(groups=groups) if several else OffsetFetchResponse(topics=topics))


def _one_group(
    broker: Broker,
    context: RequestContext,
    state: State,
    request: OffsetFetchRequest,
    is_first: Callable[[Hashable], bool],
) -> _Found:
    wanted, unseen = None, []
    if request.topics is not None:
        wanted = []
        for topic in request.topics:
            if allows(broker, context, Operation.DESCRIBE, ResourceKind.TOPIC, topic.name):
                indexes = [index for index in topic.partition_indexes if is_first((topic.name, index))]
                wanted.append((topic.name, indexes))
            else:
                unseen.append(_refused_topic(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    offsets = fetch_offsets(state, request.group_id, wanted, require_stable=request.require_stable)
    return _Found(request.group_id, _describable(broker, context, offsets), unseen)


def _group(
    broker: Broker,
    context: RequestContext,
    state: State,
    asked: OffsetFetchRequestGroup,
    is_first: Callable[[Hashable], bool],
    *,
    require_stable: bool,
) -> _Found:
    rejection = check_reader(state, asked.group_id, asked.member_id, asked.member_epoch)
    if rejection is not None:
        return _Found(asked.group_id, error_code=error_code(rejection, KEY, context.version))
    by_id = context.version >= TOPIC_IDS_SINCE
    wanted, unread = None, []
    if asked.topics is not None:
        wanted = []
        for topic in asked.topics:
            name = state.volatile.topic_names.get(topic.topic_id) if by_id else topic.name
            if name is None:
                unread.append(_unread_topic(topic, ErrorCode.UNKNOWN_TOPIC_ID))
            elif not allows(broker, context, Operation.DESCRIBE, ResourceKind.TOPIC, name):
                unread.append(_unread_topic(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            else:
                indexes = [index for index in topic.partition_indexes if is_first((asked.group_id, name, index))]
                wanted.append((name, indexes))
    offsets = _describable(broker, context, fetch_offsets(state, asked.group_id, wanted, require_stable=require_stable))
    ids = {each.topic: state.topics[each.topic].topic_id for each in offsets} if by_id else None
    return _Found(asked.group_id, offsets, unread, ids)


def _describable(broker: Broker, context: RequestContext, offsets: list[GroupOffset]) -> list[GroupOffset]:
    """Leave out the topics that the client may not see, of a group whose topics it has not named."""
    if broker.authorizer.allows_all:
        return offsets
    seen = frozenset(describable_topics(broker, context, {each.topic for each in offsets}))
    return [each for each in offsets if each.topic in seen]


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


def refused(request: OffsetFetchRequest, code: ErrorCode, version: int) -> OffsetFetchResponse:
    """Refuse every group of a request; version 1 can say it only of each partition."""
    if version >= SEVERAL_GROUPS_SINCE:
        return OffsetFetchResponse(
            groups=[OffsetFetchResponseGroup(group_id=group.group_id, error_code=code) for group in request.groups]
        )
    if version >= GROUP_ERRORS_SINCE:
        return OffsetFetchResponse(error_code=code)
    return OffsetFetchResponse(topics=[_refused_topic(topic, code) for topic in request.topics or ()])


HANDLER = Handler(
    key=KEY,
    min_version=MIN_VERSION,
    max_version=MAX_VERSION,
    needs=NEEDS,
    handle=handle,
    refused=refused,
)
