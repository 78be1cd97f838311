"""Access rules and filters of them, as Kafka's requests number their parts (KIP-140, KIP-290).

Apache Kafka closes the connection of a client whose request has a number that it does not know. Here such a rule or
filter is refused by INVALID_REQUEST. An address of IPv6 is kept as connections show theirs: in its short form, and as
one of IPv4 where that is mapped to IPv6.
"""

from ipaddress import IPv6Address
from typing import Any, Protocol, TypeVar

from exacta.core.ids import PrincipalName
from exacta.core.values.acl import Acl, AclFilter, Pattern, PatternFilter, ResourceKind, problem_of
from exacta.front.hosts import same_host
from exacta.kafka.authorized_operations import NUMBERS
from exacta.protocol.kafka import acl_numbers as numbers
from exacta.protocol.kafka.acl_numbers import ANY, MATCH, PATTERN_TYPES, RESOURCE_TYPES
from exacta.protocol.kafka.messages.k30_create_acls import AclCreation

KINDS = {kind: RESOURCE_TYPES[kind.value] for kind in ResourceKind}
PATTERNS = {each: PATTERN_TYPES[each.value] for each in (Pattern.LITERAL, Pattern.PREFIXED)}
FILTERS = {ANY: PatternFilter.ANY, MATCH: PatternFilter.MATCH} | {
    PATTERN_TYPES[each.value]: each for each in (PatternFilter.LITERAL, PatternFilter.PREFIXED)
}
PERMISSIONS = {False: numbers.PERMISSIONS["Deny"], True: numbers.PERMISSIONS["Allow"]}
_KIND_OF = {number: word for word, number in KINDS.items()}
_PATTERN_OF = {number: word for word, number in PATTERNS.items()}
_OPERATION_OF = {number: word for word, number in NUMBERS.items()}
_PERMISSION_OF = {number: word for word, number in PERMISSIONS.items()}

NO_AUTHORIZER = "there are no access rules here: authorizer.class.name is not set"

T = TypeVar("T")


class NotPossible(Exception):
    """There is no such rule or filter; the message is for the client."""


class Filtering(Protocol):
    """The fields in which two requests have a filter."""

    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int


def acl_of(wanted: AclCreation) -> Acl:
    """Return the rule that a client wants to make. Raises NotPossible."""
    acl = Acl(
        kind=_known(_KIND_OF, wanted.resource_type, "resource type"),
        name=wanted.resource_name,
        pattern=_known(_PATTERN_OF, wanted.resource_pattern_type, "pattern type"),
        principal=PrincipalName(wanted.principal),
        host=_short(wanted.host),
        operation=_known(_OPERATION_OF, wanted.operation, "operation"),
        allows=_known(_PERMISSION_OF, wanted.permission_type, "permission type"),
    )
    problem = problem_of(acl)
    if problem is not None:
        raise NotPossible(problem)
    return acl


def filter_of(wanted: Filtering) -> AclFilter:
    """Return the filter of a client. Raises NotPossible."""
    return AclFilter(
        kind=_known_or_any(_KIND_OF, wanted.resource_type_filter, "resource type"),
        name=wanted.resource_name_filter,
        pattern=_known(FILTERS, wanted.pattern_type_filter, "pattern type"),
        principal=wanted.principal_filter,
        host=None if wanted.host_filter is None else _short(wanted.host_filter),
        operation=_known_or_any(_OPERATION_OF, wanted.operation, "operation"),
        allows=_known_or_any(_PERMISSION_OF, wanted.permission_type, "permission type"),
    )


def numbers_of(acl: Acl) -> dict[str, Any]:
    """Return what a rule says of who may do what, in the fields that all requests have for it."""
    return {
        "principal": acl.principal,
        "host": acl.host,
        "operation": NUMBERS[acl.operation],
        "permission_type": PERMISSIONS[acl.allows],
    }


def _known(words: dict[int, T], number: int, what: str) -> T:
    if number not in words:
        raise NotPossible(f"there is no {what} {number} here")
    return words[number]


def _known_or_any(words: dict[int, T], number: int, what: str) -> T | None:
    return None if number == ANY else _known(words, number, what)


def _short(host: str) -> str:
    try:
        return same_host(str(IPv6Address(host))) if ":" in host else host
    except ValueError:
        return host
