"""TxnOffsetCommit stores a group's positions in a transaction, fenced by member and generation (KIP-447)."""

from exacta.core.commands import CommitTransactionalOffsets
from exacta.core.ids import ProducerEpoch, ProducerId, TransactionVersion
from exacta.front.broker import Broker
from exacta.kafka.at_follower import NOT_COORDINATOR
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Each, Whole, group_id, transactional_id
from exacta.kafka.offsets_to_commit import CommitApi, commit
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.messages.k28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

REGISTERS_SINCE = 5
"""The first version in which the request registers its group with the transaction (KIP-890)."""
TOPIC_IDS_SINCE = 6

_API = CommitApi(
    TxnOffsetCommitResponse, TxnOffsetCommitResponseTopic, TxnOffsetCommitResponsePartition, TOPIC_IDS_SINCE
)


def handle(broker: Broker, request: TxnOffsetCommitRequest, context: RequestContext, reply: Reply) -> None:
    """Put the offsets into the open transaction."""
    context.shared.lost_coordinators.went_on(request.transactional_id)
    commit(
        _API,
        broker,
        context,
        request,
        lambda offsets: CommitTransactionalOffsets(
            transactional_id=request.transactional_id,
            producer_id=ProducerId(request.producer_id),
            producer_epoch=ProducerEpoch(request.producer_epoch),
            group_id=request.group_id,
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            generation=request.generation_id,
            offsets=offsets,
            version=TransactionVersion.V2 if context.version >= REGISTERS_SINCE else TransactionVersion.V1,
        ),
        reply,
    )


HANDLER = Handler(
    ApiKey.TXN_OFFSET_COMMIT,
    versions=(0, 6),
    needs=(
        Whole(Operation.WRITE, ResourceKind.TRANSACTIONAL_ID, transactional_id),
        Whole(Operation.READ, ResourceKind.GROUP, group_id),
        Each(Operation.READ, ResourceKind.TOPIC, "topics", "topics"),
    ),
    at_follower=NOT_COORDINATOR,
    handle=handle,
)
