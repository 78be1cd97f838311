"""Groups of the consumer protocol (KIP-848), with the libraries that speak it: what holds for groups holds for them."""

from collections.abc import Callable

import pytest

from tests.conformance import test_crash, test_groups, test_transaction_offsets
from tests.conformance.brokers import BrokerProcess
from tests.conformance.clients import CLIENTS, AbortRequiredError, ClientError, TopicPartition
from tests.conformance.scenario import POLL_S, Scenario, send_all, values, wait_until
from tests.conformance.test_groups import Member, drive
from tests.conformance.test_static_members import static_member
from tests.conformance.test_transaction_offsets import take

SPEAKERS = [client for client in CLIENTS if client.speaks_consumer_protocol]
pytestmark = pytest.mark.parametrize("client", SPEAKERS, ids=lambda client: client.name, indirect=True)

SAME = [
    test_groups.test_a_group_shares_the_partitions_and_rebalances,
    test_groups.test_a_new_member_resumes_where_the_group_committed,
    test_transaction_offsets.test_consume_transform_produce_commits_input_and_output_together,
    test_transaction_offsets.test_an_abort_gives_input_and_output_back,
    test_transaction_offsets.test_a_member_that_the_group_has_left_behind_cannot_commit,
]


@pytest.mark.parametrize("scene", SAME, ids=lambda scene: scene.__name__.removeprefix("test_"))
def test_as_in_a_classic_group(consumer_scenario: Scenario, scene: Callable[[Scenario], None]) -> None:
    scene(consumer_scenario)


def test_a_zombie_that_lost_its_partition_cannot_commit_it_in_a_transaction(consumer_scenario: Scenario) -> None:
    """It is a member still, of an earlier epoch: KIP-447 in KIP-848's terms."""
    scenario = consumer_scenario
    topic, target, group_id = scenario.topic(partitions=2), scenario.partition(), scenario.new_name("group")
    for number in range(2):
        scenario.fill(TopicPartition(topic, number), values(f"p{number}", 5))
    zombie = scenario.consumer(group_id)
    zombie.subscribe([topic])
    taken, ends = take(zombie, 10)
    stale = zombie.group_metadata()
    successor = scenario.consumer(group_id)
    successor.subscribe([topic])

    def have_shares() -> bool:
        zombie.poll(POLL_S)
        successor.poll(POLL_S)
        return len(zombie.assignment()) == len(successor.assignment()) == 1

    wait_until(have_shares, "both members to have a partition")
    producer = scenario.transactional()
    producer.begin()
    send_all(producer, target, taken)
    with pytest.raises(AbortRequiredError):
        producer.send_offsets(ends, stale)
    producer.abort()
    [kept] = zombie.assignment()
    producer.begin()
    producer.send_offsets({kept: 5}, zombie.group_metadata())
    producer.commit()
    [lost] = successor.assignment()
    wait_until(lambda: scenario.committed(group_id, kept) == 5, "the offset of the partition that it has kept")
    assert scenario.committed(group_id, lost) is None
    assert scenario.read(target) == []


def test_a_static_member_that_comes_back_has_what_it_had(consumer_scenario: Scenario) -> None:
    scenario = consumer_scenario
    topic, group_id = scenario.topic(partitions=4), scenario.new_name("group")
    both = [static_member(scenario, group_id, topic, name) for name in ("one", "two")]
    drive(both, lambda: {len(each.consumer.assignment()) for each in both} == {2}, "both to have their shares")
    first, second = both
    had = second.consumer.assignment()
    second.consumer.close()
    again = static_member(scenario, group_id, topic, "two")
    drive([first, again], lambda: again.consumer.assignment() == had, "the successor to have the same")
    assert len(first.consumer.assignment()) == 2


def test_an_instance_id_is_not_taken_from_who_has_it(consumer_scenario: Scenario) -> None:
    scenario = consumer_scenario
    partition, group_id = scenario.partition(), scenario.new_name("group")
    first = static_member(scenario, group_id, partition.topic, "one")
    drive([first], lambda: first.consumer.assignment() == {partition}, "the first member to have the partition")
    second = static_member(scenario, group_id, partition.topic, "one")
    with pytest.raises(ClientError):
        drive([second], lambda: False, "the second member to be refused")
    first.consumer.commit({partition: 1})
    assert scenario.committed(group_id, partition) == 1


def test_a_new_topic_is_read_and_an_old_one_let_go(consumer_scenario: Scenario) -> None:
    scenario = consumer_scenario
    old, new, group_id = scenario.partition(), TopicPartition(scenario.new_name("topic")), scenario.new_name("group")
    consumer = scenario.consumer(group_id)
    consumer.subscribe([old.topic, new.topic])

    def has(*partitions: TopicPartition) -> Callable[[], bool]:
        def look() -> bool:
            consumer.poll(POLL_S)
            return consumer.assignment() == set(partitions)

        return look

    wait_until(has(old), "the topic that exists")
    scenario.topics.create(new.topic, 1)
    wait_until(has(old, new), "the new topic too")
    consumer.subscribe([new.topic])
    wait_until(has(new), "the old topic to be let go")


def test_a_pattern_is_matched_by_the_broker(consumer_scenario: Scenario) -> None:
    scenario = consumer_scenario
    prefix, group_id = scenario.new_name("some"), scenario.new_name("group")
    scenario.topics.create(f"{prefix}-a", 1)
    consumer = scenario.consumer(group_id)
    consumer.subscribe([f"^{prefix}-[a-c]"])

    def assigned() -> set[str]:
        consumer.poll(POLL_S)
        return {partition.topic for partition in consumer.assignment()}

    wait_until(lambda: assigned() == {f"{prefix}-a"}, "the topic that matches")
    scenario.topics.create(f"{prefix}-b", 1)
    wait_until(lambda: assigned() == {f"{prefix}-a", f"{prefix}-b"}, "a new topic that matches")


def test_a_member_goes_on_where_it_was(crash_consumer_scenario: Scenario, broker: BrokerProcess) -> None:
    test_crash.test_a_group_goes_on_where_it_was(crash_consumer_scenario, broker)


def test_members_go_on_after_a_crash(crash_consumer_scenario: Scenario, broker: BrokerProcess) -> None:
    scenario = crash_consumer_scenario
    topic, group_id = scenario.topic(partitions=2), scenario.new_name("group")
    members = [Member(scenario.consumer(group_id), topic) for _ in range(2)]
    drive(members, lambda: all(len(each.consumer.assignment()) == 1 for each in members), "both to have a partition")
    broker.restart_killed()
    for number in range(2):
        scenario.fill(TopicPartition(topic, number), values(f"p{number}", 5))

    def went_on() -> bool:
        for member in members:
            member.records += member.consumer.poll(POLL_S)
        return {record.value for member in members for record in member.records} >= expected

    expected = {value for number in range(2) for value in values(f"p{number}", 5)}
    wait_until(went_on, "the members to read on")
