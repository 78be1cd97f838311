"""The first of Kafka's eight levels that has a quota says what holds for a client (KIP-124).

| level | the quota is for | who shares it |
|---|---|---|
| 1 | the user, and the client id | the user's clients of this id |
| 2 | the user, and any other client id | the user's clients of one id |
| 3 | the user | all clients of the user |
| 4 | any other user, and the client id | the user's clients of this id |
| 5 | any other user, and any other client id | the user's clients of one id |
| 6 | any other user | all clients of the user |
| 7 | the client id | all clients of this id |
| 8 | any other client id | all clients of one id |

A client without an id has no level that names one, as in Apache Kafka. Each quota is looked for by itself.
"""

from collections.abc import Iterator, Mapping
from ipaddress import ip_address

from msgspec import Struct

from exacta.core.values.quotas import EntityType, QuotaEntity, QuotaKey

USER, CLIENT_ID, IP = EntityType


class InForce(Struct, frozen=True):
    """A quota that holds, and those who share it: a user, a client id, or both; None stands for all of them."""

    limit: float
    user: str | None = None
    client_id: str | None = None


ClientQuotas = Mapping[QuotaEntity, Mapping[QuotaKey, float]]


def in_force(quotas: ClientQuotas, key: QuotaKey, user: str, client_id: str) -> InForce | None:
    """Return the quota of a client; None: nothing bounds it."""
    for entity, shares_user, shares_client in _levels(user, client_id):
        limit = quotas.get(entity, {}).get(key)
        if limit is not None:
            return InForce(limit, user if shares_user else None, client_id if shares_client else None)
    return None


def _levels(user: str, client_id: str) -> Iterator[tuple[QuotaEntity, bool, bool]]:
    """Yield the entities that may have a client's quota, and whether its user and its client id are told apart."""
    for name in (user, None):
        if client_id:
            yield QuotaEntity(((USER, name), (CLIENT_ID, client_id))), True, True
            yield QuotaEntity(((USER, name), (CLIENT_ID, None))), True, True
        yield QuotaEntity(((USER, name),)), True, False
    if client_id:
        yield QuotaEntity(((CLIENT_ID, client_id),)), False, True
        yield QuotaEntity(((CLIENT_ID, None),)), False, True


def connection_rates(quotas: ClientQuotas) -> dict[str | None, float]:
    """Return the connections a second that addresses have, by the address as Python writes it; None: any other."""
    rates: dict[str | None, float] = {}
    for entity, held in quotas.items():
        [(kind, name), *_] = entity.parts
        if kind is IP and (limit := held.get(QuotaKey.CONNECTION_CREATION_RATE)) is not None:
            rates[None if name is None else str(ip_address(name))] = limit
    return rates
