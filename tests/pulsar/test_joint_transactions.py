"""One transaction of librdkafka's producer and of Pulsar's side, opened and ended by either."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

import exacta
from exacta.ports.authorizer import AllowAll, Principal, ResourceKind
from exacta.protocol.pulsar import messages_pb2 as pb
from tests.kafka.access_rules import Rules
from tests.pulsar.joint import ABORT, COMMIT, Side, committed_of_kafka, committed_of_pulsar, join, kafka_producer, write
from tests.pulsar.wire import Wire, running

on_all_kinds = pytest.mark.parametrize("broker", ["marker", "sidecar", "both"], indirect=True)
NOT_OPEN = pb.ServerError.InvalidTxnStatus


@pytest.fixture
def broker(request: pytest.FixtureRequest) -> Iterator[exacta.Broker]:
    """A broker whose topics are of one kind; "both": the topic of Kafka's side is a sidecar topic, and Pulsar's not."""
    buffer = getattr(request, "param", "marker")
    is_both = buffer == "both"
    with running(transaction_buffer="marker" if is_both else buffer) as broker:
        if is_both:
            admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
            topic = NewTopic("k", 1, 1, config={"transaction.buffer": "sidecar"})
            admin.create_topics([topic])["k"].result(20)
        wire = Wire(broker.pulsar_url)
        wire.open_producer("orders")
        wire.produce(b"order")
        wire.close()
        yield broker


@pytest.fixture
def producer(broker: exacta.Broker) -> Producer:
    return kafka_producer(broker.bootstrap_servers)


@pytest.fixture
def side(broker: exacta.Broker) -> Iterator[Side]:
    side = Side(broker.pulsar_url)
    side.open_producer("p")
    side.read("orders")
    yield side
    side.close()


@pytest.mark.parametrize("opened_by", ["Kafka", "Pulsar"])
@pytest.mark.parametrize("may", [True, False])
def test_a_joint_transaction_belongs_to_the_owner_of_the_transactional_id_too(
    broker: exacta.Broker, producer: Producer, side: Side, may: bool, opened_by: str
) -> None:
    transaction = begun(broker, producer, side, opened_by)
    served = broker._server
    assert served is not None
    assert served._broker is not None
    served._broker.authorizer = Rules(lambda _, resource: may and resource.kind is ResourceKind.TRANSACTIONAL_ID)
    for each in served._connections:
        each.principal = Principal(name="mallory")
    answer = side.end(transaction, COMMIT)
    assert answer.HasField("error") is not may
    served._broker.authorizer = AllowAll()


def begun(broker: exacta.Broker, producer: Producer, side: Side, opened_by: str) -> int:
    """A joint transaction to which Kafka's side has written, and Pulsar's, which has acknowledged the order."""
    producer.begin_transaction()
    if opened_by == "Kafka":
        write(producer, "k", b"by Kafka")
        transaction = join(broker.bootstrap_servers)
    else:
        transaction = side.begin().txnid_least_bits
        assert join(broker.bootstrap_servers, transaction) == transaction
        write(producer, "k", b"by Kafka")
    assert isinstance(side.produce(b"by Pulsar", transaction=transaction), pb.CommandSendReceipt)
    order, _ = side.message()
    assert not side.acknowledge(order, transaction=transaction).HasField("error")
    return transaction


def is_left(broker: exacta.Broker) -> bool:
    """Return whether the order is delivered to a new consumer: it comes before what is sent now."""
    last = Side(broker.pulsar_url)
    last.read("orders")
    last.open_producer("orders")
    last.produce(b"last", sequence=1)
    _, value = last.message()
    last.close()
    return value == b"order"


@pytest.mark.sweep
@on_all_kinds
@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("ended_by", ["Kafka", "Pulsar"])
@pytest.mark.parametrize("opened_by", ["Kafka", "Pulsar"])
def test_all_of_it_has_one_outcome(
    broker: exacta.Broker, producer: Producer, side: Side, opened_by: str, ended_by: str, commit: bool
) -> None:
    transaction = begun(broker, producer, side, opened_by)
    same, other = (COMMIT, ABORT) if commit else (ABORT, COMMIT)
    if ended_by == "Pulsar":
        assert not side.end(transaction, same).HasField("error")
    producer.commit_transaction() if commit else producer.abort_transaction()
    assert not side.end(transaction, same).HasField("error"), "a repeat is answered as the first time"
    assert side.end(transaction, other).error == NOT_OPEN
    late = side.produce(b"late", sequence=1, transaction=transaction)
    assert isinstance(late, pb.CommandSendError)
    side.close()
    assert committed_of_kafka(broker.bootstrap_servers, "k") == ([b"by Kafka"] if commit else [])
    assert committed_of_pulsar(broker.pulsar_url, "p") == ([b"by Pulsar"] if commit else [])
    assert is_left(broker) is not commit
    producer.begin_transaction()
    write(producer, "k", b"next")
    producer.commit_transaction()
    assert committed_of_kafka(broker.bootstrap_servers, "k")[-1] == b"next"


@pytest.mark.parametrize("opened_by", ["Kafka", "Pulsar"])
def test_a_commit_after_the_other_side_has_aborted_requires_an_abort(
    broker: exacta.Broker, producer: Producer, side: Side, opened_by: str
) -> None:
    transaction = begun(broker, producer, side, opened_by)
    side.end(transaction, ABORT)
    with pytest.raises(KafkaException) as refused:
        producer.commit_transaction()
    assert refused.value.args[0].txn_requires_abort()
    assert not refused.value.args[0].fatal()
    producer.abort_transaction()
    producer.begin_transaction()
    write(producer, "k", b"next")
    producer.commit_transaction()
    assert committed_of_kafka(broker.bootstrap_servers, "k") == [b"next"]


def test_a_late_write_requires_an_abort_and_is_in_no_transaction(
    broker: exacta.Broker, producer: Producer, side: Side
) -> None:
    transaction = begun(broker, producer, side, "Kafka")
    side.end(transaction, ABORT)
    with pytest.raises(KafkaException):
        write(producer, "other", b"late")
    with pytest.raises(KafkaException) as refused:
        producer.commit_transaction()
    assert refused.value.args[0].txn_requires_abort()
    producer.abort_transaction()
    producer.begin_transaction()
    write(producer, "other", b"next")
    producer.commit_transaction()
    assert committed_of_kafka(broker.bootstrap_servers, "other") == [b"next"]


def test_an_abort_after_the_other_side_has_committed_is_fatal(
    broker: exacta.Broker, producer: Producer, side: Side
) -> None:
    """Nothing that the client could do would make it true."""
    transaction = begun(broker, producer, side, "Pulsar")
    side.end(transaction, COMMIT)
    with pytest.raises(KafkaException) as refused:
        producer.abort_transaction()
    assert refused.value.args[0].fatal()
    assert committed_of_kafka(broker.bootstrap_servers, "k") == [b"by Kafka"]


def test_who_has_written_nothing_sends_no_end_and_joins_the_next(
    broker: exacta.Broker, producer: Producer, side: Side
) -> None:
    producer.begin_transaction()
    first = side.begin().txnid_least_bits
    join(broker.bootstrap_servers, first)
    side.produce(b"one", transaction=first)
    assert not side.end(first, COMMIT).HasField("error")
    producer.commit_transaction()
    producer.begin_transaction()
    second = side.begin().txnid_least_bits
    join(broker.bootstrap_servers, second)
    write(producer, "k", b"two")
    producer.commit_transaction()
    assert committed_of_pulsar(broker.pulsar_url, "p") == [b"one"]
    assert committed_of_kafka(broker.bootstrap_servers, "k") == [b"two"]


@pytest.mark.parametrize("action", [COMMIT, ABORT])
def test_who_only_sends_offsets_is_told_to_abort_once(
    broker: exacta.Broker, producer: Producer, side: Side, action: "pb.TxnAction"
) -> None:
    """It sends no end for a transaction in which the registration of its group was refused."""
    bootstrap = broker.bootstrap_servers
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g"})

    def send_offsets() -> None:
        producer.send_offsets_to_transaction([TopicPartition("orders", 0, 1)], consumer.consumer_group_metadata())

    producer.begin_transaction()
    transaction = side.begin().txnid_least_bits
    join(bootstrap, transaction)
    assert not side.end(transaction, action).HasField("error")
    with pytest.raises(KafkaException) as refused:
        send_offsets()
    assert refused.value.args[0].txn_requires_abort()
    producer.abort_transaction()
    producer.begin_transaction()
    send_offsets()
    producer.commit_transaction()
    [found] = consumer.committed([TopicPartition("orders", 0)])
    assert found.offset == 1
    consumer.close()


def test_a_producer_that_has_written_nothing_has_nothing_to_join(broker: exacta.Broker, producer: Producer) -> None:
    producer.begin_transaction()
    with pytest.raises(exacta.NotJoined, match="write a record, or send offsets, and flush first"):
        join(broker.bootstrap_servers)


@pytest.mark.sweep
@on_all_kinds
@pytest.mark.parametrize("opened_by", ["Kafka", "Pulsar"])
def test_it_survives_the_death_of_the_broker(broker: exacta.Broker, producer: Producer, opened_by: str) -> None:
    side = Side(broker.pulsar_url)
    side.open_producer("p")
    side.read("orders")
    transaction = begun(broker, producer, side, opened_by)
    side.close()
    broker.restart(clean=False)
    again = Side(broker.pulsar_url)
    again.open_producer("p")
    assert isinstance(again.produce(b"more", sequence=5, transaction=transaction), pb.CommandSendReceipt)
    write(producer, "k", b"more")
    assert not again.end(transaction, COMMIT).HasField("error")
    again.close()
    broker.restart(clean=False)
    producer.commit_transaction()
    assert committed_of_kafka(broker.bootstrap_servers, "k") == [b"by Kafka", b"more"]
    assert committed_of_pulsar(broker.pulsar_url, "p") == [b"by Pulsar", b"more"]
    assert not is_left(broker)


@on_all_kinds
def test_time_aborts_it_on_both_sides(broker: exacta.Broker, producer: Producer, side: Side) -> None:
    producer.begin_transaction()
    transaction = side.begin(timeout_ms=1_500).txnid_least_bits
    join(broker.bootstrap_servers, transaction)
    write(producer, "k", b"by Kafka")
    while isinstance(side.produce(b"p", transaction=transaction), pb.CommandSendReceipt):
        pass
    assert side.end(transaction, COMMIT).error == NOT_OPEN
    with pytest.raises(KafkaException):
        producer.commit_transaction()
    assert committed_of_kafka(broker.bootstrap_servers, "k") == []
