"""The operations on resources that a command needs of its client: each handler declares them beside its type.

Owns the form of a declaration and the question to the authorizer. Topics are asked about by the names that Kafka's
clients know them by, and a subscription as the group of its name, so that one rule holds for both protocols
(`docs/explanation/pulsar.md` has the table). A subscription that is not durable needs no right on it, as a Kafka
consumer without a group needs none, unless one of its name is there that another client has made.
"""

from collections.abc import Callable, Iterable
from typing import Final, Generic, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from exacta.front.broker import Broker
from exacta.front.request import Request
from exacta.ports.authorizer import CLUSTER, Operation, Resource, ResourceKind
from exacta.protocol.pulsar.topic_names import InvalidTopicName
from exacta.pulsar.topic_names import coordinator_partition, named_topic

C = TypeVar("C", contravariant=True)


def the_cluster(command: object) -> Iterable[str]:
    """Name the cluster, whatever the command is."""
    return (CLUSTER.name,)


class Need(Struct, Generic[C], frozen=True):
    """A right on each resource that `names` finds in the command; without it the command is refused."""

    operation: Operation
    names: Callable[[C], Iterable[str]]
    kind: ResourceKind = ResourceKind.TOPIC
    or_on_cluster: bool = False
    """True: the right to do this on the cluster is enough."""


Needs: TypeAlias = tuple[Need[C], ...]

OPEN_TO_ALL: Final = ()
"""The declaration of a command that everybody may send."""


class OnTopic(Protocol):
    """A command, or a request, that is about one topic."""

    @property
    def topic(self) -> str:
        """The topic's name, as the client writes it."""


def the_topic(command: OnTopic) -> Iterable[str]:
    """Name the one topic of a command."""
    return (command.topic,)


def allows(broker: Broker, request: Request, operation: Operation, topic: str) -> bool:
    """Return whether the client of this request may do this with a topic, given by its name in the log."""
    return broker.allows(request, operation, Resource(ResourceKind.TOPIC, topic))


def allows_group(broker: Broker, request: Request, subscription: str) -> bool:
    """Return whether the client of this request may read by a subscription of this name."""
    return broker.allows(request, Operation.READ, Resource(ResourceKind.GROUP, subscription))


def lacking(broker: Broker, request: Request, needs: Needs[C], command: C) -> str | None:
    """Say which right the client lacks for a command; None: it may send it.

    Illegal names are the handler's to refuse.
    """
    if broker.authorizer.allows_all:
        return None
    for need in needs:
        if need.or_on_cluster and broker.allows(request, need.operation, CLUSTER):
            continue
        for name in need.names(command):
            resource = _resource(need.kind, name)
            if resource is not None and not broker.allows(request, need.operation, resource):
                return no_right(need.operation, need.kind, name)
    return None


def no_right(operation: Operation, kind: ResourceKind, name: str) -> str:
    """Return the words for a right that is missing."""
    what = name if kind is ResourceKind.TOPIC else f"{kind.value} {name}"
    return f"the client has no right to {operation.value} on {what}"


def _resource(kind: ResourceKind, name: str) -> Resource | None:
    """Return the resource of a name; None: nobody needs a right on it, or it is no name."""
    if kind is not ResourceKind.TOPIC:
        return Resource(kind, name)
    try:
        topic = named_topic(name)
    except InvalidTopicName:
        return None
    return None if coordinator_partition(topic.name) else Resource(kind, topic.log_name)
