"""Quotas on both brokers: what is set and described, error by error, and which level holds for a client.

Kafka is started with windows that let a client use one second's worth at once, which is what a bucket here holds
(decision 0071). So its throttle time for the first request is the same, and tells the rate of the level that holds.
"""

import random
import time
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest

from exacta.core.values.quotas import QuotaKey
from exacta.protocol.kafka.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from exacta.protocol.kafka.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from exacta.protocol.kafka.messages.k48_describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from exacta.protocol.kafka.messages.k49_alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from simulation.clients.batches import batch
from tests.conformance.brokers import HOST, kafka_process
from tests.differential.agree import SEED, SEQUENCES, marks
from tests.kafka.wire import Wire, front
from tests.waiting import wait_until

pytestmark = marks

CLIENT, USER = "c", "ANONYMOUS"
Entity = tuple[tuple[str, str | None], ...]
TYPES = ("user", "client-id", "ip", "planet")
NAMES = ("a", "b", "", None, "10.0.0.1")
KEYS = (*(each.value for each in QuotaKey), "bytes")
VALUES = (1.0, 2.0, 0.5, 0.0, -1.0, 1e19, 2.0**31, 12.25)
LEVELS: tuple[Entity, ...] = (
    (("user", USER), ("client-id", CLIENT)),
    (("user", USER), ("client-id", None)),
    (("user", USER),),
    (("user", None), ("client-id", CLIENT)),
    (("user", None), ("client-id", None)),
    (("user", None),),
    (("client-id", CLIENT),),
    (("client-id", None),),
)
SIZE = 40_000
PATIENCE_S = 20.0
ROUNDING_MS = 60


@pytest.fixture(scope="module")
def wires(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Wire, Wire]]:
    """Apache Kafka and Exacta."""
    with kafka_process(tmp_path_factory.mktemp("kafka"), overrides=("quota.window.num=2",)) as kafka, front() as exacta:
        yield Wire((HOST, kafka.port)), Wire(exacta.address)


def entry(entity: Entity, values: dict[str, float | None]) -> EntryData:
    return EntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
        ops=[OpData(key=key, value=value or 0.0, remove=value is None) for key, value in values.items()],
    )


def altered(wire: Wire, request: AlterClientQuotasRequest, version: int) -> set[tuple[Any, int]]:
    answer = wire.ask(request, version)
    return {
        (frozenset((each.entity_type, each.entity_name) for each in entry.entity), entry.error_code)
        for entry in answer.entries
    }


def described(wire: Wire, components: list[ComponentData], *, strict: bool, version: int) -> Any:
    answer = wire.ask(DescribeClientQuotasRequest(components=components, strict=strict), version)
    if answer.error_code:
        return answer.error_code
    return {
        (
            frozenset((each.entity_type, each.entity_name) for each in entry.entity),
            frozenset((each.key, each.value) for each in entry.values),
        )
        for entry in answer.entries
    }


def entity(chance: random.Random) -> Entity:
    kinds = chance.sample(TYPES[:3] if chance.random() < 0.9 else TYPES, chance.choice([0, 1, 1, 1, 2, 2, 3]))
    fitting = {"ip": ("10.0.0.1", "::1", None, "", "10.0.0.256")}
    return tuple((kind, chance.choice(fitting.get(kind, NAMES))) for kind in kinds)


def alteration(chance: random.Random) -> AlterClientQuotasRequest:
    entries = []
    for _ in range(chance.choice([1, 1, 2, 3])):
        made = entry(
            entity(chance),
            {chance.choice(KEYS): chance.choice((*VALUES, None, None)) for _ in range(chance.choice([0, 1, 2]))},
        )
        if made.ops and chance.random() < 0.1:
            made.ops.append(made.ops[0])
        entries.append(made)
    if chance.random() < 0.1:
        entries.append(entries[0])
    return AlterClientQuotasRequest(entries=entries, validate_only=chance.random() < 0.1)


def test_quotas_are_altered_and_described_alike(wires: tuple[Wire, Wire]) -> None:
    kafka, exacta = wires
    chance = random.Random(SEED)
    for _ in range(max(SEQUENCES // 10, 50)):
        request, version = alteration(chance), chance.choice([0, 1])
        assert altered(exacta, request, version) == altered(kafka, request, version), request
        everything = described(exacta, [], strict=False, version=1)
        wait_until(lambda: described(kafka, [], strict=False, version=1) == everything, PATIENCE_S, str(request))  # noqa: B023
        for _ in range(3):
            components = [
                ComponentData(
                    entity_type=chance.choice((*TYPES, "")),
                    match_type=chance.choice([0, 0, 1, 2, 3]),
                    match=chance.choice(NAMES),
                )
                for _ in range(chance.choice([1, 1, 2]))
            ]
            strict = chance.random() < 0.5
            answers = [described(wire, components, strict=strict, version=version) for wire in wires]
            assert answers[0] == answers[1], (components, strict, answers)
    _remove_all(wires)


def _remove_all(wires: tuple[Wire, Wire]) -> None:
    for wire in wires:
        for names, values in described(wire, [], strict=False, version=1):
            removed = entry(tuple(names), dict.fromkeys(key for key, _ in values))
            altered(wire, AlterClientQuotasRequest(entries=[removed]), 1)
        wait_until(lambda: described(wire, [], strict=False, version=1) == set(), PATIENCE_S)  # noqa: B023


def test_the_same_level_holds_for_the_same_time(wires: tuple[Wire, Wire]) -> None:
    chance = random.Random(SEED)
    sets = [chosen for size in (1, 2, 3) for chosen in combinations(range(len(LEVELS)), size)]
    for wire in wires:
        topic = CreatableTopic(name="quotas", num_partitions=1, replication_factor=1)
        wire.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 5)
        asked = MetadataRequest(topics=[MetadataRequestTopic(name="quotas")])
        wait_until(lambda: wire.ask(asked, 9).topics[0].error_code == 0, PATIENCE_S)  # noqa: B023
    for chosen in chance.sample(sets, 16):
        rates = {each: 10_000.0 + 2_000 * each for each in chosen}
        values = {LEVELS[each]: rate for each, rate in rates.items()}
        for wire in wires:
            entries = [entry(each, {"producer_byte_rate": rate}) for each, rate in values.items()]
            altered(wire, AlterClientQuotasRequest(entries=entries), 1)
            wait_until(lambda: len(described(wire, [], strict=False, version=1)) == len(chosen), PATIENCE_S)  # noqa: B023
        times = [_throttle_ms(wire) for wire in wires]
        assert abs(times[0] - times[1]) <= ROUNDING_MS, (values, times)
        _remove_all(wires)
        time.sleep(max(times) / 1000 + 2.5)  # Kafka goes on to count for who had a quota once


def _throttle_ms(wire: Wire) -> int:
    """Return the throttle time of a Produce of a known size, by a connection of its own."""
    data = PartitionProduceData(
        index=0,
        records=batch([b"x" * SIZE], (-1, -1), -1, transactional=False, now_ms=time.time_ns() // 1_000_000),
    )
    topics = [TopicProduceData(name="quotas", partition_data=[data])]
    address = wire.socket.getpeername()
    one = Wire(address, CLIENT)
    answer = one.ask(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=topics), 9)
    one.socket.close()
    assert answer.responses[0].partition_responses[0].error_code == 0
    return int(answer.throttle_time_ms)
