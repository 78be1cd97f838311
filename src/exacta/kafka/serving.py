"""The way of a request to its handler: as far as this broker may answer it, and as far as its client may ask."""

from typing import Any

from exacta.front.broker import Broker
from exacta.kafka import access
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.protocol.kafka.apis import API


def serve(handler: Handler, broker: Broker, request: Any, context: RequestContext, reply: Reply) -> None:
    """Let the handler serve a request, or a part of one."""
    if broker.cluster.leads:
        _serve(handler, broker, request, context, reply)
    elif handler.at_follower.code is not None:
        _refuse(handler, broker, request, context, reply)
    elif handler.at_follower.catches_up:
        broker.catch_up(context, lambda: _serve(handler, broker, request, context, reply))
    else:
        _serve(handler, broker, request, context, reply)


def _serve(handler: Handler, broker: Broker, request: Any, context: RequestContext, reply: Reply) -> None:
    if broker.authorizer.allows_all:
        handler.handle(broker, request, context, reply)
    else:
        access.serve(handler, broker, request, context, reply)


def _refuse(handler: Handler, broker: Broker, request: Any, context: RequestContext, reply: Reply) -> None:
    """Answer for a follower, which looks at nothing that the request names, so that no right is needed."""
    declared = handler.at_follower
    assert declared.code is not None
    if declared.is_empty and broker.cluster.leader is not None:
        reply(API[handler.key].response())
        return
    answer = handler.refusal_of_all(request, declared.code, context.version)
    if answer is not None and handler.hint is not None:
        handler.hint(broker, context, answer)
    reply(answer)
    if declared.ends_connection:
        context.connection.close()
    if answer is None:
        context.hang_up(f"a {handler.name} that wants no answer came to a follower")
