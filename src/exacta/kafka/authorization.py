"""Who may do what needs more than a connection: the seam where access rules will stand.

There are no logins yet, so that everybody may do everything, as with an Apache Kafka that has no authorizer. Handlers
ask here all the same, and refuse with the code that Kafka has for the resource.
"""

from collections.abc import Callable
from enum import Enum

from exacta.kafka.context import RequestContext
from exacta.protocol.kafka.errors import ErrorCode


class Permission(Enum):
    """What a request may need, by Kafka's names of resource and operation; the value is what a refusal is told."""

    CLUSTER_ACTION = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    """Do what is otherwise done by brokers among each other: write markers (KIP-664)."""
    TWO_PHASE_COMMIT = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    """Have transactions without time-out under this transactional id (KIP-939)."""


Authorizer = Callable[[RequestContext, Permission, str], bool]
"""Says whether the client of a request has a permission, on the resource of this name."""


def everybody(context: RequestContext, permission: Permission, resource: str) -> bool:
    """Allow everything."""
    return True
