"""Readers of many partitions: libraries that know fetch sessions (KIP-227) hear of what changes only, and miss none."""

import random

from tests.conformance.clients import Consumer, TopicPartition
from tests.conformance.scenario import POLL_S, Scenario, send_all, values, wait_until

PARTITIONS = 20


def _poll_until(consumer: Consumer, wanted: set[bytes | None], what: str) -> None:
    arrived: list[bytes | None] = []

    def all_came() -> bool:
        arrived.extend(record.value for record in consumer.poll(POLL_S))
        return len(arrived) >= len(wanted)

    wait_until(all_came, what)
    assert sorted(map(repr, arrived)) == sorted(map(repr, wanted))


def test_each_record_comes_whichever_partitions_are_silent(scenario: Scenario) -> None:
    topic = scenario.topic(PARTITIONS)
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    consumer = scenario.consumer()
    consumer.assign(dict.fromkeys(partitions, 0))
    plain, transactional = scenario.producer(), scenario.transactional()
    dice = random.Random(1)
    for turn in range(12):
        some = dice.sample(partitions, 3)
        given_up, committed = values(f"given-up-{turn}", 3), values(f"committed-{turn}", 3)
        for written, commits in ((given_up, False), (committed, True)):
            transactional.begin()
            for partition, value in zip(some, written, strict=True):
                transactional.send(topic, value, partition=partition.partition)
            transactional.flush()
            (transactional.commit if commits else transactional.abort)()
        outside = f"plain-{turn}".encode()
        send_all(plain, dice.choice(partitions), [outside])
        _poll_until(consumer, {*committed, outside}, f"what was committed in turn {turn}")
    consumer.close()


def test_partitions_come_and_go(scenario: Scenario) -> None:
    topic = scenario.topic(PARTITIONS)
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    producer = scenario.producer()
    consumer = scenario.consumer()
    read_to = dict.fromkeys(partitions, 0)
    unread: dict[TopicPartition, list[bytes]] = {partition: [] for partition in partitions}
    dice = random.Random(2)
    for turn in range(8):
        some = dice.sample(partitions, 7)
        consumer.assign({partition: read_to[partition] for partition in some})
        for partition in dice.sample(partitions, 7):
            unread[partition].append(f"{turn}-{partition.partition}".encode())
            send_all(producer, partition, unread[partition][-1:])
        wanted: set[bytes | None] = {value for partition in some for value in unread[partition]}
        _poll_until(consumer, wanted, f"what lies in the partitions of turn {turn}")
        for partition in some:
            read_to[partition] += len(unread[partition])
            unread[partition].clear()
    consumer.close()
