"""The end of what rests on a right or a login that is gone: which changes take one away, and who leaves a group.

    event \\ what has no rule  is closed  is open  there are no rules
    a rule allows             -          rights   -
    one that allows is gone   rights     rights   -
    a rule denies             rights     rights   -
    one that denies is gone   -          -        -
    keys of a user are set    logins     logins   logins

    a member \\ its login      holds      was revoked
    is a super user           stays      leaves
    may read the group        stays      leaves
    may not read it           leaves     leaves
    there are no rules        stays      leaves

Who a client is, the fronts know: they close connections (`exacta.front.revocation`). A membership outlives its
connection, so it ends here. What waits for a member that leaves is answered with MEMBERSHIP_REVOKED; the others
rebalance, as if it had left. Apache Kafka lets a member stay until its session ends.
"""

from typing import Final

from exacta.core.access import authorizing
from exacta.core.commands import RevokeMemberships
from exacta.core.events import AclsCreated, AclsDeleted, Event, ScramKeysSet
from exacta.core.groups.classic.step import ClassicStep
from exacta.core.groups.consumer.leaving import without
from exacta.core.groups.consumer.step import ConsumerStep
from exacta.core.ids import PrincipalName
from exacta.core.outcome import Outcome
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE
from exacta.core.state.classic_membership import NOBODY, Member
from exacta.core.state.consumer_membership import ConsumerMember
from exacta.core.state.state import State
from exacta.core.values.acl import Operation, ResourceKind, Terms

ANONYMOUS: Final = PrincipalName("User:ANONYMOUS")
"""The name in rules of a principal that has no durable name."""


def may_revoke(event: Event, terms: Terms | None) -> bool:
    """Return whether something may be gone after an event: a login, or a right by the rules; see the table."""
    if isinstance(event, ScramKeysSet):
        return True
    if terms is None:
        return False
    if isinstance(event, AclsDeleted):
        return any(each.allows for each in event.acls)
    return isinstance(event, AclsCreated) and (terms.allow_everyone or any(not each.allows for each in event.acls))


def revoke(state: State, command: RevokeMemberships, now_ms: int) -> Outcome:
    """Let the members leave that the table says."""
    consumers = state.volatile.consumer_groups.get(command.group_id)
    members = (consumers or state.volatile.memberships.get(command.group_id, NOBODY)).members
    gone = {member_id for member_id, member in members.items() if _leaves(state, command, member)}
    if not gone:
        return Outcome(reply=DONE)
    if consumers is not None:
        return without(ConsumerStep(state, command.group_id, now_ms), gone, DONE)
    step = ClassicStep(state, command.group_id, now_ms)
    step.remove_all(gone, Rejection.MEMBERSHIP_REVOKED)
    step.begin_rebalance()
    step.complete_if_all_joined()
    return step.outcome(DONE)


def _leaves(state: State, command: RevokeMemberships, member: Member | ConsumerMember) -> bool:
    if member.principal in command.revoked:
        return True
    terms, name = command.terms, member.principal or ANONYMOUS
    if terms is None or name in terms.super_users:
        return False
    host = member.client_host.removeprefix("/")
    read, kind = Operation.READ, ResourceKind.GROUP
    return not authorizing.allows(state, name, host, read, kind, command.group_id, terms.allow_everyone)
