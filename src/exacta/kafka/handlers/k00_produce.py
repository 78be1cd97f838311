"""Produce appends record batches. It checks the bytes here; the core checks the rest (decision D5)."""

import struct
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import repeat

from msgspec import Struct
from msgspec.structs import replace

from exacta.core.commands import AppendBatch, Command
from exacta.core.ids import TransactionVersion
from exacta.core.rejections import Rejection
from exacta.core.replies import Appended
from exacta.front.broker import Broker
from exacta.front.turns import Steps
from exacta.front.words import words_of
from exacta.kafka.access import allows
from exacta.kafka.at_follower import NOT_LEADER
from exacta.kafka.coded_answers import coded
from exacta.kafka.context import RequestContext
from exacta.kafka.errors import error_code
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Each, Whole, transactional_id
from exacta.kafka.nodes import told_cluster
from exacta.kafka.parts import divided_by
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.ports.log import Answer
from exacta.ports.record_format import Buffer
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.codec import decode
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k00_produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from exacta.protocol.kafka.records import with_max_timestamp
from exacta.records.admission import Admitted, Allowance, BatchRules, NeedsThread, Refused, admit
from exacta.records.work import SHORT_BYTES

MIN_VERSION = 3
BY_TOPIC_ID_SINCE = 13
REGISTERS_SINCE = 12
"""The first version in which a transactional write registers its partition with the transaction (KIP-890)."""
ADVERTISED_MIN_VERSION = 0
"""librdkafka takes a broker that does not advertise version 0 for one of before 0.8, and speaks accordingly."""

NO_RESPONSE_ACKS = 0
VALID_ACKS = (-1, 0, 1)
MOST_RECORD_ERRORS = 100
"""The bound on the records of one batch that are named: the text about one is longer than a record without a key."""
LEADER_SINCE = 10
"""The first version that tells a client which broker leads a partition instead of this one (KIP-951)."""
_UNSUPPORTED = int(ErrorCode.UNSUPPORTED_VERSION)

NEEDS = (
    Whole(Operation.WRITE, ResourceKind.TRANSACTIONAL_ID, transactional_id),
    Each(Operation.WRITE, ResourceKind.TOPIC, "topic_data", "responses"),
)


class _Batch(Struct, eq=False):
    """A batch of a request, its answer, and what is known of it so far."""

    topic: TopicProduceData
    data: PartitionProduceData
    answer: PartitionProduceResponse
    name: str | None = None
    rules: BatchRules | None = None
    admitted: Admitted | Refused | None = None
    """None: it must be admitted on a thread."""


def handle(broker: Broker, request: ProduceRequest, context: RequestContext, reply: Reply) -> None:
    """Answer once every accepted batch is durable, or written into an open transaction, whatever `acks` says."""
    response = ProduceResponse(responses=[])
    batches: list[_Batch] = []
    for topic in request.topic_data:
        answers = [PartitionProduceResponse(index=data.index, base_offset=-1) for data in topic.partition_data]
        batches += map(_Batch, repeat(topic), topic.partition_data, answers)
        response.responses.append(
            TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=answers)
        )
    allowance = Allowance(inline_bytes=SHORT_BYTES)
    now_ms = broker.wall_ms()
    for batch in batches:
        _look_up(broker, context, batch)
        with suppress(NeedsThread):
            batch.admitted = _admit(request, batch, allowance, now_ms, context.version)
    if any(batch.admitted is None for batch in batches):
        context.in_steps(_admit_on_thread(broker, request, context, reply, response, batches, allowance))
    else:
        _append(broker, request, context, reply, response, batches)


def _admit_on_thread(
    broker: Broker,
    request: ProduceRequest,
    context: RequestContext,
    reply: Reply,
    response: ProduceResponse,
    batches: list[_Batch],
    allowance: Allowance,
) -> Steps:
    """Admit on a thread what is too much work for the event loop, and append all batches in one step afterwards.

    Topics, their configurations and rights are looked up again in that step. What has changed is admitted again.
    """
    allowance.inline_bytes = None
    waiting = [batch for batch in batches if batch.admitted is None]
    while waiting:
        found = yield partial(_admit_all, request, waiting, allowance, broker.wall_ms(), context.version)
        if isinstance(found, Exception):
            raise found
        now_ms = broker.wall_ms()
        for batch, admitted in zip(waiting, found, strict=True):
            batch.admitted = admitted
            if isinstance(admitted, Admitted) and batch.rules is not None and batch.rules.log_append_time:
                records = with_max_timestamp(admitted.records, now_ms, log_append_time=True)
                batch.admitted = replace(admitted, records=records, max_timestamp_ms=now_ms)
        waiting = [batch for batch in batches if _has_changed(broker, context, batch)]
    _append(broker, request, context, reply, response, batches)


def _has_changed(broker: Broker, context: RequestContext, batch: _Batch) -> bool:
    """Look up again what a batch was admitted by; return whether it must be admitted again."""
    name, rules = batch.name, batch.rules
    _look_up(broker, context, batch)
    if batch.name is not None and not allows(broker, context, Operation.WRITE, ResourceKind.TOPIC, batch.name):
        batch.admitted = Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "the client may not write to this topic")
        return False
    return (batch.name, batch.rules) != (name, rules)


def _look_up(broker: Broker, context: RequestContext, batch: _Batch) -> None:
    """Find the topic of a batch, and its rules."""
    topic = batch.topic
    by_topic_id = context.version >= BY_TOPIC_ID_SINCE
    batch.name = broker.engine.advice.topic_name(topic.topic_id) if by_topic_id else topic.name
    batch.rules = None if batch.name is None else broker.batch_rules(batch.name)


def _admit_all(
    request: ProduceRequest, batches: list[_Batch], allowance: Allowance, now_ms: int, version: int
) -> list[Admitted | Refused]:
    return [_admit(request, batch, allowance, now_ms, version) for batch in batches]


def _admit(
    request: ProduceRequest, batch: _Batch, allowance: Allowance, now_ms: int, version: int
) -> Admitted | Refused:
    """Return the bytes to be kept, or the reason why the core is not even asked. Raises `NeedsThread`."""
    if batch.name is None:
        return Refused(ErrorCode.UNKNOWN_TOPIC_ID, "no topic has this id")
    if request.acks not in VALID_ACKS:
        return Refused(ErrorCode.INVALID_REQUIRED_ACKS, f"acks must be -1, 0 or 1, not {request.acks}")
    records = batch.data.records
    if records is None:
        return Refused(ErrorCode.INVALID_RECORD, "there are no records")
    assert isinstance(records, memoryview | bytes)
    return admit(
        records,
        batch.rules,
        now_ms,
        allowance,
        transactional_id=request.transactional_id,
        version=TransactionVersion.V2 if version >= REGISTERS_SINCE else TransactionVersion.V1,
    )


def _append(
    broker: Broker,
    request: ProduceRequest,
    context: RequestContext,
    reply: Reply,
    response: ProduceResponse,
    batches: list[_Batch],
) -> None:
    """Ask the core about the admitted batches, and answer."""
    commands: list[Command] = []
    payloads: list[Buffer | None] = []
    asked: list[_Batch] = []
    for batch in batches:
        answer, admitted = batch.answer, batch.admitted
        if isinstance(admitted, Refused):
            answer.error_code = admitted.error_code
            answer.error_message = admitted.reason
            answer.record_errors = _record_errors(admitted.keyless, f"{batch.name}-{batch.data.index}")
            continue
        assert admitted is not None
        assert batch.name is not None
        commands.append(
            AppendBatch(
                topic=batch.name,
                partition=batch.data.index,
                record_count=admitted.record_count,
                size=len(admitted.records),
                max_timestamp_ms=admitted.max_timestamp_ms,
                writer=admitted.writer,
                takes_append_time=batch.rules is not None and batch.rules.log_append_time,
            )
        )
        payloads.append(admitted.records)
        asked.append(batch)

    def done(answers: list[Answer]) -> None:
        for batch, command, outcome in zip(asked, commands, answers, strict=True):
            assert isinstance(command, AppendBatch)
            _fill(broker, batch.answer, command, batch.rules, outcome, context.version)
        _finish(request, response, context, reply)

    if commands:
        broker.submit(context, commands, done, payloads)
    else:  # refused, maybe by a configuration that is not durable yet
        broker.when_durable(context, lambda: _finish(request, response, context, reply))


def _record_errors(keyless: Sequence[int], partition: str) -> list[BatchIndexAndErrorMessage]:
    """Name the records because of which all of their batch is refused (KIP-467)."""
    message = f"Compacted topic cannot accept message without key in topic partition {partition}"
    return [
        BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
        for index in keyless[:MOST_RECORD_ERRORS]
    ]


def _fill(
    broker: Broker,
    answer: PartitionProduceResponse,
    command: AppendBatch,
    rules: BatchRules | None,
    outcome: Answer,
    version: int,
) -> None:
    answer.error_code = error_code(outcome, ApiKey.PRODUCE, version)
    visible = broker.engine.visible(command.topic, command.partition)
    if visible is not None:
        answer.log_start_offset = visible.log_start_offset
    if isinstance(outcome, Appended):
        answer.base_offset = outcome.base_offset
        if outcome.repeated:
            answer.log_append_time_ms = outcome.max_timestamp_ms  # the producer's time, too: as Kafka
        elif rules is not None and rules.log_append_time:
            answer.log_append_time_ms = command.max_timestamp_ms
    elif isinstance(outcome, Rejection):
        answer.error_message = words_of(outcome)


def _finish(request: ProduceRequest, response: ProduceResponse, context: RequestContext, reply: Reply) -> None:
    if request.acks != NO_RESPONSE_ACKS:
        reply(response)
        return
    reply(None)
    codes = {answer.error_code for topic in response.responses for answer in topic.partition_responses}
    codes.discard(ErrorCode.NONE)
    if codes:
        # All that a client with acks=0 can be told: it connects again and asks for metadata.
        names = ", ".join(sorted(ErrorCode(code).name for code in codes))
        context.hang_up(f"a Produce that wants no answer was refused: {names}")


# --- versions 0 to 2: advertised, never served ------------------------------------------------------------------------

_NULL_TRANSACTIONAL_ID = b"\xff\xff"


def answer_unserved(context: RequestContext, body: memoryview) -> list[Buffer] | None:
    """Refuse versions 0 to 2 (message formats of before Kafka 0.11) partition by partition."""
    version = context.version
    if not ADVERTISED_MIN_VERSION <= version < MIN_VERSION:
        return None
    # What version 3 put in front is all that it changed.
    request = decode(ProduceRequest, 3, _NULL_TRANSACTIONAL_ID + bytes(body))
    if request.acks == NO_RESPONSE_ACKS:
        return []
    parts = [struct.pack(">i", len(request.topic_data))]
    for topic in request.topic_data:
        name = topic.name.encode()
        parts.append(struct.pack(f">h{len(name)}si", len(name), name, len(topic.partition_data)))
        for data in topic.partition_data:
            parts.append(struct.pack(">ihq", data.index, _UNSUPPORTED, -1))
            if version >= 2:
                parts.append(struct.pack(">q", -1))  # log append time
    if version >= 1:
        parts.append(struct.pack(">i", 0))  # throttle time
    answer = b"".join(parts)
    return [struct.pack(">ii", len(answer) + 4, context.correlation_id), answer]


def refused(request: ProduceRequest, code: ErrorCode, version: int) -> ProduceResponse | None:
    """Refuse every batch of a request; None where the client wants no answer."""
    if request.acks == NO_RESPONSE_ACKS:
        return None
    return coded(ProduceResponse, NEEDS[1], request, repeat(code), version, {"base_offset": -1})


def hint(broker: Broker, context: RequestContext, response: ProduceResponse) -> None:
    """Tell who leads, in the answer of a follower that has refused every partition."""
    leader, leader_epoch = told_cluster(broker, context)[1:3]
    if leader is None or context.version < LEADER_SINCE:
        return
    for answer in (each for topic in response.responses for each in topic.partition_responses):
        answer.current_leader = LeaderIdAndEpoch(leader_id=leader.node_id, leader_epoch=leader_epoch)
    response.node_endpoints = [NodeEndpoint(**leader._asdict())]


HANDLER = Handler(
    ApiKey.PRODUCE,
    versions=(MIN_VERSION, 13),
    needs=NEEDS,
    at_follower=NOT_LEADER,
    hint=hint,
    handle=handle,
    parts=(divided_by(NEEDS[1], inner="partition_data", inner_answers="partition_responses"),),
    refused=refused,
    answer_unserved=answer_unserved,
    lowest_advertised=ADVERTISED_MIN_VERSION,
)
