"""AddPartitionsToTxn registers partitions, all or none; the first one begins the transaction.

From version 4 on it is for brokers among themselves (KIP-890): several transactions in one request, each to be extended
or only looked at. One broker never sends it; tools may.
"""

from collections.abc import Iterable
from typing import Any

from exacta.core.commands import AddPartitions
from exacta.core.ids import ProducerEpoch, ProducerId
from exacta.core.rejections import Rejection
from exacta.core.replies import PartitionsVerified
from exacta.core.values.internal_topics import INTERNAL_TOPICS
from exacta.front.broker import Broker
from exacta.kafka.at_follower import NOT_COORDINATOR
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Each, Whole
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.ports.log import Answer
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k24_add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

SEVERAL_SINCE = 4

TopicPartition = tuple[str, int]


def _transactional_id(request: Any) -> Iterable[str]:
    return (request.v3_and_below_transactional_id,)


def handle(broker: Broker, request: AddPartitionsToTxnRequest, context: RequestContext, reply: Reply) -> None:
    """Register the partitions; an unknown partition refuses its whole transaction, and its others were not tried."""
    transactions = request.transactions
    if context.version < SEVERAL_SINCE:
        transactions = [
            AddPartitionsToTxnTransaction(
                transactional_id=request.v3_and_below_transactional_id,
                producer_id=request.v3_and_below_producer_id,
                producer_epoch=request.v3_and_below_producer_epoch,
                topics=request.v3_and_below_topics,
            )
        ]
    commands = [_command(transaction) for transaction in transactions]

    def done(answers: list[Answer]) -> None:
        results = []
        for transaction, command, answer in zip(transactions, commands, answers, strict=True):
            codes = _codes(broker, command, answer, context)
            results.append(_topic_results(transaction.topics, codes))
        if context.version < SEVERAL_SINCE:
            reply(AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results[0]))
            return
        reply(
            AddPartitionsToTxnResponse(
                results_by_transaction=[
                    AddPartitionsToTxnResult(transactional_id=transaction.transactional_id, topic_results=result)
                    for transaction, result in zip(transactions, results, strict=True)
                ]
            )
        )

    if commands:
        broker.submit(context, commands, done)
    else:
        done([])


def _command(transaction: AddPartitionsToTxnTransaction) -> AddPartitions:
    return AddPartitions(
        transactional_id=transaction.transactional_id,
        producer_id=ProducerId(transaction.producer_id),
        producer_epoch=ProducerEpoch(transaction.producer_epoch),
        partitions=tuple((topic.name, partition) for topic in transaction.topics for partition in topic.partitions),
        verify_only=transaction.verify_only,
    )


def _codes(
    broker: Broker, command: AddPartitions, answer: Answer, context: RequestContext
) -> dict[TopicPartition, ErrorCode]:
    if isinstance(answer, PartitionsVerified):
        return {
            each: ErrorCode.NONE if registered else ErrorCode.TRANSACTION_ABORTABLE
            for each, registered in zip(command.partitions, answer.registered, strict=True)
        }
    if answer is Rejection.UNKNOWN_TOPIC_OR_PARTITION or answer is Rejection.INTERNAL_TOPIC:
        faults = {each: fault for each in command.partitions if (fault := _fault(broker, *each)) is not None}
        if faults:  # else the topic is there by now
            others = dict.fromkeys(command.partitions, ErrorCode.OPERATION_NOT_ATTEMPTED)
            return others | {each: context.error_code(fault) for each, fault in faults.items()}
    return dict.fromkeys(command.partitions, context.error_code(answer))


def _fault(broker: Broker, topic: str, partition: int) -> Rejection | None:
    """Return why this partition can be in no transaction; None: it can."""
    if topic in INTERNAL_TOPICS:
        return Rejection.INTERNAL_TOPIC
    return Rejection.UNKNOWN_TOPIC_OR_PARTITION if broker.engine.visible(topic, partition) is None else None


def _topic_results(
    topics: list[AddPartitionsToTxnTopic], codes: dict[TopicPartition, ErrorCode]
) -> list[AddPartitionsToTxnTopicResult]:
    return [
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


HANDLER = Handler(
    ApiKey.ADD_PARTITIONS_TO_TXN,
    versions=(0, 5),
    needs=(
        Whole(Operation.WRITE, ResourceKind.TRANSACTIONAL_ID, _transactional_id, until=SEVERAL_SINCE - 1),
        Each(
            Operation.WRITE,
            ResourceKind.TOPIC,
            "v3_and_below_topics",
            "results_by_topic_v3_and_below",
            others=ErrorCode.OPERATION_NOT_ATTEMPTED,
        ),
        Whole(Operation.CLUSTER_ACTION, ResourceKind.CLUSTER, since=SEVERAL_SINCE),
    ),
    at_follower=NOT_COORDINATOR,
    handle=handle,
)
