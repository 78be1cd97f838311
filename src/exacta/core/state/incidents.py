"""Incidents: fencings and aborts of which clients cannot tell the reason from the error code.

On the wire a time-out and a takeover are both "fenced by a newer instance", so the reasons are kept: of each id the
last few, of the ids those to which something happened last (`Limits`). Durable, as a part of the fold.
"""

from enum import IntEnum

from msgspec import Struct

from exacta.core.ids import Cause, ProducerEpoch, ProducerId


class IncidentKind(IntEnum):
    """The misfortune of the producer that had the pair."""

    FENCED = 0
    ABORTED = 1
    FORGOTTEN = 2


class Incident(Struct, frozen=True, kw_only=True, array_like=True):
    """One happening. The pair is of the client that lost by it; `client` is the one that asked for it, if any."""

    kind: IncidentKind
    cause: Cause
    at_ms: int
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    client_id: str = ""
    client_host: str = ""


def record(
    incidents: dict[str, list[Incident]], transactional_id: str, incident: Incident, *, per_id: int, ids: int
) -> None:
    """Note an incident, and drop the oldest where there are too many."""
    of_this = incidents.pop(transactional_id, [])
    incidents[transactional_id] = [*of_this[-(per_id - 1) :], incident] if per_id > 1 else [incident]
    if len(incidents) > ids:
        del incidents[next(iter(incidents))]
