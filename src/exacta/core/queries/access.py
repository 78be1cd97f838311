"""Questions about access rules and users."""

from collections.abc import Collection

from exacta.core.access import acls
from exacta.core.state.state import State
from exacta.core.values.acl import Acl, AclFilter
from exacta.core.values.scram import ScramMechanism

Mechanisms = list[tuple[ScramMechanism, int]]
"""The mechanisms for which a user has a key, and the iterations of each."""


def acls_matching(state: State, now_ms: int, wanted: AclFilter) -> list[Acl]:
    """Return what may match a filter: the rules that `acl_if_matching` looks at one by one."""
    return list(acls.candidates(state, wanted))


def acl_if_matching(state: State, now_ms: int, acl: Acl, *, wanted: AclFilter) -> Acl | None:
    """Return a rule that is there, if the filter matches it."""
    return acl if wanted.matches(acl) and acl in state.acls else None


def scram_users(state: State, now_ms: int) -> list[str]:
    """Return the users that have keys, in their order."""
    return sorted(state.scram_keys)


def scram_mechanisms(state: State, now_ms: int, user: str) -> Mechanisms | None:
    """Return the mechanisms for which a user has a key; None: it has none."""
    return [(each.mechanism, each.iterations) for each in state.scram_keys.get(user, ())] or None


def scram_mechanisms_of(state: State, now_ms: int, users: Collection[str]) -> dict[str, Mechanisms | None]:
    """Return the same of several users, in one state."""
    return {user: scram_mechanisms(state, now_ms, user) for user in users}
