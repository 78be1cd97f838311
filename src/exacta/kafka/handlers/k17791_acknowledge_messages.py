"""AcknowledgeMessages acknowledges messages of Pulsar's subscriptions in a transaction (decision 0040). Exacta's own.

A message is named by the numbers of its id, so that each client that knows the id may ask, whichever client has
received the message. `k17784_end_transactions` says why our own keys begin where they do.
"""

from typing import NamedTuple

from exacta.core.commands import Acknowledge
from exacta.core.ids import Offset, PartitionId, TransactionId
from exacta.core.rejections import Rejection
from exacta.engine.engine import Answer
from exacta.front.broker import Broker
from exacta.kafka.access import allows
from exacta.kafka.context import RequestContext
from exacta.kafka.errors import error_code
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Inside
from exacta.kafka.parts import Parts
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k17791_acknowledge_messages import (
    AcknowledgedPartition,
    AcknowledgedSubscription,
    AcknowledgeMessagesRequest,
    AcknowledgeMessagesResponse,
    PartitionToAcknowledge,
)

KEY = ApiKey.ACKNOWLEDGE_MESSAGES
MIN_VERSION = 0
MAX_VERSION = 0

NEEDS = (Inside(Operation.READ, ResourceKind.TOPIC),)


class _Asked(NamedTuple):
    """A command, and the place in the answer for what becomes of it."""

    command: Acknowledge
    result: AcknowledgedPartition


def handle(broker: Broker, request: AcknowledgeMessagesRequest, context: RequestContext, reply: Reply) -> None:
    """Acknowledge in each partition for itself; a repeat is answered like the first time."""
    asked: list[_Asked] = []
    response = AcknowledgeMessagesResponse()
    for subscription in request.subscriptions:
        results = []
        for each in subscription.partitions:
            result = AcknowledgedPartition(partition_id=each.partition_id)
            found = _command(broker, context, request.transaction_id, subscription.name, each)
            if isinstance(found, Acknowledge):
                asked.append(_Asked(found, result))
            else:
                result.error_code = found
            results.append(result)
        response.subscriptions.append(AcknowledgedSubscription(name=subscription.name, partitions=results))

    def done(answers: list[Answer]) -> None:
        for each, answer in zip(asked, answers, strict=True):
            each.result.error_code = error_code(answer, KEY, context.version)
        reply(response)

    if asked:
        broker.submit(context, [each.command for each in asked], done)
    else:
        done([])


def _command(
    broker: Broker, context: RequestContext, transaction_id: int, name: str, wanted: PartitionToAcknowledge
) -> Acknowledge | ErrorCode:
    place = broker.engine.present.place(PartitionId(wanted.partition_id))
    if place is None:
        return error_code(Rejection.SUBSCRIPTION_NOT_FOUND, KEY, context.version)
    topic, partition = place
    if not allows(broker, context, Operation.READ, ResourceKind.TOPIC, topic):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return Acknowledge(
        topic=topic,
        partition=partition,
        subscription=name,
        runs=tuple((Offset(each.first_offset), Offset(each.last_offset)) for each in wanted.runs),
        transaction=TransactionId(transaction_id),
        may_repeat=True,
    )


HANDLER = Handler(
    key=KEY,
    min_version=MIN_VERSION,
    max_version=MAX_VERSION,
    needs=NEEDS,
    handle=handle,
    parts=(Parts("subscriptions", "subscriptions", inner="partitions", inner_answers="partitions"),),
    plain_error=AcknowledgeMessagesResponse,
)
