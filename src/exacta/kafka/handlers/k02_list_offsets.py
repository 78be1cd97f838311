"""ListOffsets: the first, the next, or the offset for a time.

All storage is local: there is nothing tiered, hence no last tiered offset and nothing that waits to be uploaded, and
the earliest local offset is the earliest (KIP-405, KIP-1005, KIP-1023), as with Apache Kafka without tiered storage.
"""

from collections import Counter

from exacta.engine.visible import Visible
from exacta.kafka.broker import LEADER_EPOCH, BrokerContext
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Reply
from exacta.kafka.keys import ApiKey
from exacta.kafka.leader_epoch import leader_epoch_error
from exacta.ports.journal import TimeEntry
from exacta.protocol.errors import ErrorCode
from exacta.protocol.messages.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)

KEY = ApiKey.LIST_OFFSETS
MIN_VERSION = 1
MAX_VERSION = 11
READ_COMMITTED = 1

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6

SINCE = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,  # KIP-734
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
"""What can be asked for instead of a time -> the first version that can."""


def handle(broker: BrokerContext, request: ListOffsetsRequest, context: RequestContext, reply: Reply) -> None:
    """Answer from what readers may see now."""
    read_committed = request.isolation_level == READ_COMMITTED
    reply(
        ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=topic.name, partitions=_answers(broker, topic, read_committed, context.version)
                )
                for topic in request.topics
            ]
        )
    )


def _answers(
    broker: BrokerContext, topic: ListOffsetsTopic, read_committed: bool, version: int
) -> list[ListOffsetsPartitionResponse]:
    """Answer for each partition once; one that is named more than once, with an error."""
    named = Counter(partition.partition_index for partition in topic.partitions)
    asked = {partition.partition_index: partition for partition in topic.partitions}
    return [
        _answer(broker, topic.name, partition, read_committed, version)
        if named[index] == 1
        else ListOffsetsPartitionResponse(partition_index=index, error_code=ErrorCode.INVALID_REQUEST)
        for index, partition in asked.items()
    ]


def _answer(
    broker: BrokerContext, topic: str, partition: ListOffsetsPartition, read_committed: bool, version: int
) -> ListOffsetsPartitionResponse:
    answer = ListOffsetsPartitionResponse(partition_index=partition.partition_index)
    index, time_ms = partition.partition_index, partition.timestamp
    visible = broker.engine.visible(topic, index)
    if time_ms < 0 and version < SINCE.get(time_ms, MAX_VERSION + 1):
        answer.error_code = ErrorCode.UNSUPPORTED_VERSION
        return answer
    if visible is None:
        answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return answer
    answer.error_code = leader_epoch_error(partition.current_leader_epoch)
    if answer.error_code != ErrorCode.NONE:
        return answer
    if time_ms in (EARLIEST, EARLIEST_LOCAL):
        answer.offset = visible.log_start_offset
    elif time_ms == LATEST:
        answer.offset = _end(broker, topic, index, visible, read_committed)
    elif time_ms == MAX_TIMESTAMP:
        found = broker.engine.latest_batch(topic, index)
        if found is not None and not (read_committed and found.first_offset >= visible.last_stable_offset):
            _fill_from(answer, visible, found)
    elif time_ms not in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        found = broker.engine.offset_for_time(topic, index, time_ms, read_committed=read_committed)
        if found is not None:
            _fill_from(answer, visible, found)
    if answer.offset >= 0:
        answer.leader_epoch = LEADER_EPOCH
    return answer


def _end(broker: BrokerContext, topic: str, partition: int, visible: Visible, read_committed: bool) -> int:
    if not read_committed:
        return visible.high_watermark
    if broker.configuration.list_offsets_visible_end:  # decision 0013: whom it helps, and whom it would harm
        return broker.engine.visible_end(topic, partition, visible.last_stable_offset)
    return visible.last_stable_offset


def _fill_from(answer: ListOffsetsPartitionResponse, visible: Visible, found: TimeEntry) -> None:
    """Take the batch's first offset: records are not looked into (DESIGN D5), and none before it is later."""
    answer.offset = max(found.first_offset, visible.log_start_offset)
    answer.timestamp = found.max_timestamp_ms
