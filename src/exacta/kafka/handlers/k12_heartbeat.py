"""Heartbeat: a member lives, and learns of a rebalance."""

from exacta.core.commands import Heartbeat
from exacta.kafka.broker import BrokerContext
from exacta.kafka.context import RequestContext
from exacta.kafka.errors import error_code
from exacta.kafka.handler import Reply
from exacta.kafka.keys import ApiKey
from exacta.protocol.kafka.messages.k12_heartbeat import HeartbeatRequest, HeartbeatResponse

KEY = ApiKey.HEARTBEAT
MIN_VERSION = 0
MAX_VERSION = 4
PLAIN_ERROR = HeartbeatResponse


def handle(broker: BrokerContext, request: HeartbeatRequest, context: RequestContext, reply: Reply) -> None:
    """Pass it on."""
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
