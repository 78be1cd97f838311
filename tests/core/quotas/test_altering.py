"""Quotas come and go, lie in events and snapshots, and a full table refuses more."""

from typing import Any

import pytest
from msgspec.structs import replace

from exacta.core.commands import AlterClientQuotas
from exacta.core.event_codec import decode_event, encode_event
from exacta.core.events import ClientQuotasSet
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE
from exacta.core.snapshot import restore, snapshot
from exacta.core.values.quotas import (
    EntityType,
    QuotaAlteration,
    QuotaEntity,
    QuotaKey,
    entity_of,
    problem_of_entity,
    problem_of_value,
)
from tests.core.world import SMALL, World

USER, CLIENT_ID, IP = EntityType
ALICE, ANYBODY = entity_of({USER: "alice"}), entity_of({USER: None, CLIENT_ID: None})
PRODUCER, CONSUMER = QuotaKey.PRODUCER_BYTE_RATE, QuotaKey.CONSUMER_BYTE_RATE


def alter(world: World, entity: QuotaEntity, values: dict[QuotaKey, float | None]) -> object:
    answer = world.send(AlterClientQuotas(alterations=(QuotaAlteration(entity, values),)))
    world.check()
    return answer


def test_an_entity_has_the_quotas_that_it_was_given_last(world: World) -> None:
    assert alter(world, ALICE, {PRODUCER: 10.0, CONSUMER: 20.0}) is DONE
    alter(world, ANYBODY, {QuotaKey.REQUEST_PERCENTAGE: 12.5})
    alter(world, ALICE, {PRODUCER: 30.0, CONSUMER: None, QuotaKey.CONTROLLER_MUTATION_RATE: None})
    expected = {ALICE: {PRODUCER: 30.0}, ANYBODY: {QuotaKey.REQUEST_PERCENTAGE: 12.5}}
    assert world.state.client_quotas == expected
    again = restore(snapshot(world.state), world.state.limits)
    assert again.client_quotas == expected
    changes = world.state.volatile.quota_changes
    alter(world, ALICE, {PRODUCER: 30.0})
    assert world.state.volatile.quota_changes == changes == 3, "what changes nothing is no event"
    alter(world, ALICE, {PRODUCER: None})
    assert ALICE not in world.state.client_quotas


def test_an_event_is_read_as_it_was_written() -> None:
    event = ClientQuotasSet(entity=ANYBODY, quotas={PRODUCER: 1.0, QuotaKey.REQUEST_PERCENTAGE: 0.25})
    assert decode_event(encode_event(event)) == event


def test_a_full_table_refuses_a_quota_and_lets_one_go() -> None:
    world = World(replace(SMALL, max_quota_bytes=2_000))
    assert alter(world, ALICE, {PRODUCER: 1.0}) is DONE
    assert alter(world, ANYBODY, {PRODUCER: 1.0}) is DONE
    address = entity_of({IP: "10.0.0.1"})
    assert alter(world, address, {QuotaKey.CONNECTION_CREATION_RATE: 1.0}) is Rejection.LIMIT_REACHED
    assert alter(world, ALICE, {PRODUCER: None}) is DONE


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        ({USER: "alice"}, None),
        ({USER: None, CLIENT_ID: "app"}, None),
        ({IP: None}, None),
        ({IP: "::1"}, None),
        ({}, "the entity has no name"),
        ({USER: ""}, "the name of the user is empty"),
        ({IP: "localhost"}, "localhost is not an address"),
        ({IP: "::1", USER: "alice"}, "an address has quotas for itself, and not together with a user or a client id"),
    ],
)
def test_who_can_have_quotas(names: dict[EntityType, str | None], problem: str | None) -> None:
    assert problem_of_entity(entity_of(names)) == problem


@pytest.mark.parametrize(
    ("kind", "key", "value", "problem"),
    [
        (USER, "producer_byte_rate", 1024.0, None),
        (USER, "producer_byte_rate", 1024.5, "producer_byte_rate must be a whole number"),
        (CLIENT_ID, "consumer_byte_rate", 0.0, "consumer_byte_rate must be greater than 0"),
        (USER, "consumer_byte_rate", 1e19, "consumer_byte_rate is too large"),
        (USER, "request_percentage", 0.5, None),
        (USER, "request_percentage", float("nan"), "request_percentage is not a finite number"),
        (USER, "request_percentage", float("inf"), "request_percentage is not a finite number"),
        (USER, "controller_mutation_rate", -1.0, "controller_mutation_rate must be greater than 0"),
        (USER, "connection_creation_rate", 1.0, "the entity cannot have a quota connection_creation_rate"),
        (IP, "connection_creation_rate", 2.0**31 - 1, None),
        (IP, "connection_creation_rate", 2.0**31, "connection_creation_rate is too large"),
        (IP, "producer_byte_rate", 1.0, "the entity cannot have a quota producer_byte_rate"),
        (USER, "bytes", 1.0, "the entity cannot have a quota bytes"),
    ],
)
def test_what_can_be_a_quota(kind: EntityType, key: str, value: Any, problem: str | None) -> None:
    assert problem_of_value(entity_of({kind: None}), key, value) == problem
