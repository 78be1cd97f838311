"""OffsetDelete deletes a group's offsets in partitions of topics that none of its members reads (KIP-496)."""

from exacta.core.commands import DeleteOffsets
from exacta.core.replies import DONE, OffsetsDeletedReply
from exacta.front.broker import Broker
from exacta.kafka.at_follower import NOT_COORDINATOR
from exacta.kafka.coded_answers import coded
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Each, Whole, group_id
from exacta.kafka.parts import divided_by
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.ports.log import Answer
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.messages.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
)

NEEDS = (
    Whole(Operation.DELETE, ResourceKind.GROUP, group_id),
    Each(Operation.READ, ResourceKind.TOPIC, "topics", "topics", asks_without=True),
)


def handle(broker: Broker, request: OffsetDeleteRequest, context: RequestContext, reply: Reply) -> None:
    """Delete what may be; a partition without an offset is no error."""
    partitions = tuple(
        (topic.name, partition.partition_index) for topic in request.topics for partition in topic.partitions
    )

    def done(answer: Answer) -> None:
        if not isinstance(answer, OffsetsDeletedReply):
            reply(OffsetDeleteResponse(error_code=context.error_code(answer)))
            return
        codes = (context.error_code(DONE if each is None else each) for each in answer.rejections)
        reply(coded(OffsetDeleteResponse, NEEDS[1], request, codes, context.version))

    broker.ask(context, DeleteOffsets(group_id=request.group_id, partitions=partitions), done)


HANDLER = Handler(
    ApiKey.OFFSET_DELETE,
    versions=(0, 0),
    needs=NEEDS,
    at_follower=NOT_COORDINATOR,
    handle=handle,
    parts=(divided_by(NEEDS[1], inner="partitions", inner_answers="partitions"),),
)
