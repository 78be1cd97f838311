"""Quotas of clients: their names, who has one, and what cannot be one (KIP-13, KIP-124, KIP-546, KIP-599, KIP-612).

The names and the checks are those of Apache Kafka's `ClientQuotaControlManager`. It takes names of hosts as addresses,
which it looks up; here an address is one.
"""

from collections.abc import Mapping
from enum import Enum
from ipaddress import ip_address
from math import isfinite
from typing import Final

from msgspec import Struct


class EntityType(Enum):
    """A kind of those who have quotas."""

    USER = "user"
    CLIENT_ID = "client-id"
    IP = "ip"


class QuotaKey(Enum):
    """A quota by its name in Kafka."""

    PRODUCER_BYTE_RATE = "producer_byte_rate"
    """Bytes of Produce requests a second."""
    CONSUMER_BYTE_RATE = "consumer_byte_rate"
    """Bytes of fetched records a second."""
    REQUEST_PERCENTAGE = "request_percentage"
    """The share of the event loop's processor time: 100 is all of it."""
    CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
    """Partitions a second that are created or deleted."""
    CONNECTION_CREATION_RATE = "connection_creation_rate"
    """Connections a second."""


OF_ADDRESSES: Final = frozenset({QuotaKey.CONNECTION_CREATION_RATE})
"""The quotas that addresses have; users and clients have the others."""
_MOST: Final = {
    QuotaKey.PRODUCER_BYTE_RATE: 2.0**63,
    QuotaKey.CONSUMER_BYTE_RATE: 2.0**63,
    QuotaKey.CONNECTION_CREATION_RATE: 2.0**31 - 1,
}
"""The highest values of those that are whole numbers."""
_FRACTION: Final = 1e-6


class QuotaEntity(Struct, frozen=True, array_like=True):
    """An entity has quotas: a user, a client id or both, or an address. A name of None is the default of its type."""

    parts: tuple[tuple[EntityType, str | None], ...]
    """One of a type at most, in the order of `EntityType`."""

    def __str__(self) -> str:
        return " and ".join(
            f"{kind.value} '{name}'" if name is not None else f"any other {kind.value}" for kind, name in self.parts
        )


def entity_of(names: Mapping[EntityType, str | None]) -> QuotaEntity:
    """Return the entity with these names."""
    return QuotaEntity(tuple((each, names[each]) for each in EntityType if each in names))


class QuotaAlteration(Struct, frozen=True):
    """The changes of one entity's quotas; a value of None removes the quota."""

    entity: QuotaEntity
    values: Mapping[QuotaKey, float | None]


def problem_of_entity(entity: QuotaEntity) -> str | None:
    """Return why there cannot be such an entity, in words; None: there can."""
    names = dict(entity.parts)
    for kind, name in names.items():
        if name == "":
            return f"the name of the {kind.value} is empty"
    if not names:
        return "the entity has no name"
    if EntityType.IP not in names:
        return None
    if len(names) > 1:
        return "an address has quotas for itself, and not together with a user or a client id"
    address = names[EntityType.IP]
    try:
        if address is not None:
            ip_address(address)
    except ValueError:
        return f"{address} is not an address"
    return None


def problem_of_value(entity: QuotaEntity, key: str, value: float) -> str | None:
    """Return why an entity cannot have this quota, in words; None: it can."""
    known = next((each for each in QuotaKey if each.value == key), None)
    has_address = any(kind is EntityType.IP for kind, _ in entity.parts)
    if known is None or (known in OF_ADDRESSES) is not has_address:
        return f"the entity cannot have a quota {key}"
    if not isfinite(value):
        return f"{key} is not a finite number"
    if value <= 0:
        return f"{key} must be greater than 0"
    most = _MOST.get(known)
    if most is not None and value > most:
        return f"{key} is too large"
    if most is not None and value % 1.0 > _FRACTION:
        return f"{key} must be a whole number"
    return None
