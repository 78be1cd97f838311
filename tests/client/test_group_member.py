"""A member of a consumer group, against a real broker, beside librdkafka's."""

import pytest
from confluent_kafka import Consumer

from exacta.client.group_member import GroupMember
from exacta.client.group_offsets import fetch_offsets
from exacta.client.transactions import TopicPartition
from exacta.testing.rebalancing import rebalance
from tests.client.described import members_of
from tests.spark.clusters import new_topic

HEARTBEATS = 1000
"""More than any rebalance takes."""


class Clock:
    """A clock that shows one time until it is moved."""

    def __init__(self):
        self.now_s = 0.0

    def __call__(self):
        return self.now_s

    def next_heartbeat(self):
        self.now_s += 60.0


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def new_member(client, topic, clock):
    """Make members of one group, which leave in the end."""
    members = []

    def new(*topics):
        members.append(GroupMember(client, topic, topics or [topic], now_s=clock))
        return members[-1]

    yield new
    for each in members:
        each.leave()


@pytest.fixture
def beating(clock):
    """Let members beat until each has this many partitions; return what they have."""

    def beat(*members, until):
        for _ in range(HEARTBEATS):
            clock.next_heartbeat()
            found = [each.assigned() for each in members]
            for each, partitions in zip(members, found, strict=True):
                each.hold(partitions)
            if [len(each) for each in found] == until:
                return found
        raise AssertionError(f"not in {HEARTBEATS} heartbeats: {found}")

    return beat


@pytest.fixture
def member(new_member):
    return new_member()


def both(topic):
    return {TopicPartition(topic, 0), TopicPartition(topic, 1)}


def test_a_member_alone_has_all_partitions_until_it_leaves(client, topic, member, beating, clock):
    assert beating(member, until=[2]) == [both(topic)]
    member.assigned()  # it has told what it holds
    assert 0 < member.seconds_to_heartbeat <= 60
    assert members_of(client, topic)
    member.leave()
    assert not members_of(client, topic)


def test_two_members_share_and_the_one_that_is_left_takes_over(topic, member, new_member, beating):
    beating(member, until=[2])
    second = new_member()
    given = second.assigned()
    assert given == frozenset()  # the first one holds both
    shared = beating(member, second, until=[1, 1])
    assert shared[0] | shared[1] == both(topic)
    second.leave()
    assert beating(member, until=[2]) == [both(topic)]


def test_a_member_commits_and_a_fenced_one_does_not(client, topic, member, beating, clock):
    beating(member, until=[2])
    assert member.commit({TopicPartition(topic, 0): 3})
    rebalance(client, topic)  # it takes the member out
    assert not member.commit({TopicPartition(topic, 0): 9})
    assert fetch_offsets(client, topic)[TopicPartition(topic, 0)].offset == 3
    assert member.assigned() == frozenset()  # it has to stop reading, and begin where the group stands
    assert beating(member, until=[2]) == [both(topic)]
    assert member.commit({TopicPartition(topic, 0): 4})


def test_a_member_hears_by_its_heartbeat_that_it_was_fenced(client, topic, member, beating, clock):
    beating(member, until=[2])
    rebalance(client, topic)
    clock.next_heartbeat()
    assert member.assigned() == frozenset()
    assert not member.commit({TopicPartition(topic, 0): 9})
    assert beating(member, until=[2]) == [both(topic)]


@pytest.mark.parametrize("protocol", ["consumer", "classic"])
def test_a_member_shares_with_one_of_librdkafka(client, topic, member, beating, clock, protocol):
    beating(member, until=[2])
    configuration = {"bootstrap.servers": client.bootstrap, "group.id": topic, "group.protocol": protocol}
    theirs = Consumer(configuration | ({"heartbeat.interval.ms": 100} if protocol == "classic" else {}))
    theirs.subscribe([topic])
    try:
        for _ in range(HEARTBEATS):
            theirs.poll(0.02)
            clock.next_heartbeat()
            ours = member.assigned()
            member.hold(ours)
            if len(ours) == len(theirs.assignment()) == 1:
                break
        assert {*ours, *(TopicPartition(each.topic, each.partition) for each in theirs.assignment())} == both(topic)
    finally:
        theirs.close()


def test_two_topics_are_read_by_one_member(client, topic, new_member, beating):
    other = new_topic(client.bootstrap, 1)
    member = new_member(topic, other)
    assert beating(member, until=[3]) == [{*both(topic), TopicPartition(other, 0)}]
