"""AddPartitionsToTxn: register partitions, all or none; begins the transaction."""

from exacta.core.commands import AddPartitions
from exacta.core.ids import ProducerEpoch, ProducerId
from exacta.core.rejections import Rejection
from exacta.engine.engine import Answer
from exacta.kafka.broker import BrokerContext
from exacta.kafka.context import RequestContext
from exacta.kafka.errors import error_code
from exacta.kafka.handler import Reply
from exacta.kafka.keys import ApiKey
from exacta.protocol.errors import ErrorCode
from exacta.protocol.messages.k24_add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)

KEY = ApiKey.ADD_PARTITIONS_TO_TXN
MIN_VERSION = 0
MAX_VERSION = 3  # 4 and above are for brokers among themselves (KIP-890)


def handle(broker: BrokerContext, request: AddPartitionsToTxnRequest, context: RequestContext, reply: Reply) -> None:
    """Register; an unknown partition refuses all, and the others are told that they were not tried."""
    topics = request.v3_and_below_topics
    partitions = tuple((topic.name, partition) for topic in topics for partition in topic.partitions)

    def done(answer: Answer) -> None:
        code = error_code(answer, KEY, context.version)
        codes = dict.fromkeys(partitions, code)
        if answer is Rejection.UNKNOWN_TOPIC_OR_PARTITION:
            known = [each for each in partitions if broker.engine.visible(*each) is not None]
            if len(known) < len(partitions):
                codes.update(dict.fromkeys(known, ErrorCode.OPERATION_NOT_ATTEMPTED))
        reply(
            AddPartitionsToTxnResponse(
                results_by_topic_v3_and_below=[
                    AddPartitionsToTxnTopicResult(
                        name=topic.name,
                        results_by_partition=[
                            AddPartitionsToTxnPartitionResult(
                                partition_index=partition, partition_error_code=codes[topic.name, partition]
                            )
                            for partition in topic.partitions
                        ],
                    )
                    for topic in topics
                ]
            )
        )

    broker.ask(
        context,
        AddPartitions(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=ProducerId(request.v3_and_below_producer_id),
            producer_epoch=ProducerEpoch(request.v3_and_below_producer_epoch),
            partitions=partitions,
        ),
        done,
    )
