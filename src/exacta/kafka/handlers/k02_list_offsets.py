"""ListOffsets tells the first offset, the next one, or the offset for a time.

All storage is local: there is nothing tiered, hence no last tiered offset and nothing that waits to be uploaded, and
the earliest local offset is the earliest (KIP-405, KIP-1005, KIP-1023), as with Apache Kafka without tiered storage.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial

from exacta.core.ids import PartitionId
from exacta.core.rejections import Rejection
from exacta.core.values.leader_epochs import LeaderEpochs, epoch_at, last_epoch
from exacta.front.bounded_parallel import Ended, few_at_once, few_in_steps
from exacta.front.broker import Broker
from exacta.front.offset_for_time import MAX_SEARCHES_IN_FLIGHT, find_offset
from exacta.kafka.at_follower import NOT_LEADER
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.leader_epoch import leader_epoch_error
from exacta.kafka.needs import Each
from exacta.kafka.pieces import by_pieces
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.ports.log import Visible
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from exacta.protocol.kafka.record_times import RecordTime
from exacta.protocol.kafka.schema import OPEN_END

READ_COMMITTED = 1

MOST_SEARCHES_IN_A_STEP = 100
"""More searches by time are begun one in each step: each looks into indexes, and maybe into batches."""

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
"""The first version that knows each of the words that may stand for a time."""


def handle(broker: Broker, request: ListOffsetsRequest, context: RequestContext, reply: Reply) -> None:
    """Answer from what readers may see, once all records have been looked for."""
    named: Iterable[tuple[str, int]] | None = ()
    if request.isolation_level != READ_COMMITTED:
        pairs = ((topic.name, each.partition_index) for topic in request.topics for each in topic.partitions)
        named = None if context.is_long else pairs
    broker.when_shown(context, named, lambda: _look(broker, request, context, reply))


_Asked = tuple[int, str, ListOffsetsPartition]
"""A partition that is asked about; the number and the name of its topic come first."""


def _look(broker: Broker, request: ListOffsetsRequest, context: RequestContext, reply: Reply) -> None:
    """Answer for each partition of a topic once. What readers may see of all of them is taken in one step."""
    response = ListOffsetsResponse()
    searches: list[_Search] = []
    asked: list[_Asked] = []
    times_named: Counter[tuple[str, int]] = Counter()
    ids: list[PartitionId | None] = []
    read_committed = request.isolation_level == READ_COMMITTED
    # Whom a visible end helps, and whom it would harm: decision 0013.
    visible_end = read_committed and broker.configuration.list_offsets_visible_end

    def read(topics: Iterable[tuple[int, ListOffsetsTopic]]) -> None:
        for number, topic in topics:
            times_named.update((topic.name, each.partition_index) for each in topic.partitions)
            once = {each.partition_index: each for each in topic.partitions}
            asked.extend((number, topic.name, each) for each in once.values())

    def find(piece: Iterable[_Asked]) -> None:
        ids.extend(broker.engine.advice.partition_id(topic, each.partition_index) for _, topic, each in piece)

    def see() -> None:
        by_pieces(context, list(zip(asked, broker.engine.visible_of(ids), strict=True)), answer, search)

    def answer(piece: Iterable[tuple[_Asked, Visible | None]]) -> None:
        for (number, topic, each), visible in piece:
            _name_topics(response, request, number + 1)
            if times_named[topic, each.partition_index] > 1:
                told = ListOffsetsPartitionResponse(
                    partition_index=each.partition_index, error_code=ErrorCode.INVALID_REQUEST
                )
            else:
                told = _answer(broker, topic, each, visible, read_committed, visible_end, context.version, searches)
            response.topics[-1].partitions.append(told)

    def search() -> None:
        _name_topics(response, request, len(request.topics))
        work = [partial(_begin, context, *each) for each in searches]
        finish = partial(_finish, broker, response, context, reply)
        if len(work) > MOST_SEARCHES_IN_A_STEP:
            context.in_steps(few_in_steps(work, MAX_SEARCHES_IN_FLIGHT, finish))
        else:
            few_at_once(work, MAX_SEARCHES_IN_FLIGHT, finish)

    by_pieces(context, list(enumerate(request.topics)), read, lambda: by_pieces(context, asked, find, see))


def _name_topics(response: ListOffsetsResponse, request: ListOffsetsRequest, count: int) -> None:
    """Let the answer have the first topics of the request, this many of them."""
    for topic in request.topics[len(response.topics) : count]:
        response.topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=[]))


def _finish(broker: Broker, response: ListOffsetsResponse, context: RequestContext, reply: Reply) -> None:
    codes = (partition.error_code for topic in response.topics for partition in topic.partitions)
    if ErrorCode.UNKNOWN_TOPIC_OR_PARTITION in codes:  # it may be one whose deletion is not durable yet
        broker.when_durable(context, lambda: reply(response))
    else:
        reply(response)


def _answer(
    broker: Broker,
    topic: str,
    asked: ListOffsetsPartition,
    visible: Visible | None,
    read_committed: bool,
    visible_end: bool,
    version: int,
    searches: "list[_Search]",
) -> ListOffsetsPartitionResponse:
    index, time_ms = asked.partition_index, asked.timestamp
    answer = ListOffsetsPartitionResponse(partition_index=index)
    if time_ms < 0 and version < SINCE.get(time_ms, OPEN_END):
        answer.error_code = ErrorCode.UNSUPPORTED_VERSION
    elif visible is None:
        answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    elif (code := _disbelief(asked, visible)) != ErrorCode.NONE:
        answer.error_code = code
    elif time_ms in (EARLIEST, EARLIEST_LOCAL):
        answer.offset = visible.log_start_offset
        answer.leader_epoch = epoch_at(visible.leader_epochs, answer.offset)
    elif time_ms == LATEST:
        answer.offset = visible.last_stable_offset if read_committed else visible.high_watermark
        if visible_end:
            answer.offset = broker.engine.lookups.visible_end(topic, index, answer.offset)
        answer.leader_epoch = last_epoch(visible.leader_epochs)
    elif time_ms not in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        wanted = None if time_ms == MAX_TIMESTAMP else time_ms
        search = partial(_search, broker, topic, index, wanted, read_committed)
        searches.append((answer, visible.leader_epochs, search))
    return answer


Found = Callable[[RecordTime | Rejection | None], None]
_FindRecord = Callable[[RequestContext, Found], None]
_Search = tuple[ListOffsetsPartitionResponse, LeaderEpochs, _FindRecord]
"""An answer that waits for a record, the epochs of its partition, and how to look for it."""


def _begin(
    context: RequestContext,
    answer: ListOffsetsPartitionResponse,
    epochs: LeaderEpochs,
    search: _FindRecord,
    ended: Ended,
) -> None:
    """Look for a record, and put it into the answer."""

    def found(record: RecordTime | Rejection | None) -> None:
        if isinstance(record, Rejection):
            answer.error_code = context.error_code(record)
        elif record is not None:
            answer.offset, answer.timestamp = record.offset, record.timestamp_ms
            answer.leader_epoch = epoch_at(epochs, record.offset)
        ended()

    search(context, found)


def _disbelief(asked: ListOffsetsPartition, visible: Visible) -> ErrorCode:
    return leader_epoch_error(asked.current_leader_epoch, last_epoch(visible.leader_epochs))


def _search(
    broker: Broker,
    topic: str,
    index: int,
    time_ms: int | None,
    read_committed: bool,
    context: RequestContext,
    done: Found,
) -> None:
    find_offset(broker, context, topic, index, time_ms, read_committed=read_committed, done=done)


HANDLER = Handler(
    ApiKey.LIST_OFFSETS,
    versions=(1, 11),
    needs=(Each(Operation.DESCRIBE, ResourceKind.TOPIC, "topics", "topics"),),
    at_follower=NOT_LEADER,
    handle=handle,
)
