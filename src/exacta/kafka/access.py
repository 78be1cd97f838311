"""The questions to the authorizer: one request at a time, by what its handler declares (`needs.py`).

Owns how a request is served whose client may not do everything: which part of it its handler gets to see, and how the
answer says what was refused. With an authorizer that allows everything nothing here is called.

A refused resource is never looked at, so that the refusal does not tell whether it exists.
"""

from collections.abc import Iterable
from typing import Any

from exacta.front.broker import Broker
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import REFUSALS, Each, Inside, Shown, Suffices, Whole
from exacta.ports.authorizer import CLUSTER, Operation, Resource, ResourceKind
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.schema import NO_UUID, Message


def allows(
    broker: Broker,
    context: RequestContext,
    operation: Operation,
    kind: ResourceKind,
    name: str,
    instead: Suffices = (),
) -> bool:
    """Return whether the client of this request may do this; one of the rights in `instead` is enough."""
    if broker.authorizer.allows_all:  # asked about each of many topics, and no resource need be made for it
        return True
    return broker.allows(context, operation, Resource(kind, name)) or any(
        broker.allows(context, *right) for right in instead
    )


def describable_topics(broker: Broker, context: RequestContext, topics: Iterable[str]) -> Iterable[str]:
    """Return the topics whose names the client may see, in their order."""
    if broker.authorizer.allows_all:
        return topics
    return [topic for topic in topics if allows(broker, context, Operation.DESCRIBE, ResourceKind.TOPIC, topic)]


def serve(handler: Handler, broker: Broker, request: Any, context: RequestContext, reply: Reply) -> None:
    """Let the handler serve what the client may ask for, and refuse the rest."""
    needs = [
        need for need in handler.needs if not isinstance(need, Inside) and need.since <= context.version <= need.until
    ]
    for need in needs:
        if isinstance(need, Whole):
            for name in need.names(request):
                if not allows(broker, context, need.operation, need.kind, name, need.instead):
                    _send(handler.refusal_of_all(request, REFUSALS[need.kind], context.version), context, reply)
                    return
    refusals: list[Refusal] = []
    for need in needs:
        if isinstance(need, Each):
            refused = _take_out(need, handler, broker, request, context)
            refusals += refused
            if refused and not getattr(request, need.elements) and not need.asks_without:
                (_, answer), *others = refusals
                _send(_completed(answer, others), context, reply)
                return

    def complete(answer: Message | None) -> None:
        if answer is not None:
            for need in needs:
                if isinstance(need, Shown):
                    _leave_out(need, broker, context, answer, need.path)
        if refusals and answer is None:
            _send(None, context, reply)
        elif getattr(answer, "error_code", ErrorCode.NONE):  # as Apache Kafka, which refuses the whole then
            reply(answer)
        else:
            reply(_completed(answer, refusals))

    handler.handle(broker, request, context, complete)


Refusal = tuple[Each, Message | None]
"""The answer to elements that were refused; None where the client wants no answer."""


def _send(answer: Message | None, context: RequestContext, reply: Reply) -> None:
    """Send a refusal; a client that wants no answer loses its connection, as with Apache Kafka."""
    reply(answer)
    if answer is None:
        context.hang_up(f"a {context.handler.name} that wants no answer was refused: the client may not do that")


def _take_out(need: Each, handler: Handler, broker: Broker, request: Any, context: RequestContext) -> list[Refusal]:
    """Take the elements that are refused out of the request, and return the answers to them."""
    allowed: list[Any] = []
    refused: dict[ErrorCode, list[Any]] = {}
    for element in getattr(request, need.elements) or ():
        code = _refusal(need, broker, request, element, context)
        if code is None:
            allowed.append(element)
        else:
            refused.setdefault(code, []).append(element)
    if not refused:
        return []
    if need.others is not None:
        for element in allowed:
            is_there = need.kind is not ResourceKind.TOPIC or _is_there(broker, _name(need, broker, element))
            code = need.others if is_there else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            refused.setdefault(code, []).append(element)
        allowed = []
    answers: list[Refusal] = []
    for code, elements in refused.items():
        setattr(request, need.elements, elements)
        answers.append((need, handler.refusal_of(need, request, code, context.version)))
    setattr(request, need.elements, allowed)
    return answers


def _refusal(need: Each, broker: Broker, request: Any, element: Any, context: RequestContext) -> ErrorCode | None:
    kind = need.kind if isinstance(need.kind, ResourceKind) else need.kind(request, element)
    if kind is None:
        return None
    name = CLUSTER.name if kind is ResourceKind.CLUSTER else _name(need, broker, element)
    if name is None or allows(broker, context, need.operation, kind, name, need.instead):
        return None
    if need.tells is not None and allows(broker, context, need.tells, kind, name):
        if not _is_there(broker, name):
            return None
        if not isinstance(element, str) and element.topic_id != NO_UUID:
            element.name = name
    return REFUSALS[kind]


def _is_there(broker: Broker, topic: str | None) -> bool:
    return topic is not None and broker.engine.advice.partition_count(topic) > 0


def _name(need: Each, broker: Broker, element: Any) -> str | None:
    """Return the name of an element's resource; None for a topic id that no topic has."""
    topic_id = getattr(element, "topic_id", NO_UUID)
    if topic_id != NO_UUID:  # by which handlers go, whatever name stands beside it
        return broker.engine.advice.topic_name(bytes(topic_id))
    return (getattr(element, need.name) if need.name else element) or ""


def _leave_out(need: Shown, broker: Broker, context: RequestContext, holder: Any, path: str) -> None:
    field, _, rest = path.partition(".")
    entries = getattr(holder, field) or ()
    if rest:
        for entry in entries:
            _leave_out(need, broker, context, entry, rest)
    elif entries:
        seen = [
            entry
            for entry in entries
            if allows(
                broker,
                context,
                need.operation,
                need.kind,
                getattr(entry, need.name) if need.name else entry,
                need.instead,
            )
        ]
        setattr(holder, field, seen)


def _completed(answer: Message | None, refusals: Iterable[Refusal]) -> Message | None:
    """Add the answers to what was refused."""
    for need, refusal in refusals:
        if answer is not None and refusal is not None:
            getattr(answer, need.answers).extend(getattr(refusal, need.answers))
    return answer
