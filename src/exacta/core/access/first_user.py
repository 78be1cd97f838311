"""The first user, who is made by the token of a start that nobody could log in after, and may do everything.

    users in the log   a key of one user                   anything else
    none               the user, and rules for all of it   NOT_THE_FIRST_USER
    some               NOT_THE_FIRST_USER                  NOT_THE_FIRST_USER

The rules come before the key, and both in one decision. Where a crash keeps the rules alone, there is no user yet, and
the next start has another token.
"""

from typing import Final

from exacta.core.access import acls, scram
from exacta.core.commands import AlterScramKeys, CreateAcls, MakeFirstUser
from exacta.core.ids import PrincipalName
from exacta.core.outcome import Outcome
from exacta.core.rejections import Rejection
from exacta.core.state.state import State
from exacta.core.values.acl import CLUSTER_NAME, WILDCARD, Acl, Operation, Pattern, ResourceKind

_RESOURCES: Final = (
    (ResourceKind.CLUSTER, CLUSTER_NAME),
    (ResourceKind.TOPIC, WILDCARD),
    (ResourceKind.GROUP, WILDCARD),
    (ResourceKind.TRANSACTIONAL_ID, WILDCARD),
    (ResourceKind.USER, WILDCARD),
)


def rules_of(user: str) -> tuple[Acl, ...]:
    """Return the rules by which a user may do everything."""
    principal = PrincipalName(f"User:{user}")
    return tuple(
        Acl(kind, name, Pattern.LITERAL, principal, WILDCARD, Operation.ALL, allows=True) for kind, name in _RESOURCES
    )


def make(state: State, command: MakeFirstUser, now_ms: int) -> Outcome:
    """Make the first user. A key with a fault is told as `AlterScramKeys` tells it."""
    if state.scram_keys or len(command.alterations) != 1 or command.alterations[0].key is None:
        return Outcome(reply=Rejection.NOT_THE_FIRST_USER)
    made = scram.alter(state, AlterScramKeys(alterations=command.alterations), now_ms)
    if not made.events:
        return made
    allowed = acls.create(state, CreateAcls(acls=rules_of(command.alterations[0].user)), now_ms)
    return Outcome(events=(*allowed.events, *made.events), reply=made.reply)
