"""The authorizer of access rules, as Apache Kafka's `StandardAuthorizer` (KIP-801): super users, then the rules.

What rules say is decided in the core (`core.access.authorizing`), which is asked for the state of this step: a rule
that is deleted holds no more from then on, before that is durable.
"""

from typing import Final

from exacta.config.security import SecurityOptions, all_super_users
from exacta.core.ids import PrincipalName
from exacta.core.values.acl import Operation, Pattern, ResourceKind
from exacta.ports.authorizer import CLUSTER, AllowAll, Authorizer, Principal, Resource, Terms
from exacta.ports.log import Advice
from exacta.security.first_user import FIRST_USER

MOST_REMEMBERED: Final = 1_000
"""Answers about any resource of a kind that are remembered until a rule changes: they may cost what the principal's
rules are, where most of these are denied by others."""


class AclAuthorizer:
    """Allows what access rules allow, and super users everything.

    `super_users` are principals as rules write them (`User:alice`); `allow_everyone` is the answer about a resource for
    which there is no rule.
    """

    allows_all: Final = False

    def __init__(self, rules: Advice, super_users: frozenset[str], *, allow_everyone: bool) -> None:
        self.terms = Terms(super_users=super_users, allow_everyone=allow_everyone)
        self._rules = rules
        self._any: dict[tuple[str, str, Operation, ResourceKind], bool] = {}
        self._any_holds_for = 0

    def allows(self, principal: Principal, host: str, operation: Operation, resource: Resource) -> bool:
        """See `Authorizer`."""
        if principal is FIRST_USER:
            # Whether it is the first one, the core decides; the connection may send nothing else that needs Alter.
            sees_users = operation is Operation.DESCRIBE and not self._rules.has_users
            return resource == CLUSTER and (operation is Operation.ALTER or sees_users)
        name = PrincipalName(str(principal))
        if name in self.terms.super_users:
            return True
        if resource.pattern is Pattern.ANY:
            return self._allows_any(name, host, operation, resource.kind)
        assert resource.pattern is Pattern.LITERAL, "only rules are written with prefixes"
        rules, kind = self._rules, resource.kind
        return rules.acls_allow(name, host, operation, kind, resource.name, by_default=self.terms.allow_everyone)

    def _allows_any(self, name: PrincipalName, host: str, operation: Operation, kind: ResourceKind) -> bool:
        if self._any_holds_for != self._rules.acl_changes or len(self._any) >= MOST_REMEMBERED:
            self._any_holds_for = self._rules.acl_changes
            self._any.clear()
        key = (name, host, operation, kind)
        known = self._any.get(key)
        if known is None:
            known = self._rules.acls_allow(name, host, operation, kind, None, by_default=self.terms.allow_everyone)
            self._any[key] = known
        return known


def authorizer_of(options: SecurityOptions, rules: Advice) -> Authorizer:
    """Return the authorizer that the options ask for: it goes by the rules, or allows everything."""
    if not options.authorizer_class_name:
        return AllowAll()
    allow_everyone = options.allow_everyone_if_no_acl_found
    return AclAuthorizer(rules, all_super_users(options), allow_everyone=allow_everyone)
