"""Scenarios in which the broker is killed (SIGKILL) and started again on the same data."""

import contextlib
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from threading import Semaphore

import pytest

from tests.conformance.brokers import BrokerProcess
from tests.conformance.clients import ClientError, Consumer, FencedError, Isolation, TopicPartition
from tests.conformance.clients.interface import CALL_TIMEOUT_S
from tests.conformance.scenario import POLL_S, Scenario, offsets_of, send_all, values, wait_until

KILLS = 2
RECORDS_BETWEEN_KILLS = 150
KILLS_WHILE_PENDING = 4
POLLS_BETWEEN_KILLS = 8


def test_an_idempotent_producer_loses_and_doubles_nothing(crash_scenario: Scenario, broker: BrokerProcess) -> None:
    topic = crash_scenario.topic(partitions=2)
    # Small batches, so that many requests are under way when the broker dies.
    producer = crash_scenario.producer(batch_bytes=400)
    wanted = values("v", RECORDS_BETWEEN_KILLS * (KILLS + 1) * 2)
    acknowledged = Semaphore(0)

    def send_everything() -> list[Future[int]]:
        sent = []
        for number, value in enumerate(wanted):
            sent.append(producer.send(topic, value, partition=number % 2))
            sent[-1].add_done_callback(lambda _: acknowledged.release())
        producer.flush()
        return sent

    with ThreadPoolExecutor(1) as sender:
        sending = sender.submit(send_everything)
        for _ in range(KILLS):
            for _ in range(RECORDS_BETWEEN_KILLS):
                assert acknowledged.acquire(timeout=CALL_TIMEOUT_S)
            broker.restart_killed()
        offsets = offsets_of(sending.result())

    for number in range(2):
        records = crash_scenario.read_records([TopicPartition(topic, number)])
        assert [record.value for record in records] == wanted[number::2]
        assert [record.offset for record in records] == offsets[number::2]


def test_what_was_acknowledged_survives(crash_scenario: Scenario, broker: BrokerProcess) -> None:
    partition, group_id = crash_scenario.partition(), crash_scenario.new_name("group")
    producer = crash_scenario.transactional()
    for outcome, end in (("committed", producer.commit), ("aborted", producer.abort)):
        producer.begin()
        send_all(producer, partition, [outcome.encode()])
        crash_scenario.send_offsets(producer, {partition: 1 if outcome == "committed" else 2}, group_id)
        end()
    # Two records and two markers, or the committed record; Kafka answers an end before its markers are written.
    end_offset = crash_scenario.holds(marker=4, sidecar=1)
    wait_until(lambda: crash_scenario.last_stable_offset(partition) == end_offset, "both markers")
    broker.restart_killed()
    assert crash_scenario.read(partition) == [b"committed"]
    everything = crash_scenario.holds(marker=[b"committed", b"aborted"], sidecar=[b"committed"])
    assert crash_scenario.read(partition, Isolation.UNCOMMITTED) == everything
    assert crash_scenario.high_watermark(partition) == end_offset
    assert crash_scenario.committed(group_id, partition) == 1


def test_an_open_transaction_is_taken_over(crash_scenario: Scenario, broker: BrokerProcess) -> None:
    partition, transactional_id = crash_scenario.partition(), crash_scenario.new_name("id")
    orphan = crash_scenario.transactional(transactional_id)
    orphan.begin()
    send_all(orphan, partition, [b"orphan"])
    broker.restart_killed()
    assert crash_scenario.last_stable_offset(partition) == 0
    assert crash_scenario.high_watermark(partition) == crash_scenario.holds(marker=1, sidecar=0)

    successor = crash_scenario.transactional(transactional_id)
    wait_until(
        lambda: crash_scenario.last_stable_offset(partition) == crash_scenario.high_watermark(partition),
        "the orphan's transaction to be aborted",
    )
    successor.begin()
    send_all(successor, partition, [b"successor"])
    successor.commit()
    wait_until(lambda: crash_scenario.read(partition) == [b"successor"], "the successor's record")
    everything = crash_scenario.holds(marker=[b"orphan", b"successor"], sidecar=[b"successor"])
    assert crash_scenario.read(partition, Isolation.UNCOMMITTED) == everything
    with pytest.raises(FencedError):
        orphan.commit()


def test_an_open_transaction_can_go_on(crash_scenario: Scenario, broker: BrokerProcess) -> None:
    partition, group_id = crash_scenario.partition(), crash_scenario.new_name("group")
    producer = crash_scenario.transactional()
    producer.begin()
    send_all(producer, partition, [b"before"])
    crash_scenario.send_offsets(producer, {partition: 7}, group_id)
    broker.restart_killed()
    send_all(producer, partition, [b"after"])
    producer.commit()
    wait_until(lambda: crash_scenario.read(partition) == [b"before", b"after"], "both records")
    assert crash_scenario.committed(group_id, partition) == 7


def test_an_open_transaction_keeps_its_deadline(crash_scenario: Scenario, broker: BrokerProcess) -> None:
    partition, waiting = crash_scenario.partition(), crash_scenario.marker_partition()
    orphan = crash_scenario.transactional(transaction_timeout_ms=1_500)
    orphan.begin()
    for each in (partition, waiting):
        send_all(orphan, each, [b"orphan"])
    broker.restart_killed()
    for each in (partition, waiting):
        send_all(crash_scenario.producer(), each, [b"waiting"])
    assert crash_scenario.wait_for_what_was_held_back(waiting) == [b"waiting"]
    assert crash_scenario.read(partition) == [b"waiting"]


def test_a_reader_waits_for_a_pending_offset_through_restarts(crash_scenario: Scenario, broker: BrokerProcess) -> None:
    """And does not take the partition for new (decision 0021): what it reads begins where the transaction has ended."""
    if not crash_scenario.client.waits_for_stable_offsets:
        pytest.skip(f"{crash_scenario.client.name} does not ask for stable offsets only")
    partition, group_id = crash_scenario.partition(), crash_scenario.new_name("group")
    crash_scenario.fill(partition, values("v", 10))
    producer = crash_scenario.transactional()
    producer.begin()
    crash_scenario.send_offsets(producer, {partition: 5}, group_id)
    producer.commit()
    producer.begin()
    crash_scenario.send_offsets(producer, {partition: 8}, group_id)
    arrived: list[bytes | None] = []
    with contextlib.ExitStack() as stack:

        def subscribed() -> Consumer:
            reader = crash_scenario.consumer(group_id)
            stack.callback(reader.close)
            reader.subscribe([partition.topic])
            return reader

        reader = subscribed()

        def read_some() -> None:
            nonlocal reader
            try:
                arrived.extend(record.value for record in reader.poll(POLL_S))
            except ClientError:
                # The coordinator is away: librdkafka says so, and leaves the partition alone from then on.
                stack.pop_all().close()
                reader = subscribed()

        for _ in range(KILLS_WHILE_PENDING):
            for _ in range(POLLS_BETWEEN_KILLS):
                read_some()
            broker.restart_killed()
        assert arrived == []
        producer.commit()

        def all_is_here() -> bool:
            read_some()
            return len(arrived) >= 2

        wait_until(all_is_here, "what is behind the transaction's offset")
    assert arrived == values("v", 10)[8:]


def test_a_group_goes_on_where_it_was(crash_scenario: Scenario, broker: BrokerProcess) -> None:
    partition, group_id = crash_scenario.partition(), crash_scenario.new_name("group")
    crash_scenario.fill(partition, values("before", 5))
    consumer = crash_scenario.consumer(group_id)
    consumer.subscribe([partition.topic])
    arrived: list[bytes | None] = []

    def have_arrived(count: int) -> bool:
        arrived.extend(record.value for record in consumer.poll(POLL_S))
        return len(arrived) >= count

    wait_until(lambda: have_arrived(5), "the first five")
    for count in (5, 10):
        broker.restart_killed()
        consumer.commit({partition: count})  # between poll and commit: it is a member still (decision 0025)
        crash_scenario.fill(partition, values("after", 5))
        wait_until(partial(have_arrived, count + 5), "the next five")
    assert arrived == values("before", 5) + 2 * values("after", 5), "nothing comes twice"
    assert crash_scenario.committed(group_id, partition) == 10
    consumer.close()
