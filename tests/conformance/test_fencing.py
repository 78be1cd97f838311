"""Scenarios of two producers with one transactional id: the second fences the first, the zombie."""

import contextlib

import pytest

from tests.conformance.clients import FencedError, Isolation, Producer, TopicPartition
from tests.conformance.clients.interface import CALL_TIMEOUT_S
from tests.conformance.scenario import Scenario, send_all, wait_until


def finish(scenario: Scenario, successor: Producer, partition: TopicPartition) -> None:
    """Let the successor commit one record, and check that this is all that anybody sees."""
    successor.begin()
    send_all(successor, partition, [b"successor"])
    successor.commit()
    wait_until(lambda: scenario.read(partition) == [b"successor"], "the successor's record")
    assert scenario.last_stable_offset(partition) == scenario.high_watermark(partition)


def test_a_zombie_cannot_commit(scenario: Scenario) -> None:
    partition, transactional_id = scenario.partition(), scenario.new_name("id")
    zombie = scenario.transactional(transactional_id)
    zombie.begin()
    send_all(zombie, partition, [b"zombie"])
    successor = scenario.transactional(transactional_id)
    # To take over is to abort what was open, not only to forbid more of it.
    wait_until(
        lambda: scenario.last_stable_offset(partition) == scenario.high_watermark(partition),
        "the zombie's transaction to be aborted",
    )
    with pytest.raises(FencedError):
        zombie.commit()
    finish(scenario, successor, partition)
    everything = scenario.holds(marker=[b"zombie", b"successor"], sidecar=[b"successor"])
    assert scenario.read(partition, Isolation.UNCOMMITTED) == everything


def test_a_zombie_cannot_produce_into_a_partition_it_has_used(scenario: Scenario) -> None:
    partition, transactional_id = scenario.partition(), scenario.new_name("id")
    zombie = scenario.transactional(transactional_id)
    zombie.begin()
    send_all(zombie, partition, [b"zombie"])
    successor = scenario.transactional(transactional_id)

    def go_on() -> None:
        # The libraries differ in which of these calls they raise.
        late = zombie.send(partition.topic, b"late", partition=0)
        zombie.flush()
        late.result(CALL_TIMEOUT_S)
        zombie.commit()

    with pytest.raises(FencedError):
        go_on()
    finish(scenario, successor, partition)


def test_a_zombie_cannot_produce_into_another_partition(scenario: Scenario) -> None:
    used, other, transactional_id = scenario.partition(), scenario.partition(), scenario.new_name("id")
    zombie = scenario.transactional(transactional_id)
    zombie.begin()
    send_all(zombie, used, [b"zombie"])
    successor = scenario.transactional(transactional_id)

    def go_on() -> None:
        zombie.send(other.topic, b"late", partition=0)
        zombie.commit()

    with pytest.raises(FencedError):
        go_on()
    assert scenario.high_watermark(other) == 0
    finish(scenario, successor, used)


def test_a_zombie_cannot_commit_offsets(scenario: Scenario) -> None:
    partition, transactional_id = scenario.partition(), scenario.new_name("id")
    group_id = scenario.new_name("group")
    zombie = scenario.transactional(transactional_id)
    zombie.begin()
    send_all(zombie, partition, [b"zombie"])
    successor = scenario.transactional(transactional_id)

    def go_on() -> None:
        scenario.send_offsets(zombie, {partition: 1}, group_id)
        zombie.commit()

    with pytest.raises(FencedError):
        go_on()
    assert scenario.committed(group_id, partition) is None
    finish(scenario, successor, partition)


def test_a_zombie_cannot_abort_its_successor(scenario: Scenario) -> None:
    partition, transactional_id = scenario.partition(), scenario.new_name("id")
    zombie = scenario.transactional(transactional_id)
    zombie.begin()
    send_all(zombie, partition, [b"zombie"])
    successor = scenario.transactional(transactional_id)
    successor.begin()
    send_all(successor, partition, [b"successor"])
    with contextlib.suppress(FencedError):
        # Whether it learns of its end here or only later is the library's affair.
        zombie.abort()
    successor.commit()
    wait_until(lambda: scenario.read(partition) == [b"successor"], "the successor's record")


def test_each_successor_fences_all_before_it(scenario: Scenario) -> None:
    partition, transactional_id = scenario.partition(), scenario.new_name("id")
    producers: list[Producer] = []
    for number in range(4):
        producers.append(scenario.transactional(transactional_id))
        producers[-1].begin()
        send_all(producers[-1], partition, [b"number-%d" % number])
    *zombies, last = producers
    last.commit()
    for zombie in zombies:
        with pytest.raises(FencedError):
            zombie.commit()
    wait_until(lambda: scenario.read(partition) == [b"number-3"], "the last producer's record")


def test_different_transactional_ids_do_not_fence_each_other(scenario: Scenario) -> None:
    partition = scenario.partition()
    first, second = scenario.transactional(), scenario.transactional()
    first.begin()
    second.begin()
    send_all(first, partition, [b"first"])
    send_all(second, partition, [b"second"])
    second.commit()
    first.commit()
    # The order of their writes, or that of their commits.
    both = scenario.holds(marker=[b"first", b"second"], sidecar=[b"second", b"first"])
    wait_until(lambda: scenario.read(partition) == both, "both records")
