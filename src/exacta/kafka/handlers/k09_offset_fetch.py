"""OffsetFetch: where groups stand. Version 8 asks for several groups at once."""

from itertools import groupby

from exacta.core.state import CommittedOffset, State
from exacta.core.views import fetch_offsets
from exacta.kafka.broker import BrokerContext
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Reply
from exacta.kafka.keys import ApiKey
from exacta.protocol.errors import ErrorCode
from exacta.protocol.messages.k09_offset_fetch import (
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

KEY = ApiKey.OFFSET_FETCH
MIN_VERSION = 1
MAX_VERSION = 8
NEWER = "9 is of the consumer protocol (KIP-848), 10 names topics by their ids"
SEVERAL_GROUPS_SINCE = 8
NO_OFFSET = -1

Row = tuple[str, int, CommittedOffset | None, bool]


def handle(broker: BrokerContext, request: OffsetFetchRequest, context: RequestContext, reply: Reply) -> None:
    """Answer all groups from one state."""

    def rows(
        state: State,
        group_id: str,
        topics: list[OffsetFetchRequestTopic] | list[OffsetFetchRequestTopics] | None,
    ) -> list[Row]:
        wanted = None if topics is None else [(topic.name, topic.partition_indexes) for topic in topics]
        return fetch_offsets(state, group_id, wanted, require_stable=request.require_stable)

    def view(state: State, now_ms: int) -> OffsetFetchResponse:
        if context.version < SEVERAL_GROUPS_SINCE:
            return OffsetFetchResponse(topics=_topics(rows(state, request.group_id, request.topics)))
        return OffsetFetchResponse(
            groups=[
                OffsetFetchResponseGroup(
                    group_id=group.group_id, topics=_topics_of_group(rows(state, group.group_id, group.topics))
                )
                for group in request.groups
            ]
        )

    broker.read(context, view, reply)


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
    return NO_OFFSET if committed is None or unstable else committed.offset


def _leader_epoch(committed: CommittedOffset | None, unstable: bool) -> int:
    return -1 if committed is None or unstable else committed.leader_epoch


def _metadata(committed: CommittedOffset | None, unstable: bool) -> str:
    return "" if committed is None or unstable else committed.metadata
