"""The follower that a consumer is told to read from, because it is near: in the consumer's rack (KIP-392).

The leader names it instead of reading, and the consumer asks there until its metadata is old. As in Apache Kafka, no
follower is named to a consumer in the leader's own rack, nor for an offset that is not in the log. A follower that
lags says OFFSET_NOT_AVAILABLE, and is asked again in a moment. One that does not follow at all is no live broker.
"""

from collections.abc import Sequence

from exacta.front.broker import Broker
from exacta.kafka.context import RequestContext
from exacta.kafka.fetch_refusals import FOLLOWERS_SINCE
from exacta.kafka.fetch_sessions import Asked
from exacta.kafka.nodes import NOBODY, told_cluster
from exacta.protocol.kafka.messages.k01_fetch import FetchRequest


def near_followers(broker: Broker, request: FetchRequest, context: RequestContext) -> Sequence[int]:
    """Return the node ids of the followers from which the client of a request should read; none at a follower."""
    if not request.rack_id or context.version < FOLLOWERS_SINCE or not broker.cluster.leads:
        return ()
    cluster = told_cluster(broker, context)
    if cluster.leader is None or cluster.leader.rack == request.rack_id:
        return ()
    return [node.node_id for node in cluster.nodes if node.rack == request.rack_id]


def preferred_replica(broker: Broker, near: Sequence[int], asked: Asked) -> int:
    """Return one of them for a partition, each for its share of the partitions; -1 where the leader answers itself."""
    visible = None if asked.wanted is None else broker.engine.visible(asked.topic or "", asked.partition)
    if visible is None or not visible.log_start_offset <= asked.fetch_offset <= visible.high_watermark:
        return NOBODY
    return near[asked.partition % len(near)]
