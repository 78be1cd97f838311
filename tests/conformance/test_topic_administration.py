"""Topics change while they are used: every admin client, under the producers and consumers of every library."""

import time

import pytest

from tests.conformance.administration import ADMINISTRATIONS, DONE, Administration, Aiokafka, Librdkafka
from tests.conformance.clients import ClientError, TopicPartition
from tests.conformance.scenario import POLL_S, Scenario, send_all, values, wait_until


@pytest.fixture(params=ADMINISTRATIONS, ids=lambda made: made.__name__)
def administration(request: pytest.FixtureRequest, scenario: Scenario) -> Administration:
    """Whoever changes the topics."""
    return request.param(scenario.bootstrap)


def test_a_topic_grows_under_its_clients(scenario: Scenario, administration: Administration) -> None:
    topic = scenario.topic()
    assert administration.grow(topic, 3) == DONE
    assert administration.grow(topic, 3) == administration.grow(topic, 1) == "INVALID_PARTITIONS"
    assert administration.grow(scenario.new_name("topic"), 3) == "UNKNOWN_TOPIC_OR_PARTITION"
    partitions = [TopicPartition(topic, index) for index in range(3)]
    for partition in partitions:
        scenario.fill(partition, [b"%d" % partition.partition])
    consumer = scenario.consumer(scenario.new_name("group"))
    consumer.subscribe([topic])
    read: list[bytes | None] = []

    def all_read() -> bool:
        read.extend(record.value for record in consumer.poll(POLL_S))
        return len(read) == 3

    wait_until(all_read, "a member to read all partitions")
    assert consumer.assignment() == set(partitions)
    assert {*read} == {b"0", b"1", b"2"}


def test_records_are_deleted_under_their_readers(scenario: Scenario, administration: Administration) -> None:
    partition = scenario.partition()
    for value in values("v", 4):
        scenario.fill(partition, [value])
    assert administration.delete_records(partition, 3) == 3
    assert administration.delete_records(partition, 1) == 3
    assert administration.delete_records(partition, 5) == "OFFSET_OUT_OF_RANGE"
    assert scenario.read(partition) == values("v", 1, start=3), "readers go on where the log begins"
    assert administration.delete_records(partition, -1) == 4
    producer = scenario.transactional()
    producer.begin()
    [told] = send_all(producer, partition, [b"after"])
    producer.commit()
    assert scenario.high_watermark(partition) > 4
    # Apache Kafka's markers come a moment after the answer.
    wait_until(lambda: scenario.read(partition) == [b"after"], "what was committed")
    [record] = scenario.read_records([partition])
    assert record.offset == 4
    assert scenario.on_sidecar or told == 4


def test_configurations_are_refused_by_name(scenario: Scenario, administration: Administration) -> None:
    topic = scenario.topic()
    assert administration.set_configs(topic, {"retention.ms": "1000000"}) == DONE
    assert administration.set_configs(topic, {"no.such": "1"}) == "INVALID_CONFIG"
    assert administration.set_configs(topic, {"retention.ms": "soon"}) == "INVALID_CONFIG"
    nowhere = scenario.new_name("topic")
    assert administration.set_configs(nowhere, {"retention.ms": "1"}) == "UNKNOWN_TOPIC_OR_PARTITION"


def test_the_broker_sets_the_time(scenario: Scenario, administration: Administration) -> None:
    partition = scenario.partition()
    configs = {"message.timestamp.type": "LogAppendTime"}
    assert administration.set_configs(partition.topic, configs) == DONE
    producer = scenario.producer()
    before_ms = int(time.time() * 1000)

    def stamped() -> bool:
        producer.send(partition.topic, b"v", partition=0, timestamp_ms=1_000)
        producer.flush()
        return scenario.read_records([partition])[-1].timestamp_ms >= before_ms

    # Apache Kafka's log may have its old settings for a moment after the new ones were acknowledged.
    wait_until(stamped, "the broker's time")
    assert {record.timestamp_ms >= before_ms for record in scenario.read_records([partition])[-1:]} == {True}


def test_the_largest_batch_follows_its_setting(scenario: Scenario) -> None:
    partition = scenario.partition()
    administration = Librdkafka(scenario.bootstrap)
    large = b"x" * 5_000
    scenario.fill(partition, [large])

    def is_taken() -> bool:
        try:
            scenario.fill(partition, [large])
        except ClientError:
            return False
        return True

    assert administration.set_configs(partition.topic, {"max.message.bytes": "1000"}) == DONE
    wait_until(lambda: not is_taken(), "a large record to be refused")
    assert administration.set_configs(partition.topic, {"max.message.bytes": "10000"}) == DONE
    wait_until(is_taken, "a large record to be taken again")


def test_records_out_of_time_are_refused(scenario: Scenario) -> None:
    partition = scenario.partition()
    producer = scenario.producer()
    ahead = producer.send(partition.topic, b"v", partition=0, timestamp_ms=int(time.time() * 1000) + 7_200_000)
    producer.flush()
    with pytest.raises(ClientError):
        ahead.result(0)
    scenario.fill(partition, [b"in time"])
    assert scenario.read(partition) == [b"in time"]


def test_a_topic_compresses_in_its_own_way(scenario: Scenario) -> None:
    """Whatever its producers do; and every library reads what comes of it."""
    administration = Aiokafka(scenario.bootstrap)
    partition = scenario.partition()
    producers = {sent: scenario.producer(compression=sent) for sent in (None, *scenario.client.compressions)}
    wanted: list[bytes] = []
    for kept in (*scenario.client.compressions, "uncompressed", "producer"):
        assert administration.set_configs(partition.topic, {"compression.type": kept}) == DONE
        for sent, producer in producers.items():
            some = [b"0123456789" * 20 + value for value in values(f"{kept}-{sent}", 50)]
            send_all(producer, partition, some)
            wanted += some
    assert scenario.read(partition) == wanted
