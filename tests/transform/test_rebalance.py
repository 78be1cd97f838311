"""Rebalances around a transaction: its records are never committed without its offsets, nor offsets by a stale member.

Two members share the group, and go on in turns.
"""

from collections import Counter
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, Producer

import exacta
from exacta.transform.confluent import ExactlyOnce
from tests.transform.conftest import CALL_S, MESSAGES, NewConsumer, NewProducer, copied, copy, fill, numbers
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(90)

PARTITIONS = 2
KINDS = {
    "eager": {"partition.assignment.strategy": "range"},
    "cooperative": {"partition.assignment.strategy": "cooperative-sticky"},
    "consumer protocol": {"group.protocol": "consumer"},
}


class Member:
    """A consumer and a producer, and their transactions."""

    def __init__(self, consumer: Consumer, producer: Producer) -> None:
        self.consumer, self.producer = consumer, producer
        self.once: ExactlyOnce = exacta.exactly_once(consumer, producer)

    @property
    def membership(self) -> object:
        """The metadata of its group."""
        return self.consumer.consumer_group_metadata()

    def turn(self, count: int = 3) -> None:
        """Copy what is there at once."""
        with self.once as transaction:
            copy(self.producer, transaction.consume(count, 0.1))


NewMember = Callable[[str], Member]


@pytest.fixture(params=KINDS)
def new_member(
    request: pytest.FixtureRequest, broker: exacta.Broker, new_consumer: NewConsumer, new_producer: NewProducer
) -> NewMember:
    broker.create_topic("numbers", PARTITIONS)
    for partition in range(PARTITIONS):
        fill(broker, "numbers", MESSAGES, partition)

    def make(name: str) -> Member:
        return Member(new_consumer("numbers", **KINDS[request.param]), new_producer(name))

    return make


def copied_once(broker: exacta.Broker) -> bool:
    """Return whether all is copied; raise AssertionError if something is there twice."""
    found = Counter(copied(broker))
    assert not [value for value, count in found.items() if count > PARTITIONS], found
    return found == dict.fromkeys(numbers(), PARTITIONS)


def copy_the_rest(broker: exacta.Broker, *members: Member) -> None:
    def turns() -> bool:
        for each in members:
            each.turn()
        return copied_once(broker)

    wait_until(turns, CALL_S, "not all is copied")
    assert broker.offsets("copy") == {("numbers", partition): MESSAGES for partition in range(PARTITIONS)}


def test_a_member_joins_inside_of_a_block(
    broker: exacta.Broker, new_member: NewMember, request: pytest.FixtureRequest
) -> None:
    first = new_member("copy-1")
    with first.once as transaction:
        copy(first.producer, transaction.consume(4, CALL_S))
        second = new_member("copy-2")

        def shared() -> bool:
            second.turn()
            copy(first.producer, transaction.consume(4, 0.1))
            return len(first.consumer.assignment()) == len(second.consumer.assignment()) == 1

        wait_until(shared, CALL_S, "the members have not shared the partitions")
    if (
        "consumer protocol" not in request.node.name
    ):  # there offsets of a partition that has stayed are taken (KIP-1251)
        assert not transaction.committed
    copy_the_rest(broker, first, second)


def test_a_member_joins_between_messages_and_commit(broker: exacta.Broker, new_member: NewMember) -> None:
    """The group waits for the first member, which polls again only after its commit."""
    first = new_member("copy-1")
    with first.once as transaction:
        copy(first.producer, transaction.consume(4, CALL_S))
        second = new_member("copy-2")
        for _ in range(3):
            second.turn()
    copy_the_rest(broker, first, second)


def test_a_member_that_was_given_up_commits_nothing(broker: exacta.Broker, new_member: NewMember) -> None:
    first = new_member("copy-1")
    with first.once as transaction:
        copy(first.producer, transaction.consume(4, CALL_S))
        broker.clock.advance(minutes=1)
        second = new_member("copy-2")
        copy_the_rest(broker, second)
    assert not transaction.committed
    copy_the_rest(broker, first, second)


def test_what_was_fetched_before_the_member_was_given_up_is_not_handed_out(
    broker: exacta.Broker, new_member: NewMember, request: pytest.FixtureRequest
) -> None:
    """It lies in librdkafka's queue still, and the metadata name no member."""
    first = new_member("copy-1")

    def has_copied() -> bool:
        first.turn(1)
        return bool(broker.offsets("copy"))

    wait_until(has_copied, CALL_S)
    known = first.membership
    broker.clock.advance(minutes=1)
    if "consumer protocol" not in request.node.name:  # librdkafka keeps its metadata there until it is polled
        wait_until(lambda: first.membership != known, CALL_S, "it has not learnt of it")
    second = new_member("copy-2")
    copy_the_rest(broker, second)
    for _ in range(5):
        first.turn()
    copy_the_rest(broker, first, second)


def test_an_error_in_a_block_in_which_a_partition_went_and_came(broker: exacta.Broker, new_member: NewMember) -> None:
    """The other member has gone on meanwhile, and the first one does not go back to where its block began."""
    first = new_member("copy-1")

    def go_and_come() -> None:
        with first.once as transaction:
            transaction.consume(4, CALL_S)
            known = first.membership
            broker.clock.advance(minutes=1)
            second = new_member("copy-2")
            copy_the_rest(broker, second)
            second.consumer.close()

            def has_all_again() -> bool:
                transaction.consume(4, 0.1)
                return known != first.membership and len(first.consumer.assignment()) == PARTITIONS

            wait_until(has_all_again, CALL_S, "it has not got them back")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        go_and_come()
    for _ in range(5):
        first.turn()
    assert copied_once(broker)
