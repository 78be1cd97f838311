"""The access rules (ACLs) of Apache Kafka as values: what may be allowed or denied, on what, and to whom.

KIP-11 has the model, KIP-290 the patterns of names. Numbers on the wire are the fronts' business.
"""

from enum import Enum
from typing import Final

from msgspec import Struct

from exacta.core.ids import PrincipalName


class Operation(Enum):
    """An operation on a resource; the values are the words of `kafka-acls.sh`."""

    READ = "Read"
    WRITE = "Write"
    CREATE = "Create"
    DELETE = "Delete"
    ALTER = "Alter"
    DESCRIBE = "Describe"
    CLUSTER_ACTION = "ClusterAction"
    DESCRIBE_CONFIGS = "DescribeConfigs"
    ALTER_CONFIGS = "AlterConfigs"
    IDEMPOTENT_WRITE = "IdempotentWrite"
    CREATE_TOKENS = "CreateTokens"
    DESCRIBE_TOKENS = "DescribeTokens"
    TWO_PHASE_COMMIT = "TwoPhaseCommit"
    """Transactions without a time-out (KIP-939)."""
    ALL = "All"
    """Every operation; only rules name it."""


class ResourceKind(Enum):
    """A kind of resource; the values are Kafka's words."""

    TOPIC = "Topic"
    GROUP = "Group"
    CLUSTER = "Cluster"
    TRANSACTIONAL_ID = "TransactionalId"
    USER = "User"
    """A principal whose tokens somebody makes or sees (KIP-373). Rules may name it, and no request asks for it."""
    DELEGATION_TOKEN = "DelegationToken"
    """Rules may name it, as those of a cluster of Apache Kafka that are taken over. There are no such tokens here."""


class Pattern(Enum):
    """The ways to mean a name of resources (KIP-290)."""

    LITERAL = "Literal"
    """The one resource of this name. A rule for `*` is about all resources of the kind."""
    PREFIXED = "Prefixed"
    """All resources whose names begin so; only rules are written with it."""
    ANY = "Any"
    """At least one resource of the kind; the name is empty. Kafka asks it of those who write without a transaction."""


class PatternFilter(Enum):
    """The patterns that a filter means (KIP-290)."""

    LITERAL = "Literal"
    PREFIXED = "Prefixed"
    ANY = "Any"
    """Both of them, by the name that the rule has."""
    MATCH = "Match"
    """All that apply to a resource of the name: its own, `*`, and its prefixes."""


WILDCARD: Final = "*"
"""The name, host and user that stand for all of them."""
ANYBODY: Final = PrincipalName("User:*")
CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the one cluster as a resource."""


class Acl(Struct, frozen=True, array_like=True):
    """One access rule. Events and snapshots hold it as it is."""

    kind: ResourceKind
    name: str
    pattern: Pattern
    """LITERAL or PREFIXED."""
    principal: PrincipalName
    host: str
    """An address, or `*`."""
    operation: Operation
    allows: bool
    """False: it denies."""


class AclFilter(Struct, frozen=True):
    """The rules that have all of this; None is any."""

    kind: ResourceKind | None = None
    name: str | None = None
    pattern: PatternFilter = PatternFilter.ANY
    principal: str | None = None
    host: str | None = None
    operation: Operation | None = None
    allows: bool | None = None

    def matches(self, acl: Acl) -> bool:
        """Return whether this is about the rule (`AclBindingFilter.matches` in Apache Kafka)."""
        return (
            (self.kind is None or self.kind is acl.kind)
            and (self.principal is None or self.principal == acl.principal)
            and (self.host is None or self.host == acl.host)
            and (self.operation is None or self.operation is acl.operation)
            and (self.allows is None or self.allows is acl.allows)
            and self._matches_name(acl)
        )

    def _matches_name(self, acl: Acl) -> bool:
        if self.pattern not in (PatternFilter.ANY, PatternFilter.MATCH):
            return self.pattern.value == acl.pattern.value and self.name in (None, acl.name)
        if self.name is None or self.name == acl.name:
            return True
        if self.pattern is PatternFilter.ANY:
            return False
        return acl.name == WILDCARD if acl.pattern is Pattern.LITERAL else self.name.startswith(acl.name)


class Terms(Struct, frozen=True, kw_only=True):
    """The parts of an authorizer that are no rules: whom the operator lets do everything, and what is open."""

    super_users: frozenset[str] = frozenset()
    """Principals that may do everything, as rules write them (`User:alice`)."""
    allow_everyone: bool = False
    """The answer about a resource for which there is no rule."""


def problem_of(acl: Acl) -> str | None:
    """Return why there cannot be such a rule, in words; None: there can."""
    kind, _, name = acl.principal.partition(":")
    if not acl.name:
        return "the name of the resource is empty"
    if acl.kind is ResourceKind.CLUSTER and acl.name != CLUSTER_NAME:
        return f"the only resource of kind Cluster is {CLUSTER_NAME}"
    if not kind or not name:
        return "the principal is not like User:alice"
    if not acl.host:
        return "the host is empty: it is an address, or * for all"
    return None
