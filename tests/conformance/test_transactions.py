"""Scenarios of one transactional producer: what becomes visible, when, and to whom."""

import pytest

from tests.conformance.clients import FencedError, Isolation, TopicPartition
from tests.conformance.scenario import POLL_S, Scenario, offsets_of, send_all, values, wait_until


def test_a_commit_shows_and_an_abort_hides(scenario: Scenario) -> None:
    partition = scenario.partition()
    producer = scenario.transactional()
    for outcome, value in (("commit", b"one"), ("abort", b"two"), ("commit", b"three")):
        producer.begin()
        send_all(producer, partition, [value])
        producer.commit() if outcome == "commit" else producer.abort()
    assert scenario.read(partition, Isolation.COMMITTED) == [b"one", b"three"]
    everything = scenario.holds(marker=[b"one", b"two", b"three"], sidecar=[b"one", b"three"])
    assert scenario.read(partition, Isolation.UNCOMMITTED) == everything


def test_an_open_transaction_holds_later_records_back(scenario: Scenario) -> None:
    """On a sidecar topic it holds nothing back, and enters where it commits."""
    partition = scenario.partition()
    slow, fast = scenario.transactional(), scenario.transactional()
    plain = scenario.producer()
    send_all(plain, partition, [b"before"])
    slow.begin()
    send_all(slow, partition, [b"slow"])
    fast.begin()
    send_all(fast, partition, [b"fast"])
    fast.commit()
    send_all(plain, partition, [b"after"])

    others = [b"before", b"fast", b"after"]
    assert scenario.last_stable_offset(partition) == scenario.holds(marker=1, sidecar=3)
    assert scenario.read(partition, Isolation.COMMITTED) == scenario.holds(marker=[b"before"], sidecar=others)
    in_order_of_writing = [b"before", b"slow", b"fast", b"after"]
    uncommitted = scenario.holds(marker=in_order_of_writing, sidecar=others)
    assert scenario.read(partition, Isolation.UNCOMMITTED) == uncommitted

    slow.commit()
    everything = scenario.holds(marker=in_order_of_writing, sidecar=[*others, b"slow"])
    wait_until_read(scenario, partition, everything)
    assert scenario.last_stable_offset(partition) == scenario.high_watermark(partition)


@pytest.mark.parametrize("outcome", ["commit", "abort"])
def test_an_older_open_transaction_holds_back_its_partition_of_a_committed_one(
    scenario: Scenario, outcome: str
) -> None:
    topic = scenario.topic(partitions=2)
    both = held_back, free = TopicPartition(topic, 0), TopicPartition(topic, 1)
    older, producer, younger = (scenario.transactional() for _ in range(3))
    consumer = scenario.consumer()
    consumer.assign(dict.fromkeys(both, 0))
    arrived: list[bytes | None] = []

    def has_arrived(count: int) -> bool:
        arrived.extend(record.value for record in consumer.poll(POLL_S))
        return len(arrived) >= count

    older.begin()
    send_all(older, held_back, [b"older"])
    producer.begin()
    for partition in both:
        send_all(producer, partition, [b"of both"])
    younger.begin()
    send_all(younger, free, [b"younger"])  # behind the record of both: it holds nothing of that back
    producer.commit()
    seen = scenario.holds(marker=[1], sidecar=[0, 1])
    wait_until(lambda: has_arrived(len(seen)), "the record of each partition in which nothing older holds it back")
    found = sorted((each.partition, each.value) for each in scenario.read_records(both))
    assert found == [(partition, b"of both") for partition in seen]
    assert [scenario.last_stable_offset(each) for each in both] == scenario.holds(marker=[0, 1], sidecar=[1, 1])
    assert arrived == [b"of both" for _ in seen]

    older.commit() if outcome == "commit" else older.abort()
    rest = [b"older"] if outcome == "commit" else []
    rest += scenario.holds(marker=[b"of both"], sidecar=[])
    wait_until(lambda: has_arrived(len(seen) + len(rest)), "what the older transaction held back or lets in")
    assert arrived == [b"of both" for _ in seen] + rest
    younger.abort()


def test_interleaved_transactions_are_told_apart(scenario: Scenario) -> None:
    partition = scenario.partition()
    committing, aborting = scenario.transactional(), scenario.transactional()
    committing.begin()
    aborting.begin()
    for number in range(5):
        send_all(committing, partition, [b"good-%d" % number])
        send_all(aborting, partition, [b"bad-%d" % number])
    committing.commit()
    aborting.abort()
    wait_until_read(scenario, partition, values("good", 5))
    interleaved = [value for pair in zip(values("good", 5), values("bad", 5), strict=True) for value in pair]
    uncommitted = scenario.holds(marker=interleaved, sidecar=values("good", 5))
    assert scenario.read(partition, Isolation.UNCOMMITTED) == uncommitted


def test_a_reader_that_waits_sees_a_transaction_when_it_commits(scenario: Scenario) -> None:
    partition = scenario.partition()
    consumer = scenario.consumer()
    consumer.assign({partition: 0})
    producer = scenario.transactional()
    for number in range(3):
        producer.begin()
        send_all(producer, partition, [b"hidden-%d" % number])
        producer.abort()
        producer.begin()
        send_all(producer, partition, [b"shown-%d" % number])
        producer.commit()
    arrived: list[bytes | None] = []

    def all_arrived() -> bool:
        arrived.extend(record.value for record in consumer.poll(POLL_S))
        return len(arrived) >= 3

    wait_until(all_arrived, "three committed records")
    assert arrived == values("shown", 3)


def test_one_transaction_spans_many_partitions(scenario: Scenario) -> None:
    topic = scenario.topic(partitions=50)
    partitions = [TopicPartition(topic, number) for number in range(50)]
    producer = scenario.transactional()
    for outcome in ("abort", "commit"):
        producer.begin()
        sent = [producer.send(topic, outcome.encode(), partition=partition.partition) for partition in partitions]
        producer.flush()
        offsets_of(sent)
        producer.abort() if outcome == "abort" else producer.commit()
    end = scenario.holds(marker=4, sidecar=1)  # two records and two markers, or the record that was committed
    wait_until(
        lambda: all(scenario.last_stable_offset(partition) == end for partition in partitions),
        "the markers of both transactions",
    )
    records = scenario.read_records(partitions)
    assert sorted((record.partition, record.value) for record in records) == [(n, b"commit") for n in range(50)]


def test_empty_transactions_do_no_harm(scenario: Scenario) -> None:
    partition = scenario.partition()
    producer = scenario.transactional()
    producer.begin()
    producer.commit()
    producer.begin()
    producer.abort()
    producer.begin()
    send_all(producer, partition, [b"real"])
    producer.commit()
    producer.begin()
    producer.abort()
    wait_until_read(scenario, partition, [b"real"])


def test_transactions_follow_each_other_at_once(scenario: Scenario) -> None:
    partition = scenario.partition()
    producer = scenario.transactional()
    wanted = values("v", 20)
    for value in wanted:
        producer.begin()
        future = producer.send(partition.topic, value, partition=0)
        producer.commit()
        assert future.done()
    wait_until_read(scenario, partition, wanted)
    # Each transaction is its record and its marker, which a sidecar topic does without.
    assert scenario.high_watermark(partition) == scenario.holds(marker=40, sidecar=20)


def test_a_transaction_of_many_batches_is_one(scenario: Scenario) -> None:
    topic = scenario.topic(partitions=3)
    producer = scenario.transactional(batch_bytes=600)
    wanted = {TopicPartition(topic, number): values(f"p{number}", 200) for number in range(3)}
    for end in (producer.abort, producer.commit):
        producer.begin()
        for partition, some in wanted.items():
            for value in some:
                producer.send(topic, value, partition=partition.partition)
        producer.flush()
        end()
    for partition, some in wanted.items():
        wait_until_read(scenario, partition, some)
        assert scenario.read(partition, Isolation.UNCOMMITTED) == scenario.holds(marker=some + some, sidecar=some)


def test_a_transaction_over_its_time_is_aborted(scenario: Scenario) -> None:
    partition, waiting = scenario.partition(), scenario.marker_partition()
    plain, slow = scenario.producer(), scenario.transactional(transaction_timeout_ms=4_000)
    slow.begin()
    for each in (partition, waiting):
        send_all(slow, each, [b"too-slow"])
        send_all(plain, each, [b"waiting"])
    assert scenario.wait_for_what_was_held_back(waiting) == [b"waiting"]
    with pytest.raises(FencedError):
        slow.commit()
    wait_until_read(scenario, partition, [b"waiting"])


def wait_until_read(scenario: Scenario, partition: TopicPartition, wanted: list[bytes]) -> None:
    """Wait for the transactions ended so far to be visible: Kafka answers an end before its markers are written."""
    wait_until(
        lambda: scenario.last_stable_offset(partition) == scenario.high_watermark(partition),
        "all markers of the partition",
    )
    assert scenario.read(partition) == wanted
