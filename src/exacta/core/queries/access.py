"""Questions about access rules and users."""

from exacta.core.access import acls
from exacta.core.state.state import State
from exacta.core.values.acl import Acl, AclFilter
from exacta.core.values.scram import ScramMechanism

Mechanisms = list[tuple[ScramMechanism, int]]
"""The mechanisms for which a user has a key, and the iterations of each."""


def acls_matching(state: State, now_ms: int, wanted: AclFilter) -> list[Acl]:
    """Return the rules that a filter matches."""
    return list(acls.matching(state, wanted))


def scram_users(state: State, now_ms: int) -> list[str]:
    """Return the users that have keys, by name."""
    return sorted(state.scram_keys)


def scram_mechanisms(state: State, now_ms: int, user: str) -> Mechanisms:
    """Return by what a user can log in."""
    return [(each.mechanism, each.iterations) for each in state.scram_keys.get(user, ())]
