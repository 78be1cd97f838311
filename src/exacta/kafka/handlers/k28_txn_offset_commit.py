"""TxnOffsetCommit: a group's positions as part of a transaction, fenced by member and generation (KIP-447)."""

from exacta.core.commands import CommitTransactionalOffsets
from exacta.core.ids import ProducerEpoch, ProducerId, TransactionVersion
from exacta.kafka.broker import BrokerContext
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Reply
from exacta.kafka.keys import ApiKey
from exacta.kafka.offsets_to_commit import CommitApi, commit
from exacta.protocol.kafka.messages.k28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

KEY = ApiKey.TXN_OFFSET_COMMIT
MIN_VERSION = 0
MAX_VERSION = 6
REGISTERS_SINCE = 5
"""It registers its group with the transaction (KIP-890)."""
TOPIC_IDS_SINCE = 6

_API = CommitApi(
    KEY, TxnOffsetCommitResponse, TxnOffsetCommitResponseTopic, TxnOffsetCommitResponsePartition, TOPIC_IDS_SINCE
)


def handle(broker: BrokerContext, request: TxnOffsetCommitRequest, context: RequestContext, reply: Reply) -> None:
    """Put the offsets into the open transaction."""
    broker.lost_coordinators.went_on(request.transactional_id)
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
