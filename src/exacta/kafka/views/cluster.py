"""The view of the brokers that share the log, as the broker knows them that is asked.

It is no part of the log, and needs nothing of it to be durable: it is asked when something is wrong. The asker needs
DESCRIBE on the cluster.
"""

from msgspec import json

from exacta.front.broker import Broker
from exacta.kafka.context import RequestContext
from exacta.kafka.views.view import Asker, Done
from exacta.ports.authorizer import CLUSTER, ResourceKind


def tell(broker: Broker, context: RequestContext, done: Done) -> None:
    """Answer at once."""
    refused = Asker(broker, context).refusal(ResourceKind.CLUSTER, CLUSTER.name)
    done(json.encode(broker.cluster.status()) if refused is None else refused)
