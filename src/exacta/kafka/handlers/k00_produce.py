"""Produce appends record batches. It checks the bytes here; the core checks the rest (decision D5)."""

import struct
from collections.abc import Sequence

from exacta.core.commands import AppendBatch, Command
from exacta.core.ids import TransactionVersion
from exacta.core.rejections import Rejection
from exacta.core.replies import Appended
from exacta.engine.engine import Answer
from exacta.front.words import words_of
from exacta.kafka.broker import BrokerContext
from exacta.kafka.context import RequestContext
from exacta.kafka.errors import error_code
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Each, Whole, transactional_id
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.ports.record_format import Buffer
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.codec import decode
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k00_produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from exacta.records.admission import Allowance, BatchRules, Refused, admit

KEY = ApiKey.PRODUCE
MIN_VERSION = 3
MAX_VERSION = 13
BY_TOPIC_ID_SINCE = 13
REGISTERS_SINCE = 12
"""The first version in which a transactional write registers its partition with the transaction (KIP-890)."""
ADVERTISED_MIN_VERSION = 0
"""librdkafka takes a broker that does not advertise version 0 for one of before 0.8, and speaks accordingly."""

NO_RESPONSE_ACKS = 0
VALID_ACKS = (-1, 0, 1)
MOST_RECORD_ERRORS = 100
"""The bound on the records of one batch that are named: the text about one is longer than a record without a key."""
_UNSUPPORTED = int(ErrorCode.UNSUPPORTED_VERSION)

NEEDS = (
    Whole(Operation.WRITE, ResourceKind.TRANSACTIONAL_ID, transactional_id),
    Each(Operation.WRITE, ResourceKind.TOPIC, "topic_data", "responses"),
)


def handle(broker: BrokerContext, request: ProduceRequest, context: RequestContext, reply: Reply) -> None:
    """Answer once every accepted batch is durable, or written into an open transaction, whatever `acks` says."""
    commands: list[Command] = []
    payloads: list[Buffer | None] = []
    asked: list[tuple[PartitionProduceResponse, BatchRules | None]] = []
    now_ms = broker.wall_ms()
    allowance = Allowance()
    response = ProduceResponse(responses=[])
    by_topic_id = context.version >= BY_TOPIC_ID_SINCE
    for topic in request.topic_data:
        name = broker.engine.present.topic_name(topic.topic_id) if by_topic_id else topic.name
        rules = None if name is None else broker.batch_rules(name)
        partitions: list[PartitionProduceResponse] = []
        for data in topic.partition_data:
            answer = PartitionProduceResponse(index=data.index, base_offset=-1)
            partitions.append(answer)
            found = _command(request, name, data, rules, allowance, now_ms, context.version)
            if isinstance(found, Refused):
                answer.error_code = found.error_code
                answer.error_message = found.reason
                answer.record_errors = _record_errors(found.keyless, f"{name}-{data.index}")
            else:
                commands.append(found[0])
                payloads.append(found[1])
                asked.append((answer, rules))
        response.responses.append(
            TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=partitions)
        )

    def done(answers: list[Answer]) -> None:
        for (answer, rules), command, outcome in zip(asked, commands, answers, strict=True):
            assert isinstance(command, AppendBatch)
            _fill(broker, answer, command, rules, outcome, context.version)
        _finish(request, response, context, reply)

    if commands:
        broker.submit(context, commands, done, payloads)
    else:  # refused, maybe by a configuration that is not durable yet
        broker.when_durable(context, lambda: _finish(request, response, context, reply))


def _command(
    request: ProduceRequest,
    topic: str | None,
    data: PartitionProduceData,
    rules: BatchRules | None,
    allowance: Allowance,
    now_ms: int,
    version: int,
) -> tuple[AppendBatch, Buffer] | Refused:
    """Return the command and the bytes to be kept, or the reason why the core is not even asked."""
    if topic is None:
        return Refused(ErrorCode.UNKNOWN_TOPIC_ID, "no topic has this id")
    if request.acks not in VALID_ACKS:
        return Refused(ErrorCode.INVALID_REQUIRED_ACKS, f"acks must be -1, 0 or 1, not {request.acks}")
    records = data.records
    if records is None:
        return Refused(ErrorCode.INVALID_RECORD, "there are no records")
    assert isinstance(records, memoryview | bytes)
    admitted = admit(
        records,
        rules,
        now_ms,
        allowance,
        transactional_id=request.transactional_id,
        version=TransactionVersion.V2 if version >= REGISTERS_SINCE else TransactionVersion.V1,
    )
    if isinstance(admitted, Refused):
        return admitted
    command = AppendBatch(
        topic=topic,
        partition=data.index,
        record_count=admitted.record_count,
        size=len(admitted.records),
        max_timestamp_ms=admitted.max_timestamp_ms,
        writer=admitted.writer,
        takes_append_time=rules is not None and rules.log_append_time,
    )
    return command, admitted.records


def _record_errors(keyless: Sequence[int], partition: str) -> list[BatchIndexAndErrorMessage]:
    """Name the records because of which all of their batch is refused (KIP-467)."""
    message = f"Compacted topic cannot accept message without key in topic partition {partition}"
    return [
        BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
        for index in keyless[:MOST_RECORD_ERRORS]
    ]


def _fill(
    broker: BrokerContext,
    answer: PartitionProduceResponse,
    command: AppendBatch,
    rules: BatchRules | None,
    outcome: Answer,
    version: int,
) -> None:
    answer.error_code = error_code(outcome, KEY, version)
    visible = broker.engine.visible(command.topic, command.partition)
    if visible is not None:
        answer.log_start_offset = visible.log_start_offset
    if isinstance(outcome, Appended):
        answer.base_offset = outcome.base_offset
        if outcome.repeated:
            answer.log_append_time_ms = outcome.max_timestamp_ms  # whoever's time it is: as Kafka
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
        # All that a client with acks=0 can be told: it connects anew and asks for metadata.
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
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    PartitionProduceResponse(index=data.index, error_code=code, base_offset=-1)
                    for data in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )


HANDLER = Handler(
    key=KEY,
    min_version=MIN_VERSION,
    max_version=MAX_VERSION,
    needs=NEEDS,
    handle=handle,
    refused=refused,
    answer_unserved=answer_unserved,
    lowest_advertised=ADVERTISED_MIN_VERSION,
)
