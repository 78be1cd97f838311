"""DescribeClientQuotas: no client has a quota; a wrong filter is refused as Apache Kafka refuses it (KIP-546)."""

from exacta.front.broker import Broker
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Whole
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k48_describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

USER, CLIENT_ID, IP = "user", "client-id", "ip"
EXACT, DEFAULT, ANY = range(3)
"""The ways to match a component's name."""


def handle(broker: Broker, request: DescribeClientQuotasRequest, context: RequestContext, reply: Reply) -> None:
    """List none."""
    fault = _fault(request.components)
    if fault is None:
        reply(DescribeClientQuotasResponse())
    else:
        code, message = fault
        reply(DescribeClientQuotasResponse(error_code=code, error_message=message, entries=None))


def _fault(components: list[ComponentData]) -> tuple[ErrorCode, str] | None:
    types = [component.entity_type for component in components]
    for component in components:
        kind = component.entity_type
        if not kind:
            return ErrorCode.INVALID_REQUEST, "an entity must have a type"
        if types.count(kind) > 1:
            return ErrorCode.INVALID_REQUEST, f"the filter names {kind} more than once"
        if component.match_type not in (EXACT, DEFAULT, ANY):
            return ErrorCode.INVALID_REQUEST, f"there is no match type {component.match_type}"
        if component.match_type == EXACT and component.match is None:
            return ErrorCode.INVALID_REQUEST, "an exact match needs a name"
        if kind not in (USER, CLIENT_ID, IP):
            return ErrorCode.UNSUPPORTED_VERSION, f"there are no entities of type {kind}"
    if IP in types and len(types) > 1:
        return ErrorCode.INVALID_REQUEST, "addresses have quotas of their own, not with users or clients"
    return None


HANDLER = Handler(
    ApiKey.DESCRIBE_CLIENT_QUOTAS,
    versions=(0, 1),
    needs=(Whole(Operation.DESCRIBE_CONFIGS, ResourceKind.CLUSTER),),
    handle=handle,
    refusal={"entries": None},
)
