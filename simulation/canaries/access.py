"""Planted bugs of access rules, of users' keys (decision 0065) and of quotas (0071)."""

from typing import Any

from msgspec.structs import replace

from exacta.core import decide, snapshot
from exacta.core.access import authorizing, first_user, revocation
from exacta.core.commands import AlterClientQuotas, AlterScramKeys, CreateAcls, MakeFirstUser
from exacta.core.ids import PrincipalName
from exacta.core.outcome import Outcome
from exacta.core.promises import Promise
from exacta.core.state.acl_index import KindIndex
from exacta.core.state.state import State
from exacta.core.values.acl import Acl, Operation, ResourceKind
from exacta.front import revocation as front_revocation
from exacta.front.connection import FramedConnection
from simulation.canaries import Replacements, canary


@canary("a rule is said to be made before that is durable", shows=r"access: ")
def acl_not_awaited() -> Replacements:
    return [(CreateAcls, "promises", Promise.NOTHING)]


@canary("a user is said to have a new key before that is durable", shows=r"access: |users: ")
def scram_key_not_awaited() -> Replacements:
    return [(AlterScramKeys, "promises", Promise.NOTHING)]


@canary("a snapshot leaves out the access rules", shows=r"access: |8: what was recovered at .* is not the fold")
def acls_lost_in_the_snapshot() -> Replacements:
    decoded = snapshot._decoded

    def without(blob: bytes) -> Any:
        return replace(decoded(blob), acls=[])

    return [(snapshot, "_decoded", without)]


@canary("a rule that is deleted goes on to be asked", shows=r"access: |the engine failed: DeleteAcls")
def acl_survives_in_the_index() -> Replacements:
    def nothing(index: KindIndex, acl: Acl) -> None:
        pass

    return [(KindIndex, "remove", nothing)]


@canary("a rule that allows counts before one that denies", shows=r"access: may |access: the guest may see")
def allow_before_deny() -> Replacements:
    allows = authorizing.allows

    def allows_first(
        state: State,
        principal: PrincipalName,
        host: str,
        operation: Operation,
        kind: ResourceKind,
        name: str,
        by_default: bool,
    ) -> bool:
        index = state.volatile.acl_index
        if any(each.allows and each.operation is operation for each in index.about(kind, name)):
            return True
        return allows(state, principal, host, operation, kind, name, by_default)

    return [(authorizing, "allows", allows_first)]


@canary("a first user is made though there are users", shows=r"access: .* was not the first user")
def first_user_beside_others() -> Replacements:
    make = first_user.make

    def beside_others(state: State, command: MakeFirstUser, now_ms: int) -> Outcome:
        kept, state.scram_keys = state.scram_keys, {}
        try:
            return make(state, command, now_ms)
        finally:
            state.scram_keys = kept

    return [(decide._DECIDE, MakeFirstUser, beside_others)]


@canary("a member that may not read its group any more stays in it", shows=r"access: guest0 is a member")
def membership_outlives_its_right() -> Replacements:
    return [(revocation, "_leaves", lambda state, command, member: False)]


@canary("nobody looks at memberships when a rule denies", shows=r"access: guest0 is a member")
def denial_revokes_nothing() -> Replacements:
    return [(front_revocation, "may_revoke", lambda event, terms: False)]


@canary("a quota is said to be set before that is durable", shows=r"access: |quotas: ")
def quota_not_awaited() -> Replacements:
    return [(AlterClientQuotas, "promises", Promise.NOTHING)]


@canary("a snapshot leaves out the quotas", shows=r"quotas: |access: |8: what was recovered at .* is not the fold")
def quotas_lost_in_the_snapshot() -> Replacements:
    decoded = snapshot._decoded

    def without(blob: bytes) -> Any:
        return replace(decoded(blob), client_quotas=[])

    return [(snapshot, "_decoded", without)]


@canary("a client is told how long it must wait, and is served all the same", shows=r"quotas: the guest wrote")
def quota_told_and_not_kept() -> Replacements:
    def nothing(connection: FramedConnection, seconds: float) -> None:
        pass

    return [(FramedConnection, "mute", nothing)]
