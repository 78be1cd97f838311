"""FindCoordinator: it is always this broker, but for share groups (version 6, KIP-932), which are not offered."""

from exacta.kafka.broker import BrokerContext
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Reply
from exacta.kafka.keys import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k10_find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

KEY = ApiKey.FIND_COORDINATOR
MIN_VERSION = 0
MAX_VERSION = 6
SEVERAL_KEYS_SINCE = 4

GROUP = 0
TRANSACTION = 1


def handle(broker: BrokerContext, request: FindCoordinatorRequest, context: RequestContext, reply: Reply) -> None:
    """Name this broker for groups and transactional ids, nobody for anything else."""
    host, port = broker.endpoint(context)
    code, message = ErrorCode.NONE, None
    node_id = broker.node_id
    if request.key_type not in (GROUP, TRANSACTION):
        code, message = ErrorCode.INVALID_REQUEST, f"there are no coordinators of type {request.key_type}"
        node_id, host, port = -1, "", -1
    if context.version < SEVERAL_KEYS_SINCE:
        reply(FindCoordinatorResponse(error_code=code, error_message=message, node_id=node_id, host=host, port=port))
        return
    coordinators = [
        Coordinator(key=key, error_code=code, error_message=message, node_id=node_id, host=host, port=port)
        for key in request.coordinator_keys
    ]
    reply(FindCoordinatorResponse(coordinators=coordinators))
