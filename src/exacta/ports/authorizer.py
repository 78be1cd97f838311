"""The port of authorizers: a front asks whether a client may do something before it does it.

Owns principals, resources and the contract of an authorizer; operations and kinds of resources are words of the core's
access rules (`core.values.acl`). The words are Kafka's (KIP-11, KIP-290); another protocol's front maps its own
permissions to them. Each front decides how it tells a refusal.
"""

from typing import Final, Protocol

from msgspec import Struct

from exacta.core.ids import NO_PRINCIPAL, PrincipalName
from exacta.core.values.acl import CLUSTER_NAME, Operation, Pattern, ResourceKind, Terms

__all__ = [
    "ANONYMOUS",
    "CLUSTER",
    "AllowAll",
    "Authorizer",
    "Operation",
    "Pattern",
    "Principal",
    "Resource",
    "ResourceKind",
    "Terms",
]


class Principal(Struct, frozen=True):
    """The identity that a connection has proved; `ANONYMOUS` where it has proved none."""

    kind: str = "User"
    name: str = "ANONYMOUS"

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"

    @property
    def durable_name(self) -> PrincipalName:
        """Return the name by which events and the state know it (decision 0059)."""
        return NO_PRINCIPAL if self == ANONYMOUS else PrincipalName(str(self))


ANONYMOUS: Final = Principal()


class Resource(Struct, frozen=True):
    """One resource, or the resources that a pattern names."""

    kind: ResourceKind
    name: str
    pattern: Pattern = Pattern.LITERAL


CLUSTER: Final = Resource(ResourceKind.CLUSTER, CLUSTER_NAME)
"""The one cluster, by the name that Kafka gives it as a resource."""


class Authorizer(Protocol):
    """Answers at once, from memory: fronts ask it in the turn of the event loop in which they serve the request."""

    @property
    def allows_all(self) -> bool:
        """True where every question is answered with yes. Fronts then ask none, which costs one look at this."""

    @property
    def terms(self) -> Terms | None:
        """The terms by which the core's rules are asked; None: they are not asked, and nobody loses a right by them."""

    def allows(self, principal: Principal, host: str, operation: Operation, resource: Resource) -> bool:
        """Return whether the principal may do this, from this host (an address, without a port).

        What an operation implies is the answerer's knowledge: who may read, write, delete or alter a resource may
        describe it, and who may alter its configurations may describe them.
        """


class AllowAll:
    """The authorizer of a broker without access rules, as of an Apache Kafka without an authorizer."""

    allows_all: Final = True
    terms: Final = None

    def allows(self, principal: Principal, host: str, operation: Operation, resource: Resource) -> bool:
        """Allow everything."""
        return True
