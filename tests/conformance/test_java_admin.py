"""Kafka's own admin client for Java: what it asks of a broker beside topics (`make test-with WHAT=java`)."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conformance.clients import Client, GroupProtocol
from tests.conformance.clients.interface import TopicPartition
from tests.conformance.scenario import POLL_S, Scenario, send_all, wait_until
from tests.conformance.test_groups import Member, drive

if not os.environ.get("EXACTA_TEST_JAVA"):
    pytest.skip("set EXACTA_TEST_JAVA to run Kafka's client for Java", allow_module_level=True)

from tests.conformance.clients import FencedError
from tests.conformance.clients.java import Admin


@pytest.fixture
def admin(bootstrap: str) -> Iterator[Admin]:
    made = Admin(bootstrap)
    yield made
    made.close()


def test_transactions_and_who_holds_readers_back(scenario: Scenario, admin: Admin) -> None:
    partition, transactional_id = scenario.partition(), scenario.new_name("id")
    scenario.fill(partition, [b"before"])
    producer = scenario.transactional(transactional_id)
    producer.begin()
    send_all(producer, partition, [b"v"])

    def listed() -> dict[str, str]:
        found = admin.ask("listTransactions").all().get()
        return {str(each.transactionalId()): str(each.state()) for each in found}

    assert listed()[transactional_id] == "Ongoing"
    described = admin.ask("describeTransactions", [transactional_id]).description(transactional_id).get()
    assert [str(each) for each in described.topicPartitions()] == [f"{partition.topic}-{partition.partition}"]

    def held_from() -> list[int]:
        found = admin.ask("describeProducers", [partition]).partitionResult(admin.partition(partition)).get()
        offsets = [each.currentTransactionStartOffset() for each in found.activeProducers()]
        return [int(offset.getAsLong()) for offset in offsets if offset.isPresent()]

    assert held_from() == scenario.holds(marker=[1], sidecar=[])
    producer.commit()
    # Kafka answers a commit before its markers are written.
    wait_until(lambda: held_from() == [], "the marker")
    wait_until(lambda: listed()[transactional_id] == "CompleteCommit", "the end")


@pytest.mark.parametrize("how", ["forceTerminateTransaction", "fenceProducers"])
def test_a_transaction_is_ended_by_its_transactional_id(scenario: Scenario, admin: Admin, how: str) -> None:
    partition, transactional_id = scenario.marker_partition(), scenario.new_name("id")
    producer = scenario.transactional(transactional_id)
    producer.begin()
    send_all(producer, partition, [b"in the way"])
    scenario.fill(partition, [b"behind"])
    if how == "fenceProducers":
        admin.ask(how, [transactional_id]).all().get()
    else:
        admin.ask(how, transactional_id).result().get()
    with pytest.raises(FencedError):
        producer.commit()
    assert scenario.wait_for_what_was_held_back(partition) == [b"behind"]


def test_a_transaction_is_aborted_by_its_partition(scenario: Scenario, admin: Admin) -> None:
    """As `kafka-transactions.sh abort` does, which finds the producer by DescribeProducers."""
    partition = scenario.marker_partition()
    producer = scenario.transactional(scenario.new_name("id"))
    producer.begin()
    send_all(producer, partition, [b"in the way"])
    scenario.fill(partition, [b"behind"])
    found = admin.ask("describeProducers", [partition]).partitionResult(admin.partition(partition)).get()
    (active,) = [each for each in found.activeProducers() if each.currentTransactionStartOffset().isPresent()]
    epoch = int(active.producerEpoch())
    admin.ask("abortTransaction", admin.abort_of(partition, int(active.producerId()), epoch)).all().get()
    assert scenario.wait_for_what_was_held_back(partition) == [b"behind"]


def test_offsets_of_a_group_are_deleted_but_for_what_it_reads(scenario: Scenario, admin: Admin) -> None:
    read, left, group_id = scenario.partition(), scenario.partition(), scenario.new_name("group")
    scenario.fill(read, [b"v"])
    consumer = scenario.consumer(group_id)
    consumer.subscribe([read.topic])
    wait_until(lambda: bool(consumer.poll(POLL_S)), "the record")
    consumer.commit({read: 1, left: 1})

    def deleted(partition: TopicPartition) -> str:
        result = admin.ask("deleteConsumerGroupOffsets", group_id, {partition})
        return admin.outcome(result.partitionResult(admin.partition(partition)))

    assert deleted(left) == "done"
    assert deleted(read) == "GroupSubscribedToTopicException"
    consumer.close()
    assert deleted(read) == "done"
    assert scenario.committed(group_id, read) is scenario.committed(group_id, left) is None


def test_consumer_groups_topics_and_the_cluster(scenario: Scenario, admin: Admin) -> None:
    partition, group_id = scenario.partition(), scenario.new_name("group")
    scenario.fill(partition, [b"a", b"b"])
    consumer = scenario.consumer(group_id)
    consumer.commit({partition: 1})
    listed: list[Any] = [str(each.groupId()) for each in admin.ask("listConsumerGroups").all().get()]
    assert group_id in listed
    found = admin.ask("listConsumerGroupOffsets", group_id).partitionsToOffsetAndMetadata().get()
    assert int(found.get(admin.partition(partition)).offset()) == 1
    consumer.close()
    admin.ask("deleteConsumerGroups", [group_id]).all().get()
    described = admin.ask("describeTopics", [partition.topic]).allTopicNames().get().get(partition.topic)
    assert len(described.partitions()) == 1
    assert str(admin.ask("describeCluster").controller().get().host()) == "127.0.0.1"
    admin.ask("deleteTopics", [partition.topic]).all().get()
    assert admin.outcome(admin.ask("describeTopics", [partition.topic]).allTopicNames()) == (
        "UnknownTopicOrPartitionException"
    )


@pytest.mark.parametrize("protocol", GroupProtocol)
def test_members_are_described_and_removed(
    scenario: Scenario, client: Client, bootstrap: str, admin: Admin, protocol: GroupProtocol
) -> None:
    topic, group_id = scenario.topic(partitions=2), scenario.new_name("group")
    grouped = Scenario(client, bootstrap, scenario.new_name("grouped"), protocol)
    members = [Member(grouped.consumer(group_id, instance_id=name), topic) for name in ("one", "two")]
    drive(members, lambda: all(len(each.consumer.assignment()) == 1 for each in members), "a partition for each")

    def described() -> Any:
        return admin.ask("describeConsumerGroups", [group_id]).all().get().get(group_id)

    def is_described() -> bool:
        for member in members:
            member.step()
        return str(described().groupState()) == "Stable"

    wait_until(is_described, "the group to be stable")
    group = described()
    assert str(group.type()).lower() == protocol.value
    shares = {
        str(each.groupInstanceId().get()): [str(partition) for partition in each.assignment().topicPartitions()]
        for each in group.members()
    }
    assert set(shares) == {"one", "two"}
    assert sorted(partition for share in shares.values() for partition in share) == [f"{topic}-0", f"{topic}-1"]

    for member in members:
        member.consumer.close()  # a static member's place is kept
    assert admin.remove_members(group_id, "one") == "done"
    assert [str(each.groupInstanceId().get()) for each in described().members()] == ["two"]
    assert admin.remove_members(group_id, "nobody") == "UnknownMemberIdException"
    assert admin.remove_members(group_id) == "done"
    assert str(described().groupState()) == "Empty"
    listed = {str(each.groupId()): each for each in admin.ask("listGroups").all().get()}
    assert str(listed[group_id].type().get()).lower() == protocol.value
    admin.ask("deleteConsumerGroups", [group_id]).all().get()
    assert admin.outcome(admin.ask("describeConsumerGroups", [group_id]).all()) == "GroupIdNotFoundException"
