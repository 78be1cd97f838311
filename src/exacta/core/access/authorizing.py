"""The answer of the access rules to a question: the semantics of Apache Kafka's `StandardAuthorizer`.

A rule that denies counts before all that allow. Who is allowed to read, write, delete or alter may describe, and who
may alter configurations may describe them; a rule that denies denies its own operation only. A resource for which
nobody has written a rule is open where `allow.everyone.if.no.acl.found` says so, and else closed.

Kafka's search goes wrong for two kinds of names, and this does not: its rules for `*` do not apply to names that begin
with `*`, and for a name that sorts before `*` its search may not end (decision 0065).
"""

from itertools import chain

from exacta.core.ids import PrincipalName
from exacta.core.state.acl_index import BITS, DENIED, Names, Right
from exacta.core.state.state import State
from exacta.core.values.acl import ANYBODY, WILDCARD, Operation, Pattern, ResourceKind

IMPLIED_BY: dict[Operation, tuple[Operation, ...]] = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}
"""The operations that imply this one in a rule that allows."""
_DENYING = {each: BITS[each] | BITS[Operation.ALL] for each in Operation}
_ALLOWING = {each: sum(map(BITS.__getitem__, IMPLIED_BY.get(each, ()))) | _DENYING[each] for each in Operation}
_ASKED = {each: _ALLOWING[each] | _DENYING[each] << DENIED for each in Operation}
_ANY_ALLOWED = (1 << DENIED) - 1

HARDCODED = "hardcode"
"""A name that stands for any: Kafka's `authorizeByResourceType` asks for it first."""


def allows(
    state: State,
    principal: PrincipalName,
    host: str,
    operation: Operation,
    kind: ResourceKind,
    name: str,
    by_default: bool,
) -> bool:
    """Return whether the rules let a principal do this; `by_default` is the answer where no rule is about the name."""
    found, bits = False, 0
    whos = ((principal, host), (principal, WILDCARD), (ANYBODY, host), (ANYBODY, WILDCARD))
    for _, _, written in state.volatile.acl_index.kinds[kind].about(name):
        found = True
        for who in whos:
            bits |= written.get(who, 0)
    bits &= _ASKED[operation]
    if bits > _ANY_ALLOWED:
        return False
    return bool(bits) or (by_default and not found)


def allows_any(
    state: State, principal: PrincipalName, host: str, operation: Operation, kind: ResourceKind, by_default: bool
) -> bool:
    """Return whether there is a name, not necessarily of a resource, with which a principal may do this.

    It is `Authorizer.authorizeByResourceType` of Apache Kafka. A name that is allowed does not count where what allows
    it is denied as a whole: by a rule for the same name, or for a prefix of it. No implied operation counts.
    """
    if allows(state, principal, host, operation, kind, HARDCODED, by_default):
        return True
    index = state.volatile.acl_index.kinds[kind]
    rights = [
        (who, where, what)
        for who in (principal, ANYBODY)
        for where in (host, WILDCARD)
        for what in (operation, Operation.ALL)
    ]
    allowed, allowed_prefixes = (
        _names(index.allowed, rights, pattern) for pattern in (Pattern.LITERAL, Pattern.PREFIXED)
    )
    denied, denied_prefixes = (_names(index.denied, rights, pattern) for pattern in (Pattern.LITERAL, Pattern.PREFIXED))
    if any(WILDCARD in names for names in denied):
        return False
    if any(WILDCARD in names for names in allowed):
        return True

    def is_left(name: str) -> bool:
        for length in index.lengths:
            if length > len(name):
                return True
            prefix = name[:length]
            for names in denied_prefixes:
                if prefix in names:
                    return False
        return True

    literal = (name for names in allowed for name in names if not any(name in others for others in denied))
    prefixes = (name for names in allowed_prefixes for name in names)
    if not denied_prefixes:
        return any(True for _ in chain(literal, prefixes))
    return any(map(is_left, chain(literal, prefixes)))


def _names(
    written: dict[Right, Names], rights: list[tuple[PrincipalName, str, Operation]], pattern: Pattern
) -> list[Names]:
    return [written[*right, pattern] for right in rights if (*right, pattern) in written]
