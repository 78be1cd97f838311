"""MoveLead lets another broker lead the log, as an operator wants before the machine of the leader is taken down.

The request names the epoch that is to end. So a client that has lost the answer may ask again, and does not move the
lead of the next leader. The answer says that the lead will move; Ask tells when it has.
`k17784_end_transactions` says why our own keys begin where they do.
"""

from exacta.front.broker import Broker
from exacta.kafka.at_follower import NOT_CONTROLLER
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Whole
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.ports.cluster import Unmovable
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k17793_move_lead import MoveLeadRequest, MoveLeadResponse

_CODES = {
    Unmovable.ALONE: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
    Unmovable.UNKNOWN: ErrorCode.BROKER_ID_NOT_REGISTERED,
    Unmovable.NOT_LEADING: ErrorCode.NOT_CONTROLLER,
}


def handle(broker: Broker, request: MoveLeadRequest, context: RequestContext, reply: Reply) -> None:
    """Begin to hand over the lead."""
    refused = broker.cluster.move(request.epoch, None if request.node_id < 0 else request.node_id)
    if refused is None:
        reply(MoveLeadResponse())
    else:
        reply(MoveLeadResponse(error_code=_CODES[refused], error_message=refused.value))


HANDLER = Handler(
    ApiKey.MOVE_LEAD,
    versions=(0, 0),
    needs=(Whole(Operation.ALTER, ResourceKind.CLUSTER),),
    at_follower=NOT_CONTROLLER,
    handle=handle,
)
