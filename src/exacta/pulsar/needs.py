"""The operations on resources that a command needs of its client: each handler declares them beside its type.

Owns the form of a declaration and the question to the authorizer. Topics are asked about by the names that Kafka's
clients know them by, so that one rule holds for both protocols.

It reads bytes before a login.
"""

from collections.abc import Callable, Iterable
from typing import Final, Generic, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from exacta.front.broker import Broker
from exacta.front.request import Request
from exacta.ports.authorizer import Operation, Resource, ResourceKind
from exacta.protocol.pulsar.topic_names import InvalidTopicName
from exacta.pulsar.topic_names import coordinator_partition, named_topic

C = TypeVar("C", contravariant=True)


class Need(Struct, Generic[C], frozen=True):
    """A right on each topic that `topics` finds in the command; without it the command is refused."""

    operation: Operation
    topics: Callable[[C], Iterable[str]]


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


def lacking(broker: Broker, request: Request, needs: Needs[C], command: C) -> str | None:
    """Say which right the client lacks for a command; None: it may send it.

    Illegal names are the handler's to refuse.
    """
    if broker.authorizer.allows_all:
        return None
    for need in needs:
        for name in need.topics(command):
            try:
                topic = named_topic(name)
                if coordinator_partition(topic.name) or allows(broker, request, need.operation, topic.log_name):
                    continue
            except InvalidTopicName:
                continue
            return f"the client has no right to {need.operation.value} on {name}"
    return None
