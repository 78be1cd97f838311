"""OffsetFetch: where groups stand. Version 8 asks for several groups at once, version 10 names topics by their ids."""

from collections.abc import Callable, Hashable
from itertools import groupby

from exacta.core.groups.committing import check_reader
from exacta.core.groups.reading import fetch_offsets
from exacta.core.state.group import CommittedOffset
from exacta.core.state.state import State
from exacta.kafka.broker import BrokerContext
from exacta.kafka.context import RequestContext
from exacta.kafka.errors import error_code
from exacta.kafka.handler import Reply
from exacta.kafka.keys import ApiKey
from exacta.kafka.request_size import first_time
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
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
SEVERAL_GROUPS_SINCE = 8
TOPIC_IDS_SINCE = 10
NO_OFFSET = -1
STORED_OFFSET = -1000
"""Beside UNSTABLE_OFFSET_COMMIT: to librdkafka "where the group is" (RD_KAFKA_OFFSET_STORED), so that it asks again.

A deviation from Apache Kafka, which has -1 there (decision 0021).
"""

Row = tuple[str, int, CommittedOffset | None, bool]


def handle(broker: BrokerContext, request: OffsetFetchRequest, context: RequestContext, reply: Reply) -> None:
    """Answer all groups from one state."""

    def view(state: State, now_ms: int) -> OffsetFetchResponse:
        is_first = first_time()
        if context.version < SEVERAL_GROUPS_SINCE:
            wanted = None
            if request.topics is not None:
                wanted = [
                    (each.name, [index for index in each.partition_indexes if is_first((each.name, index))])
                    for each in request.topics
                ]
            rows = fetch_offsets(state, request.group_id, wanted, require_stable=request.require_stable)
            return OffsetFetchResponse(topics=_topics(rows))
        return OffsetFetchResponse(
            groups=[
                _group(state, group, context.version, is_first, require_stable=request.require_stable)
                for group in request.groups
                if group.topics is not None or is_first(group.group_id)
            ]
        )

    broker.read(context, view, reply)


def _group(
    state: State,
    asked: OffsetFetchRequestGroup,
    version: int,
    is_first: Callable[[Hashable], bool],
    *,
    require_stable: bool,
) -> OffsetFetchResponseGroup:
    group = OffsetFetchResponseGroup(group_id=asked.group_id)
    rejection = check_reader(state, asked.group_id, asked.member_id, asked.member_epoch)
    if rejection is not None:
        group.error_code = error_code(rejection, KEY, version)
        return group
    by_id = version >= TOPIC_IDS_SINCE
    wanted, unknown = None, []
    if asked.topics is not None:
        wanted = []
        for topic in asked.topics:
            name = state.volatile.topic_names.get(topic.topic_id) if by_id else topic.name
            if name is None:
                unknown.append(_unknown_topic(topic))
            else:
                indexes = [index for index in topic.partition_indexes if is_first((asked.group_id, name, index))]
                wanted.append((name, indexes))
    rows = fetch_offsets(state, asked.group_id, wanted, require_stable=require_stable)
    group.topics = _topics_of_group(rows) + unknown
    if by_id:
        for named in group.topics:
            if named.name:
                named.topic_id = state.topics[named.name].topic_id
    return group


def _unknown_topic(topic: OffsetFetchRequestTopics) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        topic_id=topic.topic_id,
        partitions=[
            OffsetFetchResponsePartitions(
                partition_index=index,
                committed_offset=NO_OFFSET,
                metadata="",
                error_code=ErrorCode.UNKNOWN_TOPIC_ID,
            )
            for index in topic.partition_indexes
        ],
    )


def _topics(rows: list[Row]) -> list[OffsetFetchResponseTopic]:
    return [
        OffsetFetchResponseTopic(
            name=name,
            partitions=[
                OffsetFetchResponsePartition(
                    partition_index=index,
                    committed_offset=_offset(committed, unstable),
                    committed_leader_epoch=_leader_epoch(committed, unstable),
                    metadata=_metadata(committed, unstable),
                    error_code=_code(unstable),
                )
                for _, index, committed, unstable in partitions
            ],
        )
        for name, partitions in groupby(rows, key=lambda row: row[0])
    ]


def _topics_of_group(rows: list[Row]) -> list[OffsetFetchResponseTopics]:
    return [
        OffsetFetchResponseTopics(
            name=name,
            partitions=[
                OffsetFetchResponsePartitions(
                    partition_index=index,
                    committed_offset=_offset(committed, unstable),
                    committed_leader_epoch=_leader_epoch(committed, unstable),
                    metadata=_metadata(committed, unstable),
                    error_code=_code(unstable),
                )
                for _, index, committed, unstable in partitions
            ],
        )
        for name, partitions in groupby(rows, key=lambda row: row[0])
    ]


def _code(unstable: bool) -> ErrorCode:
    """KIP-447: the reader must ask again until the transaction has ended."""
    return ErrorCode.UNSTABLE_OFFSET_COMMIT if unstable else ErrorCode.NONE


def _offset(committed: CommittedOffset | None, unstable: bool) -> int:
    if unstable:
        return STORED_OFFSET
    return NO_OFFSET if committed is None else committed.offset


def _leader_epoch(committed: CommittedOffset | None, unstable: bool) -> int:
    return -1 if committed is None or unstable else committed.leader_epoch


def _metadata(committed: CommittedOffset | None, unstable: bool) -> str:
    return "" if committed is None or unstable else committed.metadata
