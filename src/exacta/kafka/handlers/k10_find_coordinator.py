"""FindCoordinator names the broker that leads, but for share groups (version 6, KIP-932), which are not offered.

The topic in which Apache Kafka's coordinator keeps its state is made when one is first looked for (decision 0029), by
the leader.
"""

from collections.abc import Iterable
from typing import Any

from exacta.front.broker import Broker
from exacta.kafka.at_follower import SERVES
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.internal_topics import OF_GROUPS, OF_TRANSACTIONS
from exacta.kafka.needs import Each, Whole
from exacta.kafka.nodes import NOBODY, told_cluster
from exacta.kafka.parts import divided_by
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k10_find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

SEVERAL_KEYS_SINCE = 4

GROUP = 0
TRANSACTION = 1
TOPICS = {GROUP: OF_GROUPS, TRANSACTION: OF_TRANSACTIONS}
"""The coordinators that exist, each with its topic."""


def _group(request: Any) -> Iterable[str]:
    return (request.key,) if request.key_type == GROUP else ()


def _transactional_id(request: Any) -> Iterable[str]:
    return (request.key,) if request.key_type == TRANSACTION else ()


def _kind(request: Any, key: Any) -> ResourceKind | None:
    return {GROUP: ResourceKind.GROUP, TRANSACTION: ResourceKind.TRANSACTIONAL_ID}.get(request.key_type)


NEEDS = (
    Whole(Operation.DESCRIBE, ResourceKind.GROUP, _group, until=SEVERAL_KEYS_SINCE - 1),
    Whole(Operation.DESCRIBE, ResourceKind.TRANSACTIONAL_ID, _transactional_id, until=SEVERAL_KEYS_SINCE - 1),
    Each(Operation.DESCRIBE, _kind, "coordinator_keys", "coordinators", name="", since=SEVERAL_KEYS_SINCE),
)


def handle(broker: Broker, request: FindCoordinatorRequest, context: RequestContext, reply: Reply) -> None:
    """Name the leader for groups and transactional ids, and no broker for anything else."""
    topic = TOPICS.get(request.key_type)
    asks_for_none = context.version >= SEVERAL_KEYS_SINCE and not request.coordinator_keys  # which needs no right
    leads = broker.cluster.leads
    if topic is None or asks_for_none or not leads or broker.engine.visible(topic.name, 0) is not None:
        broker.confirm_shown(context, lambda: reply(_response(broker, request, context)))
    else:  # where there is no room for it, the coordinator works all the same
        create = topic.create(broker.new_uuid().bytes)
        broker.ask(context, create, lambda created: reply(_response(broker, request, context)))


def _response(broker: Broker, request: FindCoordinatorRequest, context: RequestContext) -> FindCoordinatorResponse:
    leader = told_cluster(broker, context).leader
    code, message = ErrorCode.NONE, None
    if request.key_type not in TOPICS:
        code, message, leader = ErrorCode.INVALID_REQUEST, f"there are no coordinators of type {request.key_type}", None
    elif leader is None:
        code, message = ErrorCode.COORDINATOR_NOT_AVAILABLE, "no broker leads the log at the moment"
    node_id, host, port = (NOBODY, "", -1) if leader is None else (leader.node_id, leader.host, leader.port)
    if context.version < SEVERAL_KEYS_SINCE:
        return FindCoordinatorResponse(error_code=code, error_message=message, node_id=node_id, host=host, port=port)
    coordinators = [
        Coordinator(key=key, error_code=code, error_message=message, node_id=node_id, host=host, port=port)
        for key in request.coordinator_keys
    ]
    return FindCoordinatorResponse(coordinators=coordinators)


HANDLER = Handler(
    ApiKey.FIND_COORDINATOR,
    versions=(0, 6),
    needs=NEEDS,
    at_follower=SERVES,
    handle=handle,
    parts=(divided_by(NEEDS[2]),),
    refusal={"node_id": -1, "port": -1},
)
