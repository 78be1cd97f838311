"""The questions of a test to an embedded broker, asked about what librdkafka wrote."""

import threading
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

import exacta
from exacta.client.errors import KafkaError
from exacta.client.routing import UnknownTopic
from exacta.protocol.kafka.errors import ErrorCode
from exacta.testing import Fate, NotRead


@pytest.fixture(scope="module")
def broker() -> Iterator[exacta.Broker]:
    with exacta.Broker() as broker:
        yield broker


def producer(broker: exacta.Broker, transactional_id: str = "", **more: object) -> Producer:
    named = {"transactional.id": transactional_id} if transactional_id else {}
    made = Producer({"bootstrap.servers": broker.bootstrap_servers, **named, **more})
    if transactional_id:
        made.init_transactions(30)
    return made


def transaction(made: Producer, topic: str, value: bytes, ends: str) -> None:
    made.begin_transaction()
    made.produce(topic, value)
    assert made.flush(30) == 0
    if ends:
        getattr(made, f"{ends}_transaction")(30)


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_a_record_has_all_that_was_sent(broker: exacta.Broker, compression: str) -> None:
    topic = f"whole-{compression}"
    broker.create_topic(topic, 2)
    made = producer(broker, **{"compression.type": compression})
    made.produce(topic, b"v" * 200, key=b"k", headers=[("h", b"1"), ("h", None)], partition=1, timestamp=1234)
    made.produce(topic, None, partition=1, timestamp=1235)
    made.produce(topic, b"w", partition=0, timestamp=1236)
    assert made.flush(30) == 0
    found = broker.records(topic)
    assert [tuple(each) for each in found] == [
        (topic, 0, 0, 1236, None, b"w", (), "committed"),
        (topic, 1, 0, 1234, b"k", b"v" * 200, (("h", b"1"), ("h", None)), "committed"),
        (topic, 1, 1, 1235, None, None, (), "committed"),
    ]
    assert broker.records(topic, partition=0) == found[:1]


def test_each_record_tells_its_fate(broker: exacta.Broker) -> None:
    broker.create_topic("fates", 1)
    one, two = producer(broker, "one"), producer(broker, "two")
    transaction(one, "fates", b"first", "commit")
    transaction(one, "fates", b"second", "abort")
    transaction(two, "fates", b"open", "")
    transaction(one, "fates", b"behind it", "commit")
    plain = producer(broker)
    plain.produce("fates", b"plain")
    assert plain.flush(30) == 0
    assert [(each.value, each.fate) for each in broker.records("fates", "uncommitted")] == [
        (b"first", Fate.COMMITTED),
        (b"second", Fate.ABORTED),
        (b"open", Fate.OPEN),
        (b"behind it", Fate.COMMITTED),
        (b"plain", Fate.COMMITTED),
    ]
    assert [each.value for each in broker.records("fates")] == [b"first"]
    assert [each.transactional_id for each in broker.transactions()] == ["two"]
    two.commit_transaction(30)
    assert [each.value for each in broker.records("fates")] == [b"first", b"open", b"behind it", b"plain"]
    assert broker.transactions() == []


def test_the_records_of_a_sidecar_topic_are_committed(broker: exacta.Broker) -> None:
    broker.create_topic("aside", 1, transaction_buffer="sidecar")
    made = producer(broker, "aside")
    transaction(made, "aside", b"gone", "abort")
    transaction(made, "aside", b"there", "commit")
    for isolation in ("committed", "uncommitted"):
        assert [(each.value, each.fate) for each in broker.records("aside", isolation)] == [(b"there", "committed")]


def test_a_transactional_id_is_explained(broker: exacta.Broker) -> None:
    broker.create_topic("explained", 1)
    first = producer(broker, "explained", **{"client.id": "old"})
    transaction(first, "explained", b"v", "")
    producer(broker, "explained", **{"client.id": "new"})
    told = broker.explain("explained")
    assert not told.is_open
    assert {each.cause for each in told.incidents} == {"a new instance initialised the transactional id"}


def test_offsets_and_lag_of_a_group(broker: exacta.Broker) -> None:
    broker.create_topic("read", 2)
    made = producer(broker)
    for number in range(3):
        made.produce("read", b"%d" % number, partition=0)
    assert made.flush(30) == 0
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "readers"})
    consumer.commit(offsets=[TopicPartition("read", 0, 1)], asynchronous=False)
    consumer.close()
    assert broker.offsets("readers") == {("read", 0): 1}
    assert {at: each.unread for at, each in broker.lag("readers").items()} == {("read", 0): 2}


@pytest.mark.parametrize(
    ("question", "code"),
    [
        ("explain", ErrorCode.TRANSACTIONAL_ID_NOT_FOUND),
        ("offsets", ErrorCode.GROUP_ID_NOT_FOUND),
        ("lag", ErrorCode.GROUP_ID_NOT_FOUND),
    ],
)
def test_what_nobody_knows_is_an_error(broker: exacta.Broker, question: str, code: ErrorCode) -> None:
    with pytest.raises(KafkaError) as raised:
        getattr(broker, question)("nobody")
    assert raised.value.code == code


def test_a_known_group_may_have_no_offsets(broker: exacta.Broker) -> None:
    broker.create_topic("unread", 1)
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "idle"})
    consumer.subscribe(["unread"])
    while not consumer.assignment():
        consumer.poll(0.1)
    assert broker.offsets("idle") == {}
    consumer.close()


def test_a_test_waits_until_a_group_has_read_everything(broker: exacta.Broker) -> None:
    broker.create_topic("awaited", 2)
    broker.create_topic("not-awaited", 1)
    made = producer(broker)
    for topic, partition in (("awaited", 0), ("awaited", 1), ("not-awaited", 0)):
        made.produce(topic, b"v", partition=partition)
    assert made.flush(30) == 0
    with pytest.raises(NotRead, match=r"group 'waiting' has committed no offset in 0\.1 s"):
        broker.wait_until_read("waiting", 0.1)
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "waiting",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.commit(offsets=[TopicPartition("awaited", 1, 1)], asynchronous=False)
    with pytest.raises(NotRead, match=r"has not read everything in 0 s: 1 in awaited-0 left"):
        broker.wait_until_read("waiting", 0)
    with pytest.raises(NotRead, match=r"has not read everything in 0 s: 1 in not-awaited-0 left$"):
        broker.wait_until_read("waiting", 0, topics="not-awaited")

    def read() -> None:
        consumer.subscribe(["awaited"])
        while (record := consumer.poll(1)) is None or record.error() is not None:
            pass
        consumer.commit(record, asynchronous=False)

    reading = threading.Thread(target=read)
    reading.start()
    broker.wait_until_read("waiting", 30)
    reading.join()
    consumer.close()


def test_wrong_questions_are_refused(broker: exacta.Broker) -> None:
    with pytest.raises(UnknownTopic, match="topic 'nowhere' does not exist"):
        broker.records("nowhere")
    with pytest.raises(ValueError, match="isolation is one of committed, uncommitted, not 'read_committed'"):
        broker.records("nowhere", "read_committed")
    broker.create_topic("once", cleanup_policy="compact")
    with pytest.raises(KafkaError, match="TOPIC_ALREADY_EXISTS"):
        broker.create_topic("once")
    with pytest.raises(ValueError, match="topic 'once' has no partition 5: it has 1"):
        broker.records("once", partition=5)
    with pytest.raises(KafkaError, match=r"INVALID_CONFIG \(.*cleanup"):
        broker.create_topic("wrong", cleanup="compact")
