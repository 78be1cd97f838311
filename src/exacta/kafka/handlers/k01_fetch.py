"""Fetch reads records, in full or by a session (KIP-227, `fetch_sessions.py`), by topic names or ids (KIP-516)."""

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from exacta.core.ids import Body
from exacta.core.rejections import Rejection
from exacta.core.state.leader_epochs import FIRST_EPOCH, end_of, last_epoch
from exacta.engine.fetch import Convert, FetchResult, Share
from exacta.engine.fetch import FetchPartition as Wanted
from exacta.engine.fetch import FetchRequest as WantedRequest
from exacta.engine.visible import Visible
from exacta.front.broker import Broker
from exacta.kafka.access import allows
from exacta.kafka.context import RequestContext
from exacta.kafka.errors import error_code
from exacta.kafka.fetch_sessions import FINAL_EPOCH, FULL_EPOCH, Asked, FetchSession
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.leader_epoch import UNSAID, leader_epoch_error, with_leader_epochs
from exacta.kafka.needs import Inside
from exacta.ports.authorizer import CLUSTER, Operation, ResourceKind
from exacta.ports.record_format import Buffer
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k01_fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)
from exacta.records.work import SHORT_BYTES, work_bytes

KEY = ApiKey.FETCH
MIN_VERSION = 4
MAX_VERSION = 18
BY_TOPIC_ID_SINCE = 13
LEADER_SINCE = 16
"""The first version that tells a client which broker leads a partition instead of this one (KIP-951)."""
READ_COMMITTED = 1
OWN_BODIES = frozenset({Body.KAFKA})
"""The batches of other bodies are converted."""
ZSTD_SINCE = 10
"""The first version whose clients understand the codec zstd (KIP-110)."""
LONGEST_WAIT_MS = 60_000
"""A client that waits longer is answered with nothing and asks again; its request does not outlive it for long."""

NEEDS = (
    Inside(Operation.READ, ResourceKind.TOPIC),
    Inside(Operation.CLUSTER_ACTION, ResourceKind.CLUSTER),
)


def handle(broker: Broker, request: FetchRequest, context: RequestContext, reply: Reply) -> None:
    """Answer all partitions from one state of the log (decision D2)."""
    if request.session_epoch not in (FULL_EPOCH, FINAL_EPOCH):
        _handle_incremental(broker, request, context, reply)
        return
    context.shared.fetch_sessions.end(request.session_id)
    partitions = _asked(broker, request, context)

    def done(answers: list[_Answer]) -> None:
        response = _response(broker, request, context, answers)
        if request.session_epoch == FULL_EPOCH:
            for asked, result in answers:
                asked.must_answer(result)
            response.session_id = context.shared.fetch_sessions.begin(
                partitions, broker.engine.now_ms(), by_topic_id=context.version >= BY_TOPIC_ID_SINCE
            )
        reply(response)

    _read(broker, request, context, partitions, done)


def _handle_incremental(broker: Broker, request: FetchRequest, context: RequestContext, reply: Reply) -> None:
    sessions = context.shared.fetch_sessions
    by_topic_id = context.version >= BY_TOPIC_ID_SINCE
    session = sessions.find(request.session_id, request.session_epoch, by_topic_id=by_topic_id)
    if isinstance(session, FetchSession):
        changed = _asked(broker, request, context)
        forgotten = [
            (topic.topic_id if by_topic_id else topic.topic, index)
            for topic in request.forgotten_topics_data
            for index in topic.partitions
        ]
        left = sessions.go_on(session, changed, forgotten, broker.engine.now_ms())
        if left is None:

            def without_session(answers: list[_Answer]) -> None:
                reply(_response(broker, request, context, answers))

            _read(broker, request, context, changed, without_session)
            return
        session = left
    if not isinstance(session, FetchSession):
        reply(FetchResponse(error_code=session))
        return
    going_on, expected_epoch = session, session.epoch

    def done(answers: list[_Answer]) -> None:
        response = FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if going_on.epoch == expected_epoch:
            told = [(asked, result) for asked, result in answers if asked.must_answer(result)]
            for asked, result in told:
                if result is not None and result.records:
                    going_on.answered_with_records(asked)
            response = _response(broker, request, context, told)
        response.session_id = going_on.session_id
        reply(response)

    for asked in session.partitions.values():
        if asked.topic is None:
            _name(broker, asked)
    _read(broker, request, context, session.partitions.values(), done)


_Answer = tuple[Asked, FetchResult | None]
"""A partition and its result; None: it was refused before it was read."""


def _asked(broker: Broker, request: FetchRequest, context: RequestContext) -> list[Asked]:
    """Return what the request itself asks for, with its own reasons to refuse it."""
    found = []
    is_replica = _is_replica(request)
    by_topic_id = context.version >= BY_TOPIC_ID_SINCE
    leader_epoch = broker.engine.present.leader_epoch
    for topic in request.topics:
        topic_id = topic.topic_id if by_topic_id else b""
        name = broker.engine.present.topic_name(topic_id) if by_topic_id else topic.topic
        for partition in topic.partitions:
            index, offset = partition.partition, partition.fetch_offset
            max_bytes = max(partition.partition_max_bytes, 0)
            fetched_epoch = partition.last_fetched_epoch
            refused, ended = ErrorCode.NONE, None
            is_unsure = partition.current_leader_epoch not in (UNSAID, leader_epoch) or fetched_epoch > leader_epoch
            if is_replica or is_unsure:
                refused = _refusal(partition, is_replica, leader_epoch)
            if refused is ErrorCode.NONE and leader_epoch != FIRST_EPOCH and name is not None:
                refused, ended = _divergence(broker.engine.visible(name, index), partition)
            if refused is not ErrorCode.NONE or ended is not None:
                found.append(Asked(name, topic_id, index, offset, max_bytes, refused, fetched_epoch, ended=ended))
                continue
            wanted = None if name is None else Wanted(name, index, offset, max_bytes, topic_id)
            found.append(Asked(name, topic_id, index, offset, max_bytes, ErrorCode.NONE, fetched_epoch, wanted))
    return found


def _is_replica(request: FetchRequest) -> bool:
    state = request.replica_state
    return (request.replica_id if state is None else state.replica_id) >= 0


def _name(broker: Broker, asked: Asked) -> None:
    """Look again for the topic of an id that nobody had."""
    topic = broker.engine.present.topic_name(asked.topic_id)
    if topic is not None:
        asked.named(topic)


def _divergence(visible: Visible | None, partition: FetchPartition) -> tuple[ErrorCode, tuple[int, int] | None]:
    """Return where the epoch ended of which the client has last read, if it has read further (KIP-595)."""
    fetched_epoch = partition.last_fetched_epoch
    if visible is None or fetched_epoch < 0 or partition.fetch_offset < visible.log_start_offset:
        return ErrorCode.NONE, None
    end = end_of(visible.leader_epochs, fetched_epoch, visible.high_watermark)
    if end is None:
        return ErrorCode.OFFSET_OUT_OF_RANGE, None
    return ErrorCode.NONE, end if end[0] < fetched_epoch or end[1] < partition.fetch_offset else None


def _refusal(partition: FetchPartition, is_replica: bool, leader_epoch: int) -> ErrorCode:
    if is_replica:  # there are none, so this one believes in another cluster than this
        unknown = partition.current_leader_epoch >= 0
        return ErrorCode.UNKNOWN_LEADER_EPOCH if unknown else ErrorCode.NOT_LEADER_OR_FOLLOWER
    believed = max(partition.current_leader_epoch, UNSAID)  # here any negative one says nothing
    code = leader_epoch_error(believed, leader_epoch)
    if code is ErrorCode.NONE and partition.last_fetched_epoch > leader_epoch:  # of such an epoch there is nothing
        return ErrorCode.OFFSET_OUT_OF_RANGE
    return code


def _read(
    broker: Broker,
    request: FetchRequest,
    context: RequestContext,
    partitions: Iterable[Asked],
    done: Callable[[list[_Answer]], None],
) -> None:
    reading: list[Asked] = []
    wanted: list[Wanted] = []
    refused: list[_Answer] = []
    if not broker.authorizer.allows_all:
        partitions, refused = _take_out_unreadable(broker, context, partitions, _is_replica(request))
    for asked in partitions:
        if asked.wanted is None:
            refused.append((asked, None))
        else:
            reading.append(asked)
            wanted.append(asked.wanted)
    max_bytes = min(max(request.max_bytes, 0), broker.configuration.fetch_max_bytes)
    if refused:  # maybe since there is no such topic, and its deletion is not durable yet
        done = _once_durable(broker, context, done)
    broker.fetch(
        context,
        WantedRequest(
            partitions=wanted,
            max_wait_ms=0 if refused else min(max(request.max_wait_ms, 0), LONGEST_WAIT_MS),
            min_bytes=min(max(request.min_bytes, 0), max_bytes),
            max_bytes=max_bytes,
            read_committed=request.isolation_level == READ_COMMITTED,
            bodies=OWN_BODIES,
            convert=_conversion(broker, context),
        ),
        lambda results: done([*zip(reading, results, strict=True), *refused]),
    )


def _conversion(broker: Broker, context: RequestContext) -> Convert | None:
    to_kafka, zstd = context.shared.to_kafka, context.version >= ZSTD_SINCE
    if to_kafka is None:
        return None

    def convert(shares: list[Share], is_wanted: Callable[[], bool], done: Callable[[list[list[Buffer]]], None]) -> None:
        def work() -> list[list[Buffer]]:
            return to_kafka.convert([(share.batches, share.room) for share in shares], zstd=zstd)

        def converted(found: list[list[Buffer]] | Exception) -> None:
            if isinstance(found, Exception):
                raise found
            done(found)

        size = sum(work_bytes(share.room, share.offset_count) for share in shares)
        if size <= SHORT_BYTES:
            size += sum(to_kafka.plain_bytes(share.batches) for share in shares)
        broker.memory.conversions.convert(size, work, context.guard(converted), is_wanted)

    return convert


def _once_durable(
    broker: Broker, context: RequestContext, done: Callable[[list[_Answer]], None]
) -> Callable[[list[_Answer]], None]:
    return lambda answers: broker.when_durable(context, lambda: done(answers))


def _response(
    broker: Broker, request: FetchRequest, context: RequestContext, answers: Iterable[_Answer]
) -> FetchResponse:
    response = FetchResponse(responses=[])
    topic: FetchableTopicResponse | None = None
    for asked, result in answers:
        name = asked.topic or ""
        if topic is None or topic.topic_id != asked.topic_id or topic.topic != name:
            topic = FetchableTopicResponse(topic=name, topic_id=asked.topic_id, partitions=[])
            response.responses.append(topic)
        data = PartitionData(partition_index=asked.partition, high_watermark=-1, records=b"")
        topic.partitions.append(data)
        if result is None:
            epoch = broker.engine.present.leader_epoch
            data.error_code = _unread(broker, asked)
            if asked.ended is not None and data.error_code == ErrorCode.NONE:
                data.diverging_epoch = EpochEndOffset(epoch=asked.ended[0], end_offset=asked.ended[1])
            if data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER and context.version >= LEADER_SINCE:
                data.current_leader = LeaderIdAndEpoch(leader_id=broker.node_id, leader_epoch=epoch)
        else:
            _fill(data, asked, result, request.isolation_level == READ_COMMITTED, context.version)
    return response


def _take_out_unreadable(
    broker: Broker, context: RequestContext, partitions: Iterable[Asked], is_replica: bool
) -> tuple[list[Asked], list[_Answer]]:
    """Return the partitions that the client may read, and the answers to the others, which are not looked at.

    A replica needs a right on the cluster instead. An id that no topic has is answered as such.
    """
    operation, kind = Operation.READ, ResourceKind.TOPIC
    if is_replica:
        operation, kind = Operation.CLUSTER_ACTION, ResourceKind.CLUSTER
    readable: list[Asked] = []
    refused: list[_Answer] = []
    for asked in partitions:
        name = CLUSTER.name if is_replica else asked.topic
        if name is None or allows(broker, context, operation, kind, name):
            readable.append(asked)
        else:
            asked.sent = None  # a session tells its reader what follows an error
            refused.append((replace(asked, refused=ErrorCode.TOPIC_AUTHORIZATION_FAILED, wanted=None), None))
    return readable, refused


def _unread(broker: Broker, asked: Asked) -> ErrorCode:
    """Return why a partition was not even read; that it is not there comes first, unless it may not be known."""
    if asked.refused is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return asked.refused
    if asked.topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if broker.engine.visible(asked.topic, asked.partition) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return asked.refused


def _fill(data: PartitionData, asked: Asked, result: FetchResult, read_committed: bool, version: int) -> None:
    visible = result.visible
    if result.rejection is not None:
        epoch = FIRST_EPOCH if visible is None else last_epoch(visible.leader_epochs)
        diverges = asked.last_fetched_epoch == epoch and result.rejection is Rejection.OFFSET_OUT_OF_RANGE
        if visible is None or not diverges or asked.fetch_offset < visible.log_start_offset:
            data.error_code = error_code(result.rejection, KEY, version)
            return
        data.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=visible.high_watermark)
    assert visible is not None
    data.high_watermark = visible.high_watermark
    data.last_stable_offset = visible.last_stable_offset
    data.log_start_offset = visible.log_start_offset
    if read_committed:
        data.aborted_transactions = [
            AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
            for aborted in result.aborted
        ]
    if result.records:
        data.records = with_leader_epochs(result.records, visible.leader_epochs)


HANDLER = Handler(
    key=KEY,
    min_version=MIN_VERSION,
    max_version=MAX_VERSION,
    needs=NEEDS,
    handle=handle,
)
