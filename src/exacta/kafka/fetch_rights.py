"""The rights that a fetch needs, one partition at a time: asked for when it comes, and when it has waited."""

from collections.abc import Iterable

from msgspec.structs import replace

from exacta.front.broker import Broker
from exacta.kafka.access import allows
from exacta.kafka.context import RequestContext
from exacta.kafka.fetch_sessions import Asked
from exacta.ports.authorizer import CLUSTER, Operation, ResourceKind
from exacta.protocol.kafka.errors import ErrorCode


def take_out_unreadable(
    broker: Broker, context: RequestContext, partitions: Iterable[Asked], *, is_replica: bool
) -> tuple[list[Asked], list[Asked]]:
    """Return the partitions that the client may read, and the others, refused, which are not looked at.

    A replica needs a right on the cluster instead. An id that no topic has is answered as such.
    """
    operation, kind = Operation.READ, ResourceKind.TOPIC
    if is_replica:
        operation, kind = Operation.CLUSTER_ACTION, ResourceKind.CLUSTER
    readable: list[Asked] = []
    refused: list[Asked] = []
    for asked in partitions:
        name = CLUSTER.name if is_replica else asked.topic
        if name is None or allows(broker, context, operation, kind, name):
            readable.append(asked)
        else:
            asked.sent = None  # a session tells its reader what follows an error
            refused.append(replace(asked, refused=ErrorCode.TOPIC_AUTHORIZATION_FAILED, wanted=None))
    return readable, refused
