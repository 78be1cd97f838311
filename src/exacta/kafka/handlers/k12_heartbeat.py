"""Heartbeat keeps a member alive and tells it of a rebalance."""

from exacta.core.commands import Heartbeat
from exacta.front.broker import Broker
from exacta.kafka.at_follower import NOT_COORDINATOR
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Whole, group_id
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.messages.k12_heartbeat import HeartbeatRequest, HeartbeatResponse


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
        lambda answer: reply(HeartbeatResponse(error_code=context.error_code(answer))),
    )


HANDLER = Handler(
    ApiKey.HEARTBEAT,
    versions=(0, 4),
    needs=(Whole(Operation.READ, ResourceKind.GROUP, group_id),),
    at_follower=NOT_COORDINATOR,
    handle=handle,
)
