"""The members of a group of the classic protocol: plain frozen data. The rules are in `core.groups.classic`.

A change makes a new `Membership`. The outcome of a rebalance is durable (`settled`); its course is not.
Both structs are written to the journal: a field may be added only at the end and with a default.
"""

from msgspec import Struct
from msgspec.structs import replace

from exacta.core.ids import NO_PRINCIPAL, PrincipalName, Ticket
from exacta.core.values.classic_groups import Phase

CONSUMERS = "consumer"
"""The protocol type of groups whose members say which topics they read."""


class Member(Struct, frozen=True, kw_only=True, array_like=True):
    """One member. A ticket is there while its JoinGroup or SyncGroup waits.

    `instance_id` makes it a static member (KIP-345). `new`: its first JoinGroup still waits.
    """

    member_id: str
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    instance_id: str | None = None
    subscription: frozenset[str] | None = None
    assignment: bytes = b""
    join_ticket: Ticket | None = None
    sync_ticket: Ticket | None = None
    synced: bool = False
    new: bool = False
    principal: PrincipalName = NO_PRINCIPAL


class Membership(Struct, frozen=True, kw_only=True, array_like=True):
    """A group's members and generation; `pending` are ids given out by KIP-394 that have not joined yet.

    `static` maps instance ids to member ids (KIP-345). `deadline_ms` is when a rebalance goes on without those who are
    late. A new group waits for its first members until `not_before_ms`; if more of them came meanwhile (`grew`) it
    waits again, at the longest until `first_rebalance_until_ms` (KIP-134).
    """

    phase: Phase = Phase.EMPTY
    generation: int = 0
    protocol_type: str = ""
    protocol: str = ""
    leader: str = ""
    members: dict[str, Member] = {}
    pending: frozenset[str] = frozenset()
    static: dict[str, str] = {}
    deadline_ms: int = 0
    not_before_ms: int = 0
    first_rebalance_until_ms: int = 0
    grew: bool = False
    subscribed: frozenset[str] | None = None
    """The topics that the members of this generation read, as far as they are consumers; None where it is not known."""


NOBODY = Membership()


def settled(membership: Membership) -> Membership:
    """Return what a restart keeps of a group whose rebalance has ended: nobody waits, and no time is running."""
    members = {
        key: replace(member, join_ticket=None, sync_ticket=None, synced=True, new=False)
        for key, member in membership.members.items()
    }
    return replace(
        membership,
        members=members,
        pending=frozenset(),
        deadline_ms=0,
        not_before_ms=0,
        first_rebalance_until_ms=0,
        grew=False,
    )
