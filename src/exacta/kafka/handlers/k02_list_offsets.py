"""ListOffsets: the first, the next, or the offset for a time."""

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
    ListOffsetsTopicResponse,
)

KEY = ApiKey.LIST_OFFSETS
MIN_VERSION = 1
MAX_VERSION = 7
NEWER = "8, 9 and 11 ask for tiered storage (KIP-405), 10 for an answer that may take longer because of it"
READ_COMMITTED = 1

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3  # KIP-734, version 7


def handle(broker: BrokerContext, request: ListOffsetsRequest, context: RequestContext, reply: Reply) -> None:
    """Answer from what readers may see now."""
    read_committed = request.isolation_level == READ_COMMITTED
    reply(
        ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        _answer(broker, topic.name, partition, read_committed, context.version)
                        for partition in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )
    )


def _answer(
    broker: BrokerContext, topic: str, partition: ListOffsetsPartition, read_committed: bool, version: int
) -> ListOffsetsPartitionResponse:
    answer = ListOffsetsPartitionResponse(partition_index=partition.partition_index)
    index, time_ms = partition.partition_index, partition.timestamp
    visible = broker.engine.visible(topic, index)
    if visible is None:
        answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return answer
    answer.error_code = leader_epoch_error(partition.current_leader_epoch)
    if answer.error_code != ErrorCode.NONE:
        return answer
    if time_ms == EARLIEST:
        answer.offset = visible.log_start_offset
    elif time_ms == LATEST:
        answer.offset = visible.last_stable_offset if read_committed else visible.high_watermark
    elif time_ms == MAX_TIMESTAMP and version >= 7:
        _fill_from(answer, visible, broker.engine.latest_batch(topic, index, read_committed=read_committed))
    elif time_ms < 0:
        answer.error_code = ErrorCode.UNSUPPORTED_VERSION
        return answer
    else:
        found = broker.engine.offset_for_time(topic, index, time_ms, read_committed=read_committed)
        _fill_from(answer, visible, found)
    if answer.offset >= 0:
        answer.leader_epoch = LEADER_EPOCH
    return answer


def _fill_from(answer: ListOffsetsPartitionResponse, visible: Visible, found: TimeEntry | None) -> None:
    """Take the batch's first offset: records are not looked into (DESIGN D5), and none before it is later."""
    if found is not None:
        answer.offset = max(found.first_offset, visible.log_start_offset)
        answer.timestamp = found.max_timestamp_ms
