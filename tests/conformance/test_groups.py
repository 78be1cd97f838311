"""Scenarios of consumer groups: sharing, rebalancing, committing, resuming."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from tests.conformance.clients import Consumer, Record, TopicPartition
from tests.conformance.scenario import POLL_S, Scenario, send_all, values, wait_until


class Member:
    """One member of a group that commits every record as soon as it has it."""

    def __init__(self, consumer: Consumer, topic: str) -> None:
        """Join."""
        self.consumer = consumer
        self.consumer.subscribe([topic])
        self.records: list[Record] = []

    def step(self) -> None:
        """Poll once and commit what came, unless its partition has gone to somebody else meanwhile."""
        came = self.consumer.poll(POLL_S)
        self.records += came
        owned = self.consumer.assignment()
        ends = {TopicPartition(record.topic, record.partition): record.offset + 1 for record in came}
        if ends := {partition: end for partition, end in ends.items() if partition in owned}:
            self.consumer.commit(ends)


def drive(members: list[Member], until: Callable[[], bool], what: str) -> None:
    """Serve the members side by side until the condition holds: one may wait for the others in its poll."""
    with ThreadPoolExecutor(len(members)) as threads:

        def step() -> bool:
            list(threads.map(Member.step, members))
            return until()

        wait_until(step, what)


def test_a_group_shares_the_partitions_and_rebalances(scenario: Scenario) -> None:
    topic, group_id = scenario.topic(partitions=4), scenario.new_name("group")
    partitions = {TopicPartition(topic, number) for number in range(4)}
    producer = scenario.producer()
    sent: list[bytes] = []

    def send(name: str) -> None:
        for partition in sorted(partitions):
            sent.extend(some := values(f"{name}-{partition.partition}", 25))
            send_all(producer, partition, some)

    def consumed(*members: Member) -> set[bytes | None]:
        return {record.value for member in members for record in member.records}

    send("alone")
    first = Member(scenario.consumer(group_id), topic)
    drive([first], lambda: consumed(first) >= set(sent), "the first member to have it all")
    assert first.consumer.assignment() == partitions

    second = Member(scenario.consumer(group_id), topic)
    drive([first, second], lambda: len(second.consumer.assignment()) == 2, "the second member to get its share")
    drive([first, second], lambda: len(first.consumer.assignment()) == 2, "the first member to give up its share")
    assert first.consumer.assignment() | second.consumer.assignment() == partitions
    send("together")
    drive([first, second], lambda: consumed(first, second) >= set(sent), "both to have it all")
    assert {record.partition for record in second.records} == {
        partition.partition for partition in second.consumer.assignment()
    }

    first.consumer.close()
    drive([second], lambda: second.consumer.assignment() == partitions, "the second member to inherit everything")
    send("alone-again")
    drive([second], lambda: consumed(first, second) >= set(sent), "the second member to have the rest")

    # Every record was committed before a rebalance could take its partition away, so none was consumed twice.
    counts = Counter(record.value for member in (first, second) for record in member.records)
    assert counts == Counter(sent)


def test_a_new_member_resumes_where_the_group_committed(scenario: Scenario) -> None:
    partition, group_id = scenario.partition(), scenario.new_name("group")
    scenario.fill(partition, values("v", 10))
    first = scenario.consumer(group_id)
    first.subscribe([partition.topic])
    arrived: list[Record] = []

    def all_arrived() -> bool:
        arrived.extend(first.poll(POLL_S))
        return len(arrived) == 10

    wait_until(all_arrived, "ten records")
    first.commit({partition: 4})
    first.close()

    second = Member(scenario.consumer(group_id), partition.topic)
    drive([second], lambda: len(second.records) >= 6, "the rest")
    assert [record.offset for record in second.records] == [4, 5, 6, 7, 8, 9]
    second.consumer.close()
    assert scenario.committed(group_id, partition) == 10


def test_a_group_without_offsets_has_none(scenario: Scenario) -> None:
    assert scenario.committed(scenario.new_name("group"), scenario.partition()) is None


def test_groups_do_not_share_offsets(scenario: Scenario) -> None:
    partition = scenario.partition()
    scenario.fill(partition, values("v", 3))
    groups = [scenario.new_name("group") for _ in range(2)]
    for number, group_id in enumerate(groups):
        consumer = scenario.consumer(group_id)
        consumer.assign({partition: 0})
        consumer.commit({partition: number + 1})
    assert [scenario.committed(group_id, partition) for group_id in groups] == [1, 2]
