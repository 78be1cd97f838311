"""LeaveGroup: a member goes, the others need not wait for its session to end."""

from exacta.core.commands import LeaveGroup
from exacta.kafka.broker import BrokerContext
from exacta.kafka.context import RequestContext
from exacta.kafka.errors import error_code
from exacta.kafka.handler import Reply
from exacta.kafka.keys import ApiKey
from exacta.protocol.messages.k13_leave_group import LeaveGroupRequest, LeaveGroupResponse

KEY = ApiKey.LEAVE_GROUP
MIN_VERSION = 0
MAX_VERSION = 2
NEWER = "3 lets several members leave at once, for static members (KIP-345)"
PLAIN_ERROR = LeaveGroupResponse


def handle(broker: BrokerContext, request: LeaveGroupRequest, context: RequestContext, reply: Reply) -> None:
    """Pass it on."""
    broker.ask(
        context,
        LeaveGroup(group_id=request.group_id, member_id=request.member_id),
        lambda answer: reply(LeaveGroupResponse(error_code=error_code(answer, KEY, context.version))),
    )
