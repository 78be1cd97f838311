"""DescribeClientQuotas lists quotas; a wrong filter is refused as Apache Kafka refuses it (KIP-546)."""

from collections.abc import Mapping

from exacta.core.queries.quotas import all_quotas
from exacta.core.values.quotas import EntityType, QuotaEntity, QuotaKey
from exacta.front.broker import Broker
from exacta.front.turns import Steps
from exacta.kafka.at_follower import CATCHES_UP
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.listing import MANY
from exacta.kafka.needs import Whole
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k48_describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

EXACT, DEFAULT, ANY = range(3)
"""The ways to match a component's name."""
TYPES = {each.value: each for each in EntityType}


def handle(broker: Broker, request: DescribeClientQuotasRequest, context: RequestContext, reply: Reply) -> None:
    """List those that the filter matches."""
    fault = _fault(request.components)
    if fault is not None:
        code, message = fault
        reply(DescribeClientQuotasResponse(error_code=code, error_message=message, entries=None))
        return
    wanted = {TYPES[each.entity_type]: each for each in request.components}
    known = broker.engine.view(all_quotas)

    def steps() -> Steps:
        entries = []
        for number, (entity, quotas) in enumerate(known):
            if _matches(entity, wanted, strict=request.strict):
                entries.append(_entry(entity, quotas))
            if number % MANY == 0:
                yield None
        context.is_long = len(entries) > MANY
        broker.when_durable(context, lambda: reply(DescribeClientQuotasResponse(entries=entries)))

    context.in_steps(steps())


def _matches(entity: QuotaEntity, wanted: Mapping[EntityType, ComponentData], *, strict: bool) -> bool:
    """Return whether an entity has all that is wanted, and where that is strict, nothing else."""
    names = dict(entity.parts)
    if not wanted.keys() <= names.keys() or (strict and len(names) != len(wanted)):
        return False
    return all(each.match_type == ANY or names[kind] == each.match for kind, each in wanted.items())


def _entry(entity: QuotaEntity, quotas: Mapping[QuotaKey, float]) -> EntryData:
    return EntryData(
        entity=[EntityData(entity_type=kind.value, entity_name=name) for kind, name in entity.parts],
        values=[ValueData(key=key.value, value=value) for key, value in quotas.items()],
    )


def _fault(components: list[ComponentData]) -> tuple[ErrorCode, str] | None:
    seen: set[str] = set()
    for component in components:
        kind = component.entity_type
        if not kind:
            return ErrorCode.INVALID_REQUEST, "an entity must have a type"
        if kind in seen:
            return ErrorCode.INVALID_REQUEST, f"the filter names {kind} more than once"
        seen.add(kind)
        if kind not in TYPES:
            return ErrorCode.UNSUPPORTED_VERSION, f"there are no entities of type {kind}"
        if component.match_type not in (EXACT, DEFAULT, ANY):
            return ErrorCode.INVALID_REQUEST, f"there is no match type {component.match_type}"
        if component.match_type == EXACT and component.match is None:
            return ErrorCode.INVALID_REQUEST, "an exact match needs a name"
        if component.match_type != EXACT and component.match is not None:
            return ErrorCode.INVALID_REQUEST, "only an exact match has a name"
    if EntityType.IP.value in seen and len(seen) > 1:
        return ErrorCode.INVALID_REQUEST, "addresses have quotas of their own, not with users or clients"
    return None


HANDLER = Handler(
    ApiKey.DESCRIBE_CLIENT_QUOTAS,
    versions=(0, 1),
    needs=(Whole(Operation.DESCRIBE_CONFIGS, ResourceKind.CLUSTER),),
    at_follower=CATCHES_UP,
    handle=handle,
    refusal={"entries": None},
)
