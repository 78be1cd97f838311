"""The simulation's own opinion of when a group may expire, and must."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from exacta.core.commands import OffsetToCommit
from exacta.core.events import Event, GroupDeleted, OffsetsCommitted, TransactionalOffsetsCommitted
from exacta.core.ids import TransactionId
from exacta.core.values.limits import Limits
from simulation.group_use import SLACK_MS, SPARKS, GroupUse

RETENTION_MS, INTERVAL_MS = 5_000, 100
LIMITS = replace(Limits(), offsets_retention_ms=RETENTION_MS, group_expiry_interval_ms=INTERVAL_MS)
BEGUN_MS, AT_MS = 1_000, 3_000


def offset(metadata: str = "") -> tuple[OffsetToCommit, ...]:
    return (OffsetToCommit(topic="t", partition=0, offset=1, metadata=metadata),)


def committed(at_ms: int = AT_MS, metadata: str = "") -> Event:
    return OffsetsCommitted(group_id="g", offsets=offset(metadata), at_ms=at_ms)


def pending() -> Event:
    return TransactionalOffsetsCommitted(group_id="g", transaction_id=TransactionId(1), offsets=offset(), at_ms=AT_MS)


def complaints(*events: Event, begun_ms: int = BEGUN_MS, then: Callable[[GroupUse, list[str]], None]) -> list[str]:
    found: list[str] = []
    use = GroupUse(LIMITS, begun_ms, events, lambda: None)
    then(use, found)
    return found


def expires(at_ms: int) -> Callable[[GroupUse, list[str]], None]:
    event = GroupDeleted(group_id="g", expired_at_ms=at_ms)
    return lambda use, found: use.decided(event, at_ms, found.append)


def looks(at_ms: int) -> Callable[[GroupUse, list[str]], None]:
    return lambda use, found: use.look(at_ms, found.append)


def test_a_group_goes_when_its_time_has_come() -> None:
    assert complaints(committed(), then=expires(AT_MS + RETENTION_MS)) == []
    assert complaints(committed(), then=expires(AT_MS + RETENTION_MS - 1))
    assert complaints(committed(), begun_ms=AT_MS + 1, then=expires(AT_MS + RETENTION_MS)), "the start counts"


@pytest.mark.parametrize("metadata", SPARKS)
def test_what_a_spark_query_remembers_never_goes(metadata: str) -> None:
    assert complaints(committed(metadata=metadata), then=expires(AT_MS + 100 * RETENTION_MS))
    assert complaints(committed(metadata=metadata), then=looks(AT_MS + 100 * RETENTION_MS)) == []


def test_offsets_that_wait_never_go() -> None:
    assert complaints(committed(), pending(), then=expires(AT_MS + 100 * RETENTION_MS))
    assert complaints(committed(), pending(), then=looks(AT_MS + 100 * RETENTION_MS)) == []


def test_a_group_that_may_go_does() -> None:
    late_ms = AT_MS + RETENTION_MS + 3 * INTERVAL_MS + SLACK_MS
    assert complaints(committed(), then=looks(late_ms)) == []
    assert complaints(committed(), then=looks(late_ms + 1))
