"""WriteTxnMarkers aborts a transaction by producer and partition, as `kafka-transactions.sh abort` asks (KIP-664).

In Kafka coordinators write their markers by it. Here the coordinator needs no request for that, so that only an
operator's abort remains; `exacta.core.transactions.marker` says what it does. A commit is refused: only the
holder of the transactional id may decide that, by EndTxn.
"""

from exacta.core.commands import AbortByMarker
from exacta.core.ids import ProducerEpoch, ProducerId
from exacta.front.broker import Broker
from exacta.kafka.at_follower import NOT_LEADER
from exacta.kafka.coded_answers import Elements, coded
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Whole, or_on_cluster
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.ports.log import Answer
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k27_write_txn_markers import (
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
        codes = map(context.error_code, answers)
        reply(coded(WriteTxnMarkersResponse, Elements("markers", "markers"), request, codes, context.version))

    broker.submit(context, commands, done)


HANDLER = Handler(
    ApiKey.WRITE_TXN_MARKERS,
    versions=(1, 2),
    needs=(Whole(Operation.ALTER, ResourceKind.CLUSTER, instead=or_on_cluster(Operation.CLUSTER_ACTION)),),
    at_follower=NOT_LEADER,
    handle=handle,
)
