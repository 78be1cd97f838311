"""The invariants of access rules, of users' keys and of quotas; `invariants.py` says how such functions are made.

`answer` is the other judge of access rules: it looks at every rule, and shares no code with the index of the core.
"""

from collections.abc import Iterable, Iterator, Sequence

from exacta.core.access import authorizing
from exacta.core.events import AclsCreated, AclsDeleted, ClientQuotasSet, ScramKeysSet
from exacta.core.ids import PrincipalName
from exacta.core.state.state import State
from exacta.core.values.acl import ANYBODY, Acl, Operation, Pattern, ResourceKind
from exacta.core.values.scram import ScramKey
from simulation.invariants.log import Log

DESCRIBES = {Operation.DESCRIBE, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
DESCRIBES_CONFIGS = {Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS}
MOST_ASKED = 12
"""The number of rules for which the index is asked at most: questions are many, and each looks at all rules."""


def rules_are_those_that_were_made(state: State, log: Log) -> Iterator[str]:
    """The access rules are those that were made and not deleted, in their order, and the index is made of them."""
    made: list[Acl] = []
    for event in log:
        if isinstance(event, AclsCreated):
            twice = [each for each in event.acls if each in made]
            if twice or len({*event.acls}) != len(event.acls):
                yield f"access: rules were made again: {twice}"
            made += event.acls
        elif isinstance(event, AclsDeleted):
            made = [each for each in made if each not in event.acls]
    if list(state.acls) != made:
        yield f"access: the rules are {list(state.acls)}, and were made as {made}"
    yield from _index_answers(state)


def _index_answers(state: State) -> Iterator[str]:
    acls = list(state.acls)
    for acl in acls[-MOST_ASKED:]:
        operation = Operation.DESCRIBE if acl.operation is Operation.ALL else acl.operation
        host = "10.0.0.1" if acl.host == "*" else acl.host
        for name in (acl.name, acl.name + "x"):
            found = authorizing.allows(state, acl.principal, host, operation, acl.kind, name, by_default=True)
            if found is not answer(acls, acl.principal, host, operation, acl.kind, name, by_default=True):
                yield f"access: may {acl.principal} {operation.value} {name} of {acl.kind.value}? {found}, by {acls}"
    held = sum(1 for kind in ResourceKind for name in {each.name for each in acls} for _ in _written(state, kind, name))
    if held != len(acls):
        yield f"access: the index has {held} rules of {len(acls)}"


def _written(state: State, kind: ResourceKind, name: str) -> Iterator[Acl]:
    for pattern in (Pattern.LITERAL, Pattern.PREFIXED):
        yield from state.volatile.acl_index.written_for(kind, name, pattern)


def keys_are_those_that_were_set(state: State, log: Log) -> Iterator[str]:
    """Each user has the keys that were set last, one of a mechanism at most."""
    last: dict[str, Sequence[ScramKey]] = {}
    for event in log:
        if isinstance(event, ScramKeysSet):
            last[event.user] = event.keys
    expected = {user: keys for user, keys in last.items() if keys}
    if state.scram_keys != expected:
        yield f"users: they are {sorted(state.scram_keys)}, and should be {sorted(expected)}, with their last keys"
    for user, keys in state.scram_keys.items():
        if len({each.mechanism for each in keys}) != len(keys):
            yield f"users: {user} has two keys for a mechanism"


def who_got_every_right_at_once_was_the_first_user(state: State, log: Log) -> Iterator[str]:
    """There was no user when a user got all rules of a first one, and the next event made that user."""
    keys: dict[str, Sequence[ScramKey]] = {}
    owed: str | None = None
    for event in log:
        if owed is not None and not (isinstance(event, ScramKeysSet) and event.user == owed and event.keys):
            yield f"access: {owed} was not made the first user, but got all rights"
        owed = None
        if isinstance(event, ScramKeysSet):
            keys[event.user] = event.keys
        elif isinstance(event, AclsCreated) and {Operation.ALL} == {
            each.operation for each in event.acls if each.kind is ResourceKind.CLUSTER and each.principal != ANYBODY
        }:
            owed = event.acls[0].principal.removeprefix("User:")
            if any(keys.values()):
                yield f"access: {owed} was not the first user, and got all rights"


def quotas_are_those_that_were_set(state: State, log: Log) -> Iterator[str]:
    """Each entity has the quotas that were set last, and who has none is not there."""
    last = {event.entity: event.quotas for event in log if isinstance(event, ClientQuotasSet)}
    expected = {entity: quotas for entity, quotas in last.items() if quotas}
    if state.client_quotas != expected:
        yield f"quotas: they are {state.client_quotas}, and should be {expected}"


def answer(
    acls: Iterable[Acl],
    principal: PrincipalName,
    host: str,
    operation: Operation,
    kind: ResourceKind,
    name: str,
    *,
    by_default: bool,
) -> bool:
    """Return what the rules say, by looking at each of them."""
    about = [each for each in acls if each.kind is kind and _is_about(each, name)]
    fitting = [each for each in about if each.principal in (principal, "User:*") and each.host in (host, "*")]
    if any(not each.allows and each.operation in (operation, Operation.ALL) for each in fitting):
        return False
    if any(each.allows and _implies(each.operation, operation) for each in fitting):
        return True
    return by_default and not about


def _is_about(acl: Acl, name: str) -> bool:
    if acl.pattern is Pattern.PREFIXED:
        return name.startswith(acl.name)
    return acl.name in (name, "*")


def _implies(allowed: Operation, asked: Operation) -> bool:
    if allowed in (asked, Operation.ALL):
        return True
    if asked is Operation.DESCRIBE:
        return allowed in DESCRIBES
    return asked is Operation.DESCRIBE_CONFIGS and allowed in DESCRIBES_CONFIGS
