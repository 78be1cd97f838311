"""Scenarios of offsets inside a transaction: consume-transform-produce, pending offsets, a group that moved on."""

import pytest

from tests.conformance.clients import AbortRequiredError, ClientError, Consumer, TopicPartition
from tests.conformance.scenario import POLL_S, Scenario, send_all, values, wait_until

BATCH = 5


def take(consumer: Consumer, count: int) -> tuple[list[bytes], dict[TopicPartition, int]]:
    """Consume at least `count` records; return their values and the offsets that come after them."""
    taken: list[bytes] = []
    ends: dict[TopicPartition, int] = {}

    def enough() -> bool:
        for record in consumer.poll(POLL_S):
            assert record.value is not None
            taken.append(record.value)
            ends[TopicPartition(record.topic, record.partition)] = record.offset + 1
        return len(taken) >= count

    wait_until(enough, f"{count} records")
    return taken, ends


def test_consume_transform_produce_commits_input_and_output_together(scenario: Scenario) -> None:
    source, target, group_id = scenario.partition(), scenario.partition(), scenario.new_name("group")
    producer, feeder = scenario.transactional(), scenario.producer()
    consumer = scenario.consumer(group_id)
    consumer.subscribe([source.topic])
    for round_number in range(4):
        send_all(feeder, source, values("v", BATCH, start=round_number * BATCH))
        taken, ends = take(consumer, BATCH)
        producer.begin()
        for value in taken:
            producer.send(target.topic, value.upper(), partition=0)
        producer.send_offsets(ends, consumer.group_metadata())
        producer.commit()
    consumer.close()
    wait_until(lambda: len(scenario.read(target)) == 4 * BATCH, "the committed output")
    assert scenario.read(target) == [value.upper() for value in values("v", 4 * BATCH)]
    assert scenario.committed(group_id, source) == 4 * BATCH


def test_an_abort_gives_input_and_output_back(scenario: Scenario) -> None:
    source, target, group_id = scenario.partition(), scenario.partition(), scenario.new_name("group")
    scenario.fill(source, values("v", BATCH))
    for outcome in ("abort", "abort", "commit"):
        # A new member each time, as after a failure: it must begin where the last commit left off.
        consumer = scenario.consumer(group_id)
        consumer.subscribe([source.topic])
        taken, ends = take(consumer, BATCH)
        assert taken == values("v", BATCH)
        producer = scenario.transactional()
        producer.begin()
        for value in taken:
            producer.send(target.topic, outcome.encode() + b"-" + value, partition=0)
        producer.flush()
        producer.send_offsets(ends, consumer.group_metadata())
        producer.abort() if outcome == "abort" else producer.commit()
        consumer.close()
    wait_until(lambda: len(scenario.read(target)) >= BATCH, "the committed output")
    assert scenario.read(target) == values("commit-v", BATCH)
    assert scenario.committed(group_id, source) == BATCH


def test_a_transaction_may_hold_offsets_only(scenario: Scenario) -> None:
    source, group_id = scenario.partition(), scenario.new_name("group")
    scenario.fill(source, values("v", 3))
    producer = scenario.transactional()
    for offset, end in ((1, producer.commit), (3, producer.abort), (2, producer.commit)):
        producer.begin()
        scenario.send_offsets(producer, {source: offset}, group_id)
        end()
    wait_until(lambda: scenario.committed(group_id, source) == 2, "the last committed offset")


def test_a_transaction_may_hold_offsets_of_many_partitions(scenario: Scenario) -> None:
    topic, group_id = scenario.topic(partitions=20), scenario.new_name("group")
    offsets = {TopicPartition(topic, number): number + 1 for number in range(20)}
    producer = scenario.transactional()
    producer.begin()
    scenario.send_offsets(producer, offsets, group_id)
    producer.commit()
    for partition, offset in offsets.items():
        assert scenario.committed(group_id, partition) == offset


def test_pending_offsets_are_not_seen(scenario: Scenario) -> None:
    source, group_id = scenario.partition(), scenario.new_name("group")
    scenario.fill(source, values("v", 5))
    producer = scenario.transactional()
    producer.begin()
    scenario.send_offsets(producer, {source: 2}, group_id)
    producer.commit()
    assert scenario.committed(group_id, source) == 2

    producer.begin()
    scenario.send_offsets(producer, {source: 5}, group_id)
    reader = scenario.consumer(group_id)
    if scenario.client.waits_for_stable_offsets:
        # It asks for stable offsets only (KIP-447), so there is no answer while the transaction is open.
        with pytest.raises(ClientError):
            reader.committed(source, timeout_s=0.5)
    else:
        assert reader.committed(source) == 2
    producer.commit()
    wait_until(lambda: reader.committed(source) == 5, "the offset of the transaction")


def test_a_member_that_the_group_has_left_behind_cannot_commit(scenario: Scenario) -> None:
    if not scenario.client.sends_group_metadata:
        pytest.skip(f"{scenario.client.name} does not name member and generation in a transaction")
    source, target, group_id = scenario.partition(), scenario.partition(), scenario.new_name("group")
    scenario.fill(source, values("v", BATCH))
    zombie = scenario.consumer(group_id)
    zombie.subscribe([source.topic])
    taken, ends = take(zombie, BATCH)
    producer = scenario.transactional()
    producer.begin()
    send_all(producer, target, [b"zombie-" + value for value in taken])

    # The group goes on without the zombie, in a new generation.
    stale = zombie.group_metadata()
    zombie.close()
    successor = scenario.consumer(group_id)
    successor.subscribe([source.topic])
    retaken, ends = take(successor, BATCH)
    assert retaken == taken
    with pytest.raises(AbortRequiredError):
        producer.send_offsets(ends, stale)
    producer.abort()

    # The producer goes on under the new generation.
    producer.begin()
    send_all(producer, target, taken)
    producer.send_offsets(ends, successor.group_metadata())
    producer.commit()
    wait_until(lambda: len(scenario.read(target)) >= BATCH, "the committed output")
    assert scenario.read(target) == values("v", BATCH)
    assert scenario.committed(group_id, source) == BATCH
