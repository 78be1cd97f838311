"""Questions about access rules and users."""

from collections.abc import Iterable

from exacta.core.access import acls
from exacta.core.state.state import State
from exacta.core.values.acl import Acl, AclFilter
from exacta.core.values.scram import ScramMechanism


def acls_matching(state: State, wanted: AclFilter) -> Iterable[Acl]:
    """Return what may match a filter: the rules that `is_matching` looks at one by one."""
    return acls.candidates(state, wanted)


def is_matching(state: State, wanted: AclFilter, acl: Acl) -> bool:
    """Return whether a rule is there, and the filter matches it."""
    return wanted.matches(acl) and acl in state.acls


def scram_users(state: State) -> Iterable[str]:
    """Return the users that have keys."""
    return state.scram_keys


def scram_mechanisms(state: State, user: str) -> list[tuple[ScramMechanism, int]]:
    """Return the mechanisms for which a user has a key, and the iterations of each."""
    return [(each.mechanism, each.iterations) for each in state.scram_keys.get(user, ())]
