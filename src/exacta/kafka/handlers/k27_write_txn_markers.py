"""WriteTxnMarkers aborts a transaction by producer and partition, as `kafka-transactions.sh abort` asks (KIP-664).

In Kafka coordinators write their markers by it. Here the coordinator needs no request for that, so that only an
operator's abort remains; `exacta.core.transactions.marker` says what it does. A commit is refused: only the
holder of the transactional id may decide that, by EndTxn.
"""

from exacta.core.commands import AbortByMarker
from exacta.core.ids import ProducerEpoch, ProducerId
from exacta.front.broker import Broker
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Whole, or_on_cluster
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.ports.log import Answer
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k27_write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

MOST_AT_ONCE = 1_000
"""The most markers, and partitions in them, of one request. An operator's tool sends one of each, and nothing else
sends this request to a broker that is alone."""


def handle(broker: Broker, request: WriteTxnMarkersRequest, context: RequestContext, reply: Reply) -> None:
    """Abort marker by marker; each partition has its own answer."""
    count = sum(len(topic.partition_indexes) for marker in request.markers for topic in marker.topics)
    if count + len(request.markers) > MOST_AT_ONCE:
        context.hang_up(f"WriteTxnMarkers of {count} partitions in {len(request.markers)} markers")
        return
    if any(marker.transaction_result for marker in request.markers):
        reply(HANDLER.refusal_of_all(request, ErrorCode.INVALID_REQUEST, context.version))
        return
    commands = [
        AbortByMarker(
            producer_id=ProducerId(marker.producer_id),
            producer_epoch=ProducerEpoch(marker.producer_epoch),
            topic=topic.name,
            partition=index,
            client_id=context.client_id,
            client_host=context.client_host,
        )
        for marker in request.markers
        for topic in marker.topics
        for index in topic.partition_indexes
    ]

    def done(answers: list[Answer]) -> None:
        reply(_response(request.markers, [context.error_code(answer) for answer in answers]))

    broker.submit(context, commands, done)


def _response(markers: list[WritableTxnMarker], codes: list[ErrorCode]) -> WriteTxnMarkersResponse:
    in_order = iter(codes)
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(partition_index=index, error_code=next(in_order))
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in markers
        ]
    )


HANDLER = Handler(
    ApiKey.WRITE_TXN_MARKERS,
    versions=(1, 2),
    needs=(Whole(Operation.ALTER, ResourceKind.CLUSTER, instead=or_on_cluster(Operation.CLUSTER_ACTION)),),
    handle=handle,
)
