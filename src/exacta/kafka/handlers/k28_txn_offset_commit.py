"""TxnOffsetCommit: a group's positions as part of a transaction, fenced by member and generation (KIP-447)."""

from exacta.core.commands import CommitTransactionalOffsets
from exacta.core.ids import ProducerEpoch, ProducerId
from exacta.engine.engine import Answer
from exacta.kafka.broker import BrokerContext
from exacta.kafka.context import RequestContext
from exacta.kafka.errors import error_code
from exacta.kafka.handler import Reply
from exacta.kafka.keys import ApiKey
from exacta.kafka.offsets_to_commit import commit, offset_to_commit
from exacta.protocol.messages.k28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

KEY = ApiKey.TXN_OFFSET_COMMIT
MIN_VERSION = 0
MAX_VERSION = 4


def handle(broker: BrokerContext, request: TxnOffsetCommitRequest, context: RequestContext, reply: Reply) -> None:
    """Put the offsets into the open transaction."""
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
            TxnOffsetCommitResponse(
                topics=[
                    TxnOffsetCommitResponseTopic(
                        name=topic.name,
                        partitions=[
                            TxnOffsetCommitResponsePartition(
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
        lambda some: CommitTransactionalOffsets(
            transactional_id=request.transactional_id,
            producer_id=ProducerId(request.producer_id),
            producer_epoch=ProducerEpoch(request.producer_epoch),
            group_id=request.group_id,
            member_id=request.member_id,
            generation=request.generation_id,
            offsets=some,
        ),
        done,
    )
