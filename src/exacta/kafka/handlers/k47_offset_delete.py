"""OffsetDelete deletes a group's offsets in partitions of topics that none of its members reads (KIP-496)."""

from exacta.core.commands import DeleteOffsets
from exacta.core.replies import OffsetsDeletedReply
from exacta.front.broker import Broker
from exacta.kafka.context import RequestContext
from exacta.kafka.errors import error_code
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Each, Whole, group_id
from exacta.kafka.parts import divided_by
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.ports.log import Answer
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

KEY = ApiKey.OFFSET_DELETE
MIN_VERSION = 0
MAX_VERSION = 0

NEEDS = (
    Whole(Operation.DELETE, ResourceKind.GROUP, group_id),
    Each(Operation.READ, ResourceKind.TOPIC, "topics", "topics"),
)


def handle(broker: Broker, request: OffsetDeleteRequest, context: RequestContext, reply: Reply) -> None:
    """Delete what may be; a partition without an offset is no error."""
    partitions = tuple(
        (topic.name, partition.partition_index) for topic in request.topics for partition in topic.partitions
    )

    def done(answer: Answer) -> None:
        if not isinstance(answer, OffsetsDeletedReply):
            reply(OffsetDeleteResponse(error_code=error_code(answer, KEY, context.version)))
            return
        codes = iter(
            ErrorCode.NONE if rejection is None else error_code(rejection, KEY, context.version)
            for rejection in answer.rejections
        )
        reply(
            OffsetDeleteResponse(
                topics=[
                    OffsetDeleteResponseTopic(
                        name=topic.name,
                        partitions=[
                            OffsetDeleteResponsePartition(
                                partition_index=partition.partition_index, error_code=next(codes)
                            )
                            for partition in topic.partitions
                        ],
                    )
                    for topic in request.topics
                ]
            )
        )

    broker.ask(context, DeleteOffsets(group_id=request.group_id, partitions=partitions), done)


def refused(request: OffsetDeleteRequest, code: ErrorCode, version: int) -> OffsetDeleteResponse:
    """Refuse every partition of a request."""
    return OffsetDeleteResponse(
        topics=[
            OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetDeleteResponsePartition(partition_index=each.partition_index, error_code=code)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


HANDLER = Handler(
    key=KEY,
    min_version=MIN_VERSION,
    max_version=MAX_VERSION,
    needs=NEEDS,
    handle=handle,
    parts=(divided_by(NEEDS[1], inner="partitions", inner_answers="partitions"),),
    refused=refused,
    plain_error=OffsetDeleteResponse,
)
