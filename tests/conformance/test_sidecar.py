"""Scenarios of sidecar topics: what a transaction writes there lies aside, and enters whole when it commits (PIP-31).

The scenarios that say most about transactions run here on sidecar topics, whatever the other modules run on. Those that
follow are about sidecar topics alone. A transaction of `LARGE` is too much for the broker's state: it is spilled to a
stream of its own, and read in place. With EXACTA_TEST_TRANSACTION_BUFFER=sidecar all modules run on sidecar topics.
"""

import contextlib
import time
from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from exacta import Broker
from tests.conformance import test_crash, test_fencing, test_transaction_offsets, test_transactions
from tests.conformance.administration import Librdkafka
from tests.conformance.brokers import GIVEN_BOOTSTRAP, ON_KAFKA, BrokerProcess
from tests.conformance.clients import CLIENTS, Isolation, Record, TopicPartition
from tests.conformance.scenario import Scenario, offsets_of, send_all, values, wait_until

pytestmark = pytest.mark.skipif(ON_KAFKA or bool(GIVEN_BOOTSTRAP), reason="sidecar topics are Exacta's")

ON_BOTH = (
    test_transactions.test_a_commit_shows_and_an_abort_hides,
    test_transactions.test_an_open_transaction_holds_later_records_back,
    test_transactions.test_interleaved_transactions_are_told_apart,
    test_transactions.test_a_transaction_of_many_batches_is_one,
    test_transaction_offsets.test_consume_transform_produce_commits_input_and_output_together,
    test_transaction_offsets.test_an_abort_gives_input_and_output_back,
    test_fencing.test_a_zombie_cannot_commit,
)
ON_BOTH_WITH_KILLS = (
    test_crash.test_what_was_acknowledged_survives,
    test_crash.test_an_open_transaction_is_taken_over,
    test_crash.test_an_open_transaction_can_go_on,
)
LARGE = [b"%06d" % number + bytes(1_018) for number in range(2_000)]
SIZES = pytest.mark.parametrize("written", [LARGE[:3], LARGE], ids=["held", "spilled"])


@pytest.fixture
def sidecar(scenario: Scenario) -> Scenario:
    """A scenario whose topics are sidecar topics."""
    scenario.on_sidecar = True
    return scenario


@pytest.fixture
def crash_sidecar(crash_scenario: Scenario) -> Scenario:
    """The same, on the broker that may be killed."""
    crash_scenario.on_sidecar = True
    return crash_scenario


@pytest.mark.parametrize("run", ON_BOTH, ids=lambda run: run.__name__.removeprefix("test_"))
def test_on_a_sidecar_topic(sidecar: Scenario, run: Callable[[Scenario], None]) -> None:
    run(sidecar)


@pytest.mark.sweep
@pytest.mark.parametrize("run", ON_BOTH_WITH_KILLS, ids=lambda run: run.__name__.removeprefix("test_"))
def test_on_a_sidecar_topic_under_kills(
    crash_sidecar: Scenario, broker: BrokerProcess, run: Callable[[Scenario, BrokerProcess], None]
) -> None:
    run(crash_sidecar, broker)


def test_transactions_lie_whole_in_the_order_of_their_commits(sidecar: Scenario) -> None:
    partition = sidecar.partition()
    first, second, third = producers = [sidecar.transactional() for _ in range(3)]
    plain = sidecar.producer()
    for each in producers:
        each.begin()
    for number in range(4):
        for name, each in zip(("first", "second", "third"), producers, strict=True):
            send_all(each, partition, [f"{name}-{number}".encode()])
        send_all(plain, partition, [b"plain-%d" % number])
        assert sidecar.last_stable_offset(partition) == sidecar.high_watermark(partition) == number + 1
        assert sidecar.read(partition) == values("plain", number + 1)
    third.commit()
    first.abort()
    second.commit()
    records = sidecar.read_records([partition])
    assert [record.value for record in records] == values("plain", 4) + values("third", 4) + values("second", 4)
    assert [record.offset for record in records] == list(range(12)), "an abort leaves no gap, nor does an end"


@SIZES
def test_no_record_is_told_an_offset(sidecar: Scenario, written: list[bytes]) -> None:
    """A delivery report has no offset that looks real (decision 0042)."""
    partition = sidecar.partition()
    sidecar.fill(partition, [b"before"])
    producer = sidecar.transactional()
    for end in (producer.abort, producer.commit):
        producer.begin()
        sent = [producer.send(partition.topic, value, partition=0) for value in written]
        producer.flush()
        told = offsets_of(sent)
        if sidecar.client.name == "confluent-kafka":
            assert set(told) == {None}
        else:
            assert max(told) < -1
            assert len(set(told)) == len(written)
        end()
    assert sidecar.read(partition) == [b"before", *written]


def test_marker_and_sidecar_topics_end_together(sidecar: Scenario) -> None:
    aside, among = sidecar.partition(), sidecar.marker_partition()
    producer = sidecar.transactional()
    for end in (producer.abort, producer.commit):
        producer.begin()
        for partition in (aside, among):
            send_all(producer, partition, values("v", 3))
        assert sidecar.read(aside, Isolation.UNCOMMITTED) == []
        assert sidecar.read(aside) == sidecar.read(among) == []
        end()
    assert sidecar.read(aside) == sidecar.read(among) == values("v", 3)
    assert sidecar.high_watermark(aside) == 3
    assert sidecar.high_watermark(among) == 8, "six records and two markers"


def test_a_large_transaction_is_read_by_every_client(sidecar: Scenario) -> None:
    partition = sidecar.partition()
    producer = sidecar.transactional()
    _commit(sidecar, partition, [b"small"])
    producer.begin()
    send_all(producer, partition, LARGE)
    assert sidecar.read(partition) == [b"small"]
    producer.commit()
    _commit(sidecar, partition, [b"behind"])
    for kind in CLIENTS:
        with contextlib.closing(kind()) as client:
            reader = Scenario(client, sidecar.bootstrap, sidecar.new_name(client.name))
            for isolation in Isolation:
                records = reader.read_records([partition], isolation)
                assert [record.value for record in records] == [b"small", *LARGE, b"behind"]
                assert [record.offset for record in records] == list(range(len(LARGE) + 2))


@SIZES
def test_the_logs_time_is_that_of_the_commit(sidecar: Scenario, written: list[bytes]) -> None:
    partition = TopicPartition(sidecar.topic(message_timestamp_type="LogAppendTime"))
    producer = sidecar.transactional()
    producer.begin()
    send_all(producer, partition, written)
    written_ms = _now_ms()
    wait_until(lambda: _now_ms() > written_ms, "the next millisecond")
    before_ms = _now_ms()
    producer.commit()
    after_ms = _now_ms()
    records = sidecar.read_records([partition])
    assert [record.value for record in records] == written
    (time_ms,) = {record.timestamp_ms for record in records}
    assert before_ms <= time_ms <= after_ms
    assert sidecar.topics.offset_at(partition, time_ms) == 0
    assert sidecar.topics.offset_at(partition, time_ms + 1) == -1


@SIZES
def test_offsets_are_found_by_time(sidecar: Scenario, written: list[bytes]) -> None:
    partition, start_ms = sidecar.partition(), 1_700_000_000_000
    sidecar.producer().send(partition.topic, b"before", partition=0, timestamp_ms=start_ms - 1)
    producer = sidecar.transactional()
    producer.begin()
    for number, value in enumerate(written):
        producer.send(partition.topic, value, partition=0, timestamp_ms=start_ms + 2 * number)
    producer.flush()
    wait_until(lambda: sidecar.high_watermark(partition) == 1, "the record before")
    assert sidecar.topics.offset_at(partition, start_ms) == -1, "what lies aside has no offset"
    producer.commit()
    for number in (0, 1, len(written) // 2, len(written) - 1):
        assert sidecar.topics.offset_at(partition, start_ms + 2 * number - 1) == 1 + number - (number == 0)
        assert sidecar.topics.offset_at(partition, start_ms + 2 * number) == 1 + number
    assert sidecar.topics.offset_at(partition, start_ms + 2 * len(written)) == -1
    assert sidecar.topics.offset_at(partition, None) == len(written)


@SIZES
def test_records_are_deleted_through_a_transaction(sidecar: Scenario, written: list[bytes]) -> None:
    partition, administration = sidecar.partition(), Librdkafka(sidecar.bootstrap)
    _commit(sidecar, partition, written)
    _commit(sidecar, partition, [b"behind"])
    middle, end = len(written) // 2, len(written)
    for start, rest in ((middle, [*written[middle:], b"behind"]), (end, [b"behind"]), (end + 1, [])):
        assert administration.delete_records(partition, start) == start
        records = sidecar.read_records([partition])
        assert [record.value for record in records] == rest
        assert _first_offset(records, otherwise=start) == start
    _commit(sidecar, partition, written)
    assert sidecar.read(partition) == written


@pytest.mark.sweep
@SIZES
def test_a_transaction_survives_kills_while_it_is_open_and_after_its_commit(
    crash_sidecar: Scenario, broker: BrokerProcess, written: list[bytes]
) -> None:
    scenario = crash_sidecar
    partition = scenario.partition()
    going_on, given_up = scenario.transactional(), scenario.transactional()
    for each in (going_on, given_up):
        each.begin()
        send_all(each, partition, written)
    broker.restart_killed()
    assert scenario.high_watermark(partition) == 0
    send_all(going_on, partition, [b"after"])
    given_up.abort()
    going_on.commit()
    for _ in range(2):
        records = scenario.read_records([partition])
        assert [record.value for record in records] == [*written, b"after"]
        assert [record.offset for record in records] == list(range(len(written) + 1))
        broker.restart_killed()
    _commit(scenario, partition, [b"next"])
    assert scenario.read(partition) == [*written, b"after", b"next"]


def test_a_producer_whose_batch_was_too_much_works_again_after_two_aborts() -> None:
    """The client numbers on behind the batch that the broker has refused, and finds that out with its next batch."""
    with Broker(max_staged_bytes=200) as broker:
        servers = {"bootstrap.servers": broker.bootstrap_servers}
        topic = NewTopic("t", 1, config={"transaction.buffer": "sidecar"})
        admin = AdminClient(servers)  # its call ends with it
        admin.create_topics([topic])["t"].result()
        producer = Producer({**servers, "transactional.id": "x"})
        producer.init_transactions()
        told = []
        for values_of_it in ([b"v", b"v" * 200], [b"v"], [b"v"]):
            producer.begin_transaction()
            for value in values_of_it:
                producer.produce("t", value)
                producer.flush()
            try:
                producer.commit_transaction()
            except KafkaException as error:
                told.append(error.args[0].code())
                producer.abort_transaction()
        assert told == [KafkaError.POLICY_VIOLATION, KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER]


def _commit(scenario: Scenario, partition: TopicPartition, written: list[bytes]) -> None:
    producer = scenario.transactional()
    producer.begin()
    send_all(producer, partition, written)
    producer.commit()


def _first_offset(records: list[Record], *, otherwise: int) -> int:
    return records[0].offset if records else otherwise


def _now_ms() -> int:
    return int(time.time() * 1000)
