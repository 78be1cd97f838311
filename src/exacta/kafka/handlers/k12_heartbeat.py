"""Heartbeat keeps a member alive and tells it of a rebalance."""

from exacta.core.commands import Heartbeat
from exacta.front.broker import Broker
from exacta.kafka.context import RequestContext
from exacta.kafka.errors import error_code
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Whole, group_id
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.messages.k12_heartbeat import HeartbeatRequest, HeartbeatResponse

KEY = ApiKey.HEARTBEAT
MIN_VERSION = 0
MAX_VERSION = 4

NEEDS = (Whole(Operation.READ, ResourceKind.GROUP, group_id),)


def handle(broker: Broker, request: HeartbeatRequest, context: RequestContext, reply: Reply) -> None:
    """Pass the heartbeat on to the core."""
    broker.ask(
        context,
        Heartbeat(
            group_id=request.group_id,
            member_id=request.member_id,
            generation=request.generation_id,
            instance_id=request.group_instance_id,
        ),
        lambda answer: reply(HeartbeatResponse(error_code=error_code(answer, KEY, context.version))),
    )


HANDLER = Handler(
    key=KEY,
    min_version=MIN_VERSION,
    max_version=MAX_VERSION,
    needs=NEEDS,
    handle=handle,
    plain_error=HeartbeatResponse,
)
