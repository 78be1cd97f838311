"""Fetch reads records, in full or by a session (KIP-227, `fetch_sessions.py`), by topic names or ids (KIP-516)."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from exacta.core.ids import Body
from exacta.core.rejections import Rejection
from exacta.core.values.leader_epochs import FIRST_EPOCH, last_epoch
from exacta.front.broker import Broker
from exacta.kafka.at_follower import by_request
from exacta.kafka.context import RequestContext
from exacta.kafka.errors import error_code
from exacta.kafka.fetch_quota import most_bytes, within_quota
from exacta.kafka.fetch_refusals import Reasons, are_ahead, is_ahead, is_replica, unread
from exacta.kafka.fetch_rights import take_out_unreadable
from exacta.kafka.fetch_sessions import (
    FINAL_EPOCH,
    FULL_EPOCH,
    MAX_SESSION_PARTITIONS,
    NO_SESSION,
    Asked,
    FetchSession,
)
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.leader_epoch import with_leader_epochs
from exacta.kafka.needs import Inside
from exacta.kafka.nodes import NOBODY, ToldCluster, told_cluster
from exacta.kafka.pieces import by_pieces
from exacta.kafka.preferred_replica import near_followers, preferred_replica
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.ports.log import Convert, FetchResult, Share, Visible
from exacta.ports.log import FetchPartition as Wanted
from exacta.ports.log import FetchRequest as WantedRequest
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
    FetchTopic,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from exacta.records.work import SHORT_BYTES, work_bytes

BY_TOPIC_ID_SINCE = 13
LEADER_UNKNOWN = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
"""The errors that say that a client does not know who leads."""
LEADER_SINCE = 16
"""The first version that tells a client which broker leads a partition instead of this one (KIP-951)."""
READ_COMMITTED = 1
OWN_BODIES = frozenset({Body.KAFKA})
"""The batches of other bodies are converted."""
ZSTD_SINCE = 10
"""The first version whose clients understand the codec zstd (KIP-110)."""
LONGEST_WAIT_MS = 60_000
"""A client that waits longer is answered with nothing and asks again; its request does not outlive it for long."""


def handle(broker: Broker, request: FetchRequest, context: RequestContext, reply: Reply) -> None:
    """Answer all partitions from one state of the log (decision D2)."""
    is_full = request.session_epoch in (FULL_EPOCH, FINAL_EPOCH)
    serve = _serve_in_full if is_full else _serve_incrementally
    asked: list[Asked] = []
    named = [(topic, partition) for topic in request.topics for partition in topic.partitions]
    by_pieces(
        context,
        named,
        lambda piece: asked.extend(_asked(broker, request, context, piece)),
        lambda: serve(broker, request, context, asked, reply),
    )


def _serve_in_full(
    broker: Broker, request: FetchRequest, context: RequestContext, partitions: list[Asked], reply: Reply
) -> None:
    sessions = context.shared.fetch_sessions
    sessions.end(request.session_id)

    def done(answers: list[_Answer], answered: _Answered) -> None:
        session_id = NO_SESSION
        if request.session_epoch == FULL_EPOCH and len(partitions) <= MAX_SESSION_PARTITIONS:
            for asked, result in answers:
                asked.must_answer(result)
            session_id = sessions.begin(
                partitions, broker.engine.now_ms(), by_topic_id=context.version >= BY_TOPIC_ID_SINCE
            )
        answered(answers, session_id)

    _read(broker, request, context, partitions, done, reply)


def _serve_incrementally(
    broker: Broker, request: FetchRequest, context: RequestContext, changed: list[Asked], reply: Reply
) -> None:
    sessions = context.shared.fetch_sessions
    by_topic_id = context.version >= BY_TOPIC_ID_SINCE
    session = sessions.find(request.session_id, request.session_epoch, by_topic_id=by_topic_id)
    if isinstance(session, FetchSession):
        forgotten = (
            (topic.topic_id if by_topic_id else topic.topic, index)
            for topic in request.forgotten_topics_data
            for index in topic.partitions
        )
        left = sessions.go_on(session, changed, forgotten, broker.engine.now_ms())
        if left is None:
            _read(broker, request, context, changed, lambda answers, answered: answered(answers, NO_SESSION), reply)
            return
        session = left
    if not isinstance(session, FetchSession):
        reply(FetchResponse(error_code=session))
        return
    going_on, expected_epoch = session, session.epoch

    def done(answers: list[_Answer], answered: _Answered) -> None:
        if going_on.epoch != expected_epoch:
            code = ErrorCode.INVALID_FETCH_SESSION_EPOCH
            reply(FetchResponse(error_code=code, session_id=going_on.session_id))
            return
        told = [(asked, result) for asked, result in answers if asked.must_answer(result)]
        for asked, result in told:
            if result is not None and result.records:
                going_on.answered_with_records(asked)
        answered(told, going_on.session_id)

    reasons = Reasons(broker, context, is_replica=is_replica(request))
    for asked in session.partitions.values():
        if asked.topic is None:
            _name(broker, asked)
        if asked.judged_under != reasons.leader_epoch:  # a follower has met another leader
            reasons.judge(asked)
    _read(broker, request, context, list(session.partitions.values()), done, reply)


_Answer = tuple[Asked, FetchResult | None]
"""A partition and its result; None: it was refused before it was read."""

_Answered = Callable[[list[_Answer], int], None]
"""Sends the answer about these partitions, with the id of the session that it is of."""


def _asked(
    broker: Broker,
    request: FetchRequest,
    context: RequestContext,
    named: Iterable[tuple[FetchTopic, FetchPartition]],
) -> Iterator[Asked]:
    """Yield what the request itself asks for, with its own reasons to refuse it."""
    reasons = Reasons(broker, context, is_replica=is_replica(request))
    by_topic_id = context.version >= BY_TOPIC_ID_SINCE
    for topic, partition in named:
        topic_id = topic.topic_id if by_topic_id else b""
        name = broker.engine.advice.topic_name(topic_id) if by_topic_id else topic.topic
        index, offset = partition.partition, partition.fetch_offset
        max_bytes = max(partition.partition_max_bytes, 0)
        asked = Asked(name, topic_id, index, offset, max_bytes)
        asked.believed_epoch, asked.fetched_epoch = partition.current_leader_epoch, partition.last_fetched_epoch
        reasons.judge(asked)
        yield asked


def _name(broker: Broker, asked: Asked) -> None:
    """Look again for the topic of an id that nobody had."""
    topic = broker.engine.advice.topic_name(asked.topic_id)
    if topic is not None:
        asked.named(topic)


class _Sorted(Struct):
    """The partitions that are read, as the reader and as the engine name them, and the answers to the others."""

    reading: list[Asked] = []
    wanted: list[Wanted] = []
    refused: list[_Answer] = []
    acl_changes: int = 0
    """The number of changes of access rules up to the time when the reader's rights were asked for."""


def _read(
    broker: Broker,
    request: FetchRequest,
    context: RequestContext,
    partitions: list[Asked],
    done: Callable[[list[_Answer], _Answered], None],
    reply: Reply,
) -> None:
    """Read partitions; `done` gets the answers, and says which of them are sent."""
    found = _Sorted(acl_changes=broker.engine.advice.acl_changes)
    from_replica = is_replica(request)
    near = near_followers(broker, request, context)

    def sort(piece: Iterable[Asked]) -> None:
        if not broker.authorizer.allows_all:
            piece, unreadable = take_out_unreadable(broker, context, piece, is_replica=from_replica)
            found.refused.extend((each, None) for each in unreadable)
        for asked in piece:
            asked.preferred_replica = preferred_replica(broker, near, asked) if near else NOBODY
            if asked.wanted is None or asked.preferred_replica != NOBODY:
                found.refused.append((asked, None))
            else:
                found.reading.append(asked)
                found.wanted.append(asked.wanted)

    def answered(answers: list[_Answer], session_id: int) -> None:
        response = FetchResponse(responses=[], session_id=session_id)
        by_pieces(
            context,
            answers,
            lambda piece: _add(broker, request, context, response, piece),
            lambda: _finish(broker, context, response, reply, is_durable=not found.refused),
        )

    def read(results: list[FetchResult]) -> None:
        answers: list[_Answer] = list(zip(found.reading, within_quota(context, results), strict=True))
        if found.acl_changes == broker.engine.advice.acl_changes or broker.authorizer.allows_all:
            done([*answers, *found.refused], answered)
            return
        checked: list[_Answer] = []

        def check(piece: Sequence[_Answer]) -> None:
            """Take out what the client may not read any more: it has waited, and rules have changed."""
            asked = (each for each, _ in piece)
            readable, unreadable = take_out_unreadable(broker, context, asked, is_replica=from_replica)
            still = {id(each) for each in readable}
            checked.extend(each for each in piece if id(each[0]) in still)
            found.refused.extend((each, None) for each in unreadable)

        by_pieces(context, answers, check, lambda: done([*checked, *found.refused], answered))

    def sorted_out() -> None:
        if are_ahead(broker, found.wanted):
            broker.catch_up(context, lambda: _fetch(broker, request, context, found, read))
        else:
            _fetch(broker, request, context, found, read)

    by_pieces(context, partitions, sort, sorted_out)


def _fetch(
    broker: Broker,
    request: FetchRequest,
    context: RequestContext,
    found: _Sorted,
    done: Callable[[list[FetchResult]], None],
) -> None:
    max_bytes = most_bytes(context, min(max(request.max_bytes, 0), broker.configuration.fetch_max_bytes))
    may_wait = not found.refused and found.acl_changes == broker.engine.advice.acl_changes
    broker.fetch(
        context,
        WantedRequest(
            partitions=found.wanted,
            max_wait_ms=min(max(request.max_wait_ms, 0), LONGEST_WAIT_MS) if may_wait else 0,
            min_bytes=min(max(request.min_bytes, 0), max_bytes),
            max_bytes=max_bytes,
            read_committed=request.isolation_level == READ_COMMITTED,
            bodies=OWN_BODIES,
            convert=_conversion(broker, context),
            in_steps=context.in_steps,
        ),
        done,
    )


def _finish(
    broker: Broker, context: RequestContext, response: FetchResponse, reply: Reply, *, is_durable: bool
) -> None:
    """Reply; where a partition was refused, maybe since its topic is gone, once that is durable."""
    if is_durable:
        reply(response)
    else:
        broker.when_durable(context, lambda: reply(response))


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


def _add(
    broker: Broker,
    request: FetchRequest,
    context: RequestContext,
    response: FetchResponse,
    answers: Iterable[_Answer],
) -> None:
    topic = response.responses[-1] if response.responses else None
    cluster: ToldCluster | None = None
    for asked, result in answers:
        name = asked.topic or ""
        if topic is None or topic.topic_id != asked.topic_id or topic.topic != name:
            topic = FetchableTopicResponse(topic=name, topic_id=asked.topic_id, partitions=[])
            response.responses.append(topic)
        data = PartitionData(partition_index=asked.partition, high_watermark=-1, records=b"")
        topic.partitions.append(data)
        if result is None:
            _refuse(broker, data, asked)
            if data.error_code in LEADER_UNKNOWN and context.version >= LEADER_SINCE:
                cluster = cluster or told_cluster(broker, context)
                data.current_leader = LeaderIdAndEpoch(leader_id=cluster.leader_id, leader_epoch=cluster.leader_epoch)
        else:
            _fill(broker, data, asked, result, request.isolation_level == READ_COMMITTED, context.version)
    if cluster is not None and cluster.leader is not None and not broker.cluster.leads:
        response.node_endpoints = [NodeEndpoint(**cluster.leader._asdict())]


def _refuse(broker: Broker, data: PartitionData, asked: Asked) -> None:
    """Answer for a partition that was not read."""
    data.error_code = unread(broker, asked)
    if data.error_code != ErrorCode.NONE:
        return
    if asked.ended is not None:
        data.diverging_epoch = EpochEndOffset(epoch=asked.ended[0], end_offset=asked.ended[1])
    visible = broker.engine.visible(asked.topic or "", asked.partition)
    if asked.preferred_replica != NOBODY and visible is not None:
        data.preferred_read_replica = asked.preferred_replica
        _fill_offsets(data, visible)


def _fill(
    broker: Broker, data: PartitionData, asked: Asked, result: FetchResult, read_committed: bool, version: int
) -> None:
    visible = result.visible
    if result.rejection is not None:
        if is_ahead(broker, visible, asked.fetch_offset) and result.rejection is Rejection.OFFSET_OUT_OF_RANGE:
            data.error_code = ErrorCode.OFFSET_NOT_AVAILABLE
            return
        epoch = FIRST_EPOCH if visible is None else last_epoch(visible.leader_epochs)
        diverges = asked.fetched_epoch == epoch and result.rejection is Rejection.OFFSET_OUT_OF_RANGE
        if visible is None or not diverges or asked.fetch_offset < visible.log_start_offset:
            data.error_code = error_code(result.rejection, ApiKey.FETCH, version)
            return
        data.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=visible.high_watermark)
    assert visible is not None
    _fill_offsets(data, visible)
    if read_committed:
        data.aborted_transactions = [
            AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
            for aborted in result.aborted
        ]
    if result.records:
        data.records = with_leader_epochs(result.records, visible.leader_epochs)


def _fill_offsets(data: PartitionData, visible: Visible) -> None:
    data.high_watermark = visible.high_watermark
    data.last_stable_offset = visible.last_stable_offset
    data.log_start_offset = visible.log_start_offset


HANDLER = Handler(
    ApiKey.FETCH,
    versions=(4, 18),
    needs=(
        Inside(Operation.READ, ResourceKind.TOPIC),
        Inside(Operation.CLUSTER_ACTION, ResourceKind.CLUSTER),
    ),
    at_follower=by_request(
        "From version 11 on it serves the records that it has followed. It catches up with the leader for an offset "
        "beyond them, and says OFFSET_NOT_AVAILABLE if that is still beyond. "
        "Older versions do not know followers: it refuses each partition by NOT_LEADER_OR_FOLLOWER."
    ),
    handle=handle,
)
