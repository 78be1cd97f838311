"""Health: whether the broker is there for its clients."""

from starlette.responses import Response

from exacta.front.broker import Broker
from exacta.pulsar.rest.request import RestRequest


def handle(broker: Broker, request: RestRequest) -> None:
    """Answer once all that was decided before is durable: a journal that hangs, or has failed, lets nobody answer."""
    broker.when_durable(request, lambda: request.reply(Response(b"ok", media_type="application/json")))
