"""Ending several transactions in one durable step, where the coordinator can: EndTransactions, Exacta's own API.

This module owns the shape of the request, and the question whether it may be sent. Every broker answers that for itself
when a connection begins (ApiVersions); nothing else tells an Exacta from another Kafka.
"""

from collections.abc import Collection, Mapping

from exacta.client.deadline import Deadline
from exacta.client.errors import KafkaError
from exacta.client.routing import TRANSACTION, Client, Coordinator
from exacta.client.transactions import Producer, TopicPartition, by_topic
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k17784_end_transactions import (
    EndTransactionsRequest,
    TransactionToEnd,
    TransactionToEndTopic,
)


def can_end_at_once(client: Client, producer: Producer, deadline: Deadline | None = None) -> bool:
    """Return whether the coordinator of `producer` offers to end several transactions in one step."""
    return client.offers(Coordinator(TRANSACTION, producer.transactional_id), EndTransactionsRequest(), deadline)


def end_transactions_at_once(
    client: Client,
    written: Mapping[Producer, Collection[TopicPartition]],
    *,
    commit: bool,
    deadline: Deadline | None = None,
) -> dict[Producer, KafkaError]:
    """Commit or abort a set of transactions, all or none; return those that stood in the way, none if all ended.

    `written` names with each transaction partitions that it must have written to. A repeat after a lost answer is
    answered as the first time, unless one of the set has gone on or was fenced since: then it stands in the way,
    although all may have ended. Raises `KafkaError` POLICY_VIOLATION if they are too many for one step, and
    `UnsupportedByBroker`.
    """
    by_id = {producer.transactional_id: producer for producer in written}
    first = next(iter(by_id))
    response = client.call(
        Coordinator(TRANSACTION, first),
        EndTransactionsRequest(
            committed=commit, transactions=[_to_end(producer, partitions) for producer, partitions in written.items()]
        ),
        what=f"{'committing' if commit else 'aborting'} {len(written)} transactions at once",
        codes=lambda reply: () if reply.error_code == ErrorCode.OPERATION_NOT_ATTEMPTED else (reply.error_code,),
        deadline=deadline,
    )
    return {
        by_id[entry.transactional_id]: KafkaError(
            entry.error_code, f"ending the transaction of '{entry.transactional_id}' with others"
        )
        for entry in response.refused
    }


def _to_end(producer: Producer, partitions: Collection[TopicPartition]) -> TransactionToEnd:
    return TransactionToEnd(
        transactional_id=producer.transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        topics=[
            TransactionToEndTopic(name=topic, partitions=sorted(indexes))
            for topic, indexes in sorted(by_topic(partitions).items())
        ],
    )
