"""AcknowledgeMessages acknowledges messages of Pulsar's subscriptions in a transaction (decision 0040). Exacta's own.

A message is named by the numbers of its id, so that each client that knows the id may ask, whichever client has
received the message. `k17784_end_transactions` says why our own keys begin where they do.
"""

from typing import NamedTuple

from exacta.core.commands import Acknowledge
from exacta.core.ids import Offset, PartitionId, TransactionId
from exacta.core.rejections import Rejection
from exacta.front.broker import Broker
from exacta.front.transaction_rights import lacking_for
from exacta.kafka.access import allows
from exacta.kafka.at_follower import NOT_CONTROLLER
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Inside
from exacta.kafka.parts import Parts
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.ports.log import Answer
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k17791_acknowledge_messages import (
    AcknowledgedPartition,
    AcknowledgedSubscription,
    AcknowledgeMessagesRequest,
    AcknowledgeMessagesResponse,
    PartitionToAcknowledge,
)


class _Asked(NamedTuple):
    """A command, and the place in the answer for what becomes of it."""

    command: Acknowledge
    result: AcknowledgedPartition


def handle(broker: Broker, request: AcknowledgeMessagesRequest, context: RequestContext, reply: Reply) -> None:
    """Acknowledge in each partition for itself; a repeat is answered like the first time."""
    asked: list[_Asked] = []
    response = AcknowledgeMessagesResponse()
    may_use_it = lacking_for(broker, context, TransactionId(request.transaction_id)) is None
    for subscription in request.subscriptions:
        results = []
        for each in subscription.partitions:
            result = AcknowledgedPartition(partition_id=each.partition_id)
            found = _command(broker, context, request.transaction_id, subscription.name, each, may_use_it=may_use_it)
            if isinstance(found, Acknowledge):
                asked.append(_Asked(found, result))
            else:
                result.error_code = found
            results.append(result)
        response.subscriptions.append(AcknowledgedSubscription(name=subscription.name, partitions=results))

    def done(answers: list[Answer]) -> None:
        for each, answer in zip(asked, answers, strict=True):
            each.result.error_code = context.error_code(answer)
        reply(response)

    if asked:
        broker.submit(context, [each.command for each in asked], done)
    else:  # a partition that is not there may be one whose deletion is not durable yet
        broker.when_durable(context, lambda: done([]))


def _command(
    broker: Broker,
    context: RequestContext,
    transaction_id: int,
    name: str,
    wanted: PartitionToAcknowledge,
    *,
    may_use_it: bool,
) -> Acknowledge | ErrorCode:
    place = broker.engine.advice.place(PartitionId(wanted.partition_id))
    if place is None:
        return context.error_code(Rejection.SUBSCRIPTION_NOT_FOUND)
    topic, partition = place
    if not allows(broker, context, Operation.READ, ResourceKind.TOPIC, topic):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if not allows(broker, context, Operation.READ, ResourceKind.GROUP, name):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    if not may_use_it:
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return Acknowledge(
        topic=topic,
        partition=partition,
        subscription=name,
        runs=tuple((Offset(each.first_offset), Offset(each.last_offset)) for each in wanted.runs),
        transaction=TransactionId(transaction_id),
        may_repeat=True,
    )


HANDLER = Handler(
    ApiKey.ACKNOWLEDGE_MESSAGES,
    versions=(0, 0),
    needs=(
        Inside(Operation.READ, ResourceKind.TOPIC),
        Inside(Operation.READ, ResourceKind.GROUP),
        Inside(Operation.WRITE, ResourceKind.TRANSACTIONAL_ID),  # or `lacking_for` finds another right
    ),
    at_follower=NOT_CONTROLLER,
    handle=handle,
    parts=(Parts("subscriptions", "subscriptions", inner="partitions", inner_answers="partitions"),),
)
