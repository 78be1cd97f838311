"""The parts that all views have: the client that asks, and the way of the answer."""

from collections.abc import Callable
from typing import TypeAlias, TypeVar, cast

from msgspec import Raw, Struct, json, structs

from exacta.front.broker import Broker
from exacta.kafka.access import allows
from exacta.kafka.context import RequestContext
from exacta.kafka.needs import REFUSALS
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.kafka.errors import ErrorCode
from exacta.readmodel.groups import BlockingTransaction

Done: TypeAlias = Callable[[bytes | ErrorCode], None]
"""The function that takes the answer as JSON, or the error code that refuses the question."""

X = TypeVar("X", bound=Struct)


class Asker:
    """The client that asks, and may not see everything."""

    def __init__(self, broker: Broker, context: RequestContext) -> None:
        self._broker, self._context = broker, context

    @property
    def sees_all(self) -> bool:
        """Return whether nothing need be left out."""
        return self._broker.authorizer.allows_all

    def sees(self, kind: ResourceKind, name: str) -> bool:
        """Return whether the client may describe this."""
        return allows(self._broker, self._context, Operation.DESCRIBE, kind, name)

    def refusal(self, kind: ResourceKind, *names: str) -> ErrorCode | None:
        """Return the error code if one of these may not be described."""
        return None if self.sees_all or all(self.sees(kind, name) for name in names) else REFUSALS[kind]

    def blocking(self, found: X) -> X:
        """Leave out of `held_by` the transactions that the client may not see."""
        held_by: tuple[BlockingTransaction, ...] = found.held_by  # type: ignore[attr-defined]
        if self.sees_all or not held_by:
            return found
        seen = (each for each in held_by if self.sees(ResourceKind.TRANSACTIONAL_ID, each.transactional_id))
        return structs.replace(found, held_by=tuple(seen))


def encoded(element: X) -> X:
    """Encode an element of an answer in the step in which it is made, so that the whole only joins them.

    What is returned stands in the element's place in the answer, and nobody looks into it.
    """
    return cast("X", Raw(json.encode(element)))
