"""Clients that know a follower only: they find the leader, and read from the follower where that is near."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiokafka
import confluent_kafka
import pytest
from confluent_kafka import admin

from tests.server.cluster.brokers import Brokers

LEADER, FOLLOWER = 1, 2
TIMEOUT_S = 30
FAR, NEAR = "east", "west"
VALUES = [b"%d" % number for number in range(20)]


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[Brokers]:
    """A leader and its follower, each in its rack."""
    with Brokers(tmp_path, {"group.initial.rebalance.delay.ms": 0}) as running:
        running.start(LEADER, broker_rack=FAR)
        assert running.leader() == LEADER
        running.start(FOLLOWER, broker_rack=NEAR)
        yield running


def bootstrap(brokers: Brokers) -> str:
    """Return the address of the follower."""
    [follower] = brokers.followers()
    return brokers.address(follower)


def dotted(options: dict[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "."): value for name, value in options.items()}


class Confluent:
    """librdkafka's clients, which are told of the follower only."""

    def __init__(self, brokers: Brokers) -> None:
        self.common = {"bootstrap.servers": bootstrap(brokers), "retry.backoff.ms": 50}

    def produce(self, topic: str, **options: Any) -> None:
        producer = confluent_kafka.Producer({**self.common, **dotted(options)})
        if "transactional_id" in options:
            producer.init_transactions(TIMEOUT_S)
            producer.begin_transaction()
        failed: list[Any] = []
        for value in VALUES:
            producer.produce(topic, value, partition=0, on_delivery=lambda error, _: failed.append(error))
        assert producer.flush(TIMEOUT_S) == 0
        if "transactional_id" in options:
            producer.commit_transaction(TIMEOUT_S)
        assert set(failed) == {None}

    def consume(self, topic: str, **options: Any) -> list[bytes]:
        settings = {"group.id": "g", "auto.offset.reset": "earliest", **dotted(options)}
        consumer = confluent_kafka.Consumer({**self.common, **settings})
        try:
            consumer.subscribe([topic])
            found: list[bytes] = []
            end = time.monotonic() + TIMEOUT_S
            while len(found) < len(VALUES) and time.monotonic() < end:
                message = consumer.poll(0.2)
                if message is not None and message.error() is None:
                    found.append(message.value() or b"")
            consumer.commit(asynchronous=False)
            return found
        finally:
            consumer.close()


class TestLibrdkafka:
    @pytest.mark.parametrize("options", [{}, {"enable_idempotence": True}, {"transactional_id": "x"}])
    def test_it_writes_into_a_topic_that_the_leader_creates(self, brokers: Brokers, options: dict[str, Any]) -> None:
        clients = Confluent(brokers)
        clients.produce("new", **options)
        assert clients.consume("new") == VALUES

    def test_it_reads_from_a_follower_in_its_rack(self, brokers: Brokers) -> None:
        clients = Confluent(brokers)
        clients.produce("t")
        counts = brokers.servers[FOLLOWER].engine.counts
        assert clients.consume("t", client_rack=NEAR) == VALUES
        assert counts.read_bytes["t"] > 0

    def test_it_administers(self, brokers: Brokers) -> None:
        client = admin.AdminClient(Confluent(brokers).common)
        [created] = client.create_topics([admin.NewTopic("t", 2, 2)], operation_timeout=TIMEOUT_S).values()
        created.result(TIMEOUT_S)
        known = client.list_topics("t", timeout=TIMEOUT_S)
        assert (known.controller_id, sorted(known.brokers)) == (LEADER, [LEADER, FOLLOWER])
        assert {partition.leader for partition in known.topics["t"].partitions.values()} == {LEADER}
        entry = admin.ConfigEntry("retention.ms", "1000", incremental_operation=admin.AlterConfigOpType.SET)
        resource = admin.ConfigResource(admin.ResourceType.TOPIC, "t", incremental_configs=[entry])
        for done in client.incremental_alter_configs([resource]).values():
            done.result(TIMEOUT_S)
        [described] = client.describe_configs([admin.ConfigResource(admin.ResourceType.TOPIC, "t")]).values()
        assert described.result(TIMEOUT_S)["retention.ms"].value == "1000"

    def test_a_group_is_listed_once(self, brokers: Brokers) -> None:
        clients = Confluent(brokers)
        clients.produce("t")
        clients.consume("t")
        client = admin.AdminClient(clients.common)
        client.list_topics(timeout=TIMEOUT_S)  # it asks the brokers that it knows
        listed = client.list_consumer_groups().result(TIMEOUT_S)
        assert ([each.group_id for each in listed.valid], listed.errors) == (["g"], [])


class TestAiokafka:
    @pytest.mark.parametrize("options", [{}, {"enable_idempotence": True}, {"transactional_id": "x"}])
    def test_it_writes_and_reads(self, brokers: Brokers, options: dict[str, Any]) -> None:
        async def run() -> list[bytes]:
            servers = bootstrap(brokers)
            producer = aiokafka.AIOKafkaProducer(bootstrap_servers=servers, **options)
            await producer.start()
            try:
                if "transactional_id" in options:
                    await producer.begin_transaction()
                for value in VALUES:
                    await producer.send_and_wait("new", value, partition=0)
                if "transactional_id" in options:
                    await producer.commit_transaction()
            finally:
                await producer.stop()
            consumer = aiokafka.AIOKafkaConsumer(
                "new", bootstrap_servers=servers, group_id="g", auto_offset_reset="earliest"
            )
            await consumer.start()
            try:
                return [(await consumer.getone()).value or b"" for _ in VALUES]
            finally:
                await consumer.stop()

        assert asyncio.run(asyncio.wait_for(run(), TIMEOUT_S)) == VALUES
