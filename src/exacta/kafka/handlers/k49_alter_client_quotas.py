"""AlterClientQuotas sets and removes quotas of users, clients and addresses (KIP-546, KIP-612).

Each entity is altered for itself: one that has a fault does not stop the others. An entity that the request names twice
is altered as it says first, and answered by an error, as in Apache Kafka.
"""

from collections.abc import Mapping

from msgspec import Struct

from exacta.core.commands import AlterClientQuotas
from exacta.core.rejections import Rejection
from exacta.core.values.quotas import (
    EntityType,
    QuotaAlteration,
    QuotaEntity,
    QuotaKey,
    entity_of,
    problem_of_entity,
    problem_of_value,
)
from exacta.front.broker import Broker
from exacta.front.words import words_of
from exacta.kafka.at_follower import NOT_CONTROLLER
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Whole
from exacta.kafka.parts import Parts
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.ports.log import Answer
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k49_alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlteredEntryData,
    EntityData,
    OpData,
)
from exacta.security import audit

MOST_AT_ONCE = 1_000
"""The most entities of one request: all of them are decided in one step."""

_TYPES = {each.value: each for each in EntityType}
_KEYS = {each.value: each for each in QuotaKey}


class _Named(Struct):
    """An entity that a request names, and what becomes of it."""

    names: dict[str, str | None]
    fault: str | None = None
    alteration: QuotaAlteration | None = None


def handle(broker: Broker, request: AlterClientQuotasRequest, context: RequestContext, reply: Reply) -> None:
    """Alter those that have no fault."""
    asked: dict[frozenset[tuple[str, str | None]], _Named] = {}
    for entry in request.entries:
        names = {each.entity_type: each.entity_name for each in entry.entity}
        key = frozenset(names.items())
        if key in asked:
            asked[key].fault = "the request names the entity more than once"
        else:
            asked[key] = _asked(names, entry.ops)
    alterations = tuple(each.alteration for each in asked.values() if each.alteration is not None)

    def done(answer: Answer | None) -> None:
        rejection = answer if isinstance(answer, Rejection) else None
        entries = [_result(each, rejection, context) for each in asked.values()]
        reply(AlterClientQuotasResponse(entries=entries))

    if alterations and not request.validate_only:
        audit.asked(context.principal, context.connection.peer, "quotas")
        broker.ask(context, AlterClientQuotas(alterations=alterations), done)
    else:
        broker.when_durable(context, lambda: done(None))


def _asked(names: dict[str, str | None], ops: list[OpData]) -> _Named:
    unknown = next((each for each in names if each not in _TYPES), None)
    if unknown is not None:
        return _Named(names, f"there are no entities of type {unknown}")
    entity = entity_of({_TYPES[kind]: name for kind, name in names.items()})
    fault = problem_of_entity(entity) or _fault(entity, ops)
    if fault is not None:
        return _Named(names, fault)
    values = {_KEYS[each.key]: None if each.remove else each.value for each in ops if each.key in _KEYS}
    return _Named(names, alteration=QuotaAlteration(entity, values))


def _fault(entity: QuotaEntity, ops: list[OpData]) -> str | None:
    seen: set[str] = set()
    for each in ops:
        if each.key in seen:
            return f"the request names {each.key} more than once"
        seen.add(each.key)
        fault = None if each.remove else problem_of_value(entity, each.key, each.value)
        if fault is not None:
            return fault
    return None


def _result(asked: _Named, rejection: Rejection | None, context: RequestContext) -> AlteredEntryData:
    result = AlteredEntryData(entity=_entity(asked.names), error_message=asked.fault)
    if asked.fault is not None:
        result.error_code = ErrorCode.INVALID_REQUEST
    elif rejection is not None:
        result.error_code, result.error_message = context.error_code(rejection), words_of(rejection)
    return result


def _entity(names: Mapping[str, str | None]) -> list[EntityData]:
    return [EntityData(entity_type=kind, entity_name=name) for kind, name in names.items()]


def refused(request: AlterClientQuotasRequest, code: ErrorCode, version: int) -> AlterClientQuotasResponse:
    """Refuse each entity of a request."""
    return AlterClientQuotasResponse(
        entries=[
            AlteredEntryData(
                error_code=code,
                error_message=None,
                entity=_entity({each.entity_type: each.entity_name for each in entry.entity}),
            )
            for entry in request.entries
        ]
    )


HANDLER = Handler(
    ApiKey.ALTER_CLIENT_QUOTAS,
    versions=(0, 1),
    needs=(Whole(Operation.ALTER_CONFIGS, ResourceKind.CLUSTER),),
    at_follower=NOT_CONTROLLER,
    handle=handle,
    refused=refused,
    parts=(Parts("entries", "entries", most=MOST_AT_ONCE, most_in_all=MOST_AT_ONCE),),
)
