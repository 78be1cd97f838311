"""OffsetCommit: a group's positions, outside any transaction."""

from exacta.core.commands import CommitOffsets
from exacta.engine.engine import Answer
from exacta.kafka.broker import BrokerContext
from exacta.kafka.context import RequestContext
from exacta.kafka.errors import error_code
from exacta.kafka.handler import Reply
from exacta.kafka.keys import ApiKey
from exacta.kafka.offsets_to_commit import commit, offset_to_commit
from exacta.protocol.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

KEY = ApiKey.OFFSET_COMMIT
MIN_VERSION = 2
MAX_VERSION = 6  # 7 brings static membership


def handle(broker: BrokerContext, request: OffsetCommitRequest, context: RequestContext, reply: Reply) -> None:
    """Commit; retention times (versions 2 to 4) are ignored, as newer Kafka does."""
    offsets = [
        offset_to_commit(
            topic.name,
            partition.partition_index,
            partition.committed_offset,
            partition.committed_leader_epoch,
            partition.committed_metadata,
        )
        for topic in request.topics
        for partition in topic.partitions
    ]

    def done(answers: list[Answer]) -> None:
        codes = (error_code(answer, KEY, context.version) for answer in answers)
        reply(
            OffsetCommitResponse(
                topics=[
                    OffsetCommitResponseTopic(
                        name=topic.name,
                        partitions=[
                            OffsetCommitResponsePartition(
                                partition_index=partition.partition_index, error_code=next(codes)
                            )
                            for partition in topic.partitions
                        ],
                    )
                    for topic in request.topics
                ]
            )
        )

    commit(
        broker,
        context,
        offsets,
        lambda some: CommitOffsets(
            group_id=request.group_id,
            member_id=request.member_id,
            generation=request.generation_id_or_member_epoch,
            offsets=some,
        ),
        done,
    )
