"""Aborting a transaction by a marker in one of its partitions, as `kafka-transactions.sh abort` does (KIP-664)."""

from exacta.client.deadline import Deadline
from exacta.client.routing import Client, Leader
from exacta.client.transactions import TopicPartition
from exacta.protocol.kafka.messages.k27_write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)


def abort_by_marker(
    client: Client, at: TopicPartition, producer_id: int, producer_epoch: int, deadline: Deadline | None = None
) -> None:
    """Abort what this producer has open in the partition; raises what `Client.call` raises.

    Exacta aborts the whole transaction (decision 0014). Apache Kafka would abort it in this partition only.
    """
    marker = WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=at.topic, partition_indexes=[at.partition])],
    )
    client.call(
        Leader(*at),
        WriteTxnMarkersRequest(markers=[marker]),
        what=f"writing an abort marker to {at.topic}-{at.partition}",
        codes=lambda reply: (
            partition.error_code for each in reply.markers for topic in each.topics for partition in topic.partitions
        ),
        deadline=deadline or client.deadline(),
    )
