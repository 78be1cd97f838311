"""The events of access rules, of the keys by which users log in, and of quotas."""

from exacta.core.event import Event
from exacta.core.values.acl import Acl
from exacta.core.values.quotas import QuotaEntity, QuotaKey
from exacta.core.values.scram import ScramKey


class AclsCreated(Event, frozen=True, kw_only=True, array_like=True):
    """There are these access rules from now on, which were not there before."""

    acls: tuple[Acl, ...]


class AclsDeleted(Event, frozen=True, kw_only=True, array_like=True):
    """These access rules are gone."""

    acls: tuple[Acl, ...]


class ScramKeysSet(Event, frozen=True, kw_only=True, array_like=True):
    """The keys of a user are these from now on, one of a mechanism at most; without keys the user is gone."""

    user: str
    keys: tuple[ScramKey, ...]


class ClientQuotasSet(Event, frozen=True, kw_only=True, array_like=True):
    """The quotas of an entity are these from now on; without any the entity is gone."""

    entity: QuotaEntity
    quotas: dict[QuotaKey, float]
