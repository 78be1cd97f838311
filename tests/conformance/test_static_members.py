"""Scenarios of static members (KIP-345): who comes back under an instance id has what it had, and fences who had it."""

import contextlib

import pytest

from tests.conformance.clients import ClientError
from tests.conformance.scenario import POLL_S, Scenario, values, wait_until
from tests.conformance.test_groups import Member, drive


def static_member(scenario: Scenario, group_id: str, topic: str, instance_id: str) -> Member:
    return Member(scenario.consumer(group_id, instance_id=instance_id), topic)


def test_a_static_member_that_comes_back_has_what_it_had(scenario: Scenario) -> None:
    topic, group_id = scenario.topic(partitions=4), scenario.new_name("group")
    first = static_member(scenario, group_id, topic, "one")
    drive([first], lambda: len(first.consumer.assignment()) == 4, "the first member to have it all")
    second = static_member(scenario, group_id, topic, "two")
    both = [first, second]
    drive(both, lambda: {len(each.consumer.assignment()) for each in both} == {2}, "both to have their shares")
    had = second.consumer.assignment()
    second.consumer.close()

    again = static_member(scenario, group_id, topic, "two")
    shares: list[int] = []

    def is_back() -> bool:
        shares.append(len(first.consumer.assignment()))
        return again.consumer.assignment() == had

    drive([first, again], is_back, "the successor to have what its predecessor had")
    assert set(shares) == {2}, "the other member went on undisturbed"
    for partition in sorted(had):
        scenario.fill(partition, values("v", 3))
    drive([first, again], lambda: len(again.records) == 6, "the successor to read what is new")


def test_a_second_member_with_the_same_instance_id_fences_the_first(scenario: Scenario) -> None:
    partition, group_id = scenario.partition(), scenario.new_name("group")
    first = static_member(scenario, group_id, partition.topic, "one")
    drive([first], lambda: first.consumer.assignment() == {partition}, "the first member to have the partition")
    second = static_member(scenario, group_id, partition.topic, "one")
    may_be_fenced = [first]
    if scenario.client.joins_again_when_fenced:
        # Each fences the other in turn. Nothing says who has the partition for how long, and who is told first.
        may_be_fenced.append(second)
    else:
        drive([second], lambda: second.consumer.assignment() == {partition}, "the second member to have it")

    def is_told() -> bool:
        for each in may_be_fenced:
            each.consumer.poll(POLL_S)
            if each is first or partition in each.consumer.assignment():
                each.consumer.commit({partition: 7})
        return False

    with pytest.raises(ClientError):
        wait_until(is_told, "a member to be told that it is fenced")
    # Where both have joined again in turn, the second may be fenced yet: a poll may say so, as may a commit.
    first.consumer.close()

    def goes_on() -> bool:
        with contextlib.suppress(ClientError):
            second.consumer.poll(POLL_S)
            second.consumer.commit({partition: 1})
            return True
        return False

    wait_until(goes_on, "the second member to commit")
    assert scenario.committed(group_id, partition) == 1
