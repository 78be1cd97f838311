"""The commands of access rules, of the keys by which users log in, and of quotas."""

from exacta.core.command import Command
from exacta.core.ids import PrincipalName
from exacta.core.values.acl import Acl, AclFilter, Terms
from exacta.core.values.quotas import QuotaAlteration
from exacta.core.values.scram import ScramAlteration


class CreateAcls(Command, frozen=True, kw_only=True):
    """Let there be these access rules. A rule that is there stays; none of them has a problem (`problem_of`)."""

    acls: tuple[Acl, ...]


class DeleteAcls(Command, frozen=True, kw_only=True):
    """Delete every access rule that one of the filters matches."""

    filters: tuple[AclFilter, ...]


class AlterScramKeys(Command, frozen=True, kw_only=True):
    """Set and delete keys of users for SCRAM (KIP-554), the deletions first."""

    alterations: tuple[ScramAlteration, ...]


class MakeFirstUser(Command, frozen=True, kw_only=True):
    """Set the key of the first user, who may do everything from then on, by rules as anybody else."""

    alterations: tuple[ScramAlteration, ...]
    """One, of the user who is made; what is more, or deletes something, is refused."""


class AlterClientQuotas(Command, frozen=True, kw_only=True):
    """Set and remove quotas (KIP-546). No entity comes twice, and none of them or of their values has a problem."""

    alterations: tuple[QuotaAlteration, ...]


class RevokeMemberships(Command, frozen=True, kw_only=True):
    """Let the members of a group leave whose login was revoked, or that may not read the group any more.

    Principals have their durable names. `terms` are those of the authorizer; None: everybody may do everything.
    """

    group_id: str
    revoked: frozenset[PrincipalName] = frozenset()
    """The principals whose logins hold no more."""
    terms: Terms | None = None
