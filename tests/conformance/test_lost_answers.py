"""Scenarios in which a request or its answer is lost, alone or with the broker: the client cannot know, and asks again.

The proxy loses exactly one frame and cuts the connection; what is killed is the broker behind it. Afterwards every
record is there exactly once and every transaction is wholly there or not at all.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from enum import Enum

import pytest

from exacta.testing import Fault, Proxy
from tests.conformance.brokers import ON_KAFKA, BrokerProcess
from tests.conformance.clients import CallAgainError, ClientError, Isolation, Producer, TopicPartition
from tests.conformance.clients.interface import CALL_TIMEOUT_S
from tests.conformance.scenario import Scenario, offsets_of, send_all, values, wait_until

# Kafka's broker sends the first one itself, to its coordinator, which here is behind the proxy too.
REGISTERING = ("AddOffsetsToTxn",) if ON_KAFKA else ("AddOffsetsToTxn", "AddPartitionsToTxn")
"""What version 2 of the transaction protocol does without (KIP-890)."""
TRANSACTION_APIS = (
    "Produce",
    "InitProducerId",
    "AddPartitionsToTxn",
    "AddOffsetsToTxn",
    "EndTxn",
    "TxnOffsetCommit",
)


class Loses(Enum):
    """The message that is lost: the request, before the broker sees it, or the answer, before the client does."""

    REQUEST = "request"
    ANSWER = "answer"

    def at(self, proxy: Proxy, api: str, then: Callable[[], object] | None = None) -> Fault:
        """Arm the fault."""
        lose = proxy.faults.cut_connection if self is Loses.REQUEST else proxy.faults.drop_answer
        return lose(api, then=then)


@pytest.fixture(params=["connection cut", "broker killed"])
def accident(request: pytest.FixtureRequest, hidden_broker: BrokerProcess) -> Callable[[], None] | None:
    """What happens besides the loss."""
    return hidden_broker.restart_killed if request.param == "broker killed" else None


def test_a_batch_sent_again_is_stored_once(
    proxied_scenario: Scenario, proxy: Proxy, accident: Callable[[], None] | None
) -> None:
    partition = proxied_scenario.partition()
    producer = proxied_scenario.producer()
    assert send_all(producer, partition, values("v", 3)) == [0, 1, 2]
    fault = Loses.ANSWER.at(proxy, "Produce", accident)
    sent = [producer.send(partition.topic, value, partition=0) for value in values("v", 3, start=3)]
    producer.flush()
    assert fault.happened
    assert offsets_of(sent) == [3, 4, 5]
    assert send_all(producer, partition, values("v", 3, start=6)) == [6, 7, 8]
    assert proxied_scenario.read(partition) == values("v", 9)


def check_two_transactions(
    scenario: Scenario,
    producer: Producer,
    partition: TopicPartition,
    group_id: str,
    fault: Fault,
    *,
    strikes: bool = True,
) -> None:
    """Commit two transactions of a record and an offset each; the fault strikes in the first; both are there once."""
    for number in range(2):
        producer.begin()
        send_all(producer, partition, [b"v-%d" % number])
        scenario.send_offsets(producer, {partition: number + 1}, group_id)
        producer.commit()
        assert fault.happened is strikes
    wait_until(lambda: scenario.read(partition) == values("v", 2), "both transactions")
    assert scenario.read(partition, Isolation.UNCOMMITTED) == values("v", 2)
    assert scenario.committed(group_id, partition) == 2


@pytest.mark.sweep
@pytest.mark.parametrize("loses", Loses, ids=lambda loses: f"lost {loses.value}")
@pytest.mark.parametrize("api", TRANSACTION_APIS)
def test_a_transaction_survives_the_loss_of_any_frame(
    proxied_scenario: Scenario, proxy: Proxy, api: str, loses: Loses
) -> None:
    partition, group_id = proxied_scenario.partition(), proxied_scenario.new_name("group")
    fault = loses.at(proxy, api)
    producer = proxied_scenario.transactional()
    never_sent = proxied_scenario.client.registers_by_writing and api in REGISTERING
    check_two_transactions(proxied_scenario, producer, partition, group_id, fault, strikes=not never_sent)


@pytest.mark.sweep
@pytest.mark.parametrize("api", ["Produce", "TxnOffsetCommit", "EndTxn"])
def test_a_transaction_survives_a_kill_between_the_write_and_its_answer(
    proxied_scenario: Scenario, proxy: Proxy, hidden_broker: BrokerProcess, api: str
) -> None:
    partition, group_id = proxied_scenario.partition(), proxied_scenario.new_name("group")
    producer = proxied_scenario.transactional()
    fault = Loses.ANSWER.at(proxy, api, hidden_broker.restart_killed)
    check_two_transactions(proxied_scenario, producer, partition, group_id, fault)


@pytest.mark.sweep
@pytest.mark.parametrize("ends", ["commit", "abort"])
@pytest.mark.parametrize("api", ["Produce", "TxnOffsetCommit"])
def test_a_transaction_survives_a_kill_before_its_first_write(
    proxied_scenario: Scenario, proxy: Proxy, hidden_broker: BrokerProcess, api: str, ends: str
) -> None:
    """The broker may forget that a partition or group was announced: the write that follows must be taken nevertheless.

    kafka-python, for one, treats the refusal of a batch as fatal for the producer.
    """
    partition, group_id = proxied_scenario.partition(), proxied_scenario.new_name("group")
    producer = proxied_scenario.transactional()

    def write(number: int) -> None:
        producer.begin()
        if api == "Produce":
            send_all(producer, partition, [b"v-%d" % number])
        proxied_scenario.send_offsets(producer, {partition: number + 1}, group_id)
        if api == "TxnOffsetCommit":
            send_all(producer, partition, [b"v-%d" % number])

    write(0)
    producer.commit()
    fault = Loses.REQUEST.at(proxy, api, hidden_broker.restart_killed)
    write(1)
    assert fault.happened
    producer.commit() if ends == "commit" else producer.abort()
    for number in (2, 3):
        write(number)
        producer.commit()
    wanted = [b"v-0", *([b"v-1"] if ends == "commit" else []), b"v-2", b"v-3"]
    wait_until(lambda: proxied_scenario.read(partition)[-1:] == [b"v-3"], "the last transaction")
    assert proxied_scenario.read(partition) == wanted
    everything = proxied_scenario.holds(marker=values("v", 4), sidecar=wanted)
    assert proxied_scenario.read(partition, Isolation.UNCOMMITTED) == everything
    assert proxied_scenario.committed(group_id, partition) == 4


def test_an_abort_succeeds_though_the_broker_was_killed_before_the_first_write(
    proxied_scenario: Scenario, proxy: Proxy, hidden_broker: BrokerProcess
) -> None:
    partition = proxied_scenario.partition()
    producer = proxied_scenario.transactional()
    producer.begin()
    send_all(producer, partition, [b"before"])
    producer.commit()

    fault = Loses.REQUEST.at(proxy, "Produce", hidden_broker.kill)
    producer.begin()
    producer.send(partition.topic, b"given up", partition=0)
    fault.wait(CALL_TIMEOUT_S)
    # The partition was announced, its batch not written. The client gives up while there is no broker; whether it still
    # writes the batch first, when there is one again, is the library's affair.
    with ThreadPoolExecutor(1) as executor:
        aborting = executor.submit(abort_at_last, producer)
        hidden_broker.start()
        aborting.result()

    producer.begin()
    send_all(producer, partition, [b"after"])
    producer.commit()
    wait_until(lambda: proxied_scenario.read(partition) == [b"before", b"after"], "both transactions")


def abort_at_last(producer: Producer) -> None:
    """Abort, again if the library says so."""
    while True:
        try:
            return producer.abort()
        except CallAgainError:
            continue


def test_offsets_committed_again_are_the_same(
    proxied_scenario: Scenario, proxy: Proxy, accident: Callable[[], None] | None
) -> None:
    partition, group_id = proxied_scenario.partition(), proxied_scenario.new_name("group")
    proxied_scenario.fill(partition, values("v", 5))
    consumer = proxied_scenario.consumer(group_id)
    consumer.assign({partition: 0})
    fault = Loses.ANSWER.at(proxy, "OffsetCommit", accident)
    try:
        consumer.commit({partition: 3})
    except ClientError:
        # Not every library repeats a commit whose connection was cut; then it is the application that does.
        consumer.commit({partition: 3})
    assert fault.happened
    assert proxied_scenario.committed(group_id, partition) == 3
