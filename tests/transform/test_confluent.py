"""`exacta.exactly_once` with confluent-kafka: what is committed, what comes again, and what is raised."""

import logging
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

import exacta
from exacta.transform.confluent import ExactlyOnce, Transaction
from tests.transform.conftest import CALL_S, MESSAGES, NewConsumer, NewProducer, copied, copy, fill, numbers
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(90)


def some(transaction: Transaction, count: int = 4) -> list[Any]:
    """Consume exactly this many messages."""
    found: list[Any] = []
    while len(found) < count:
        more = transaction.consume(count - len(found), CALL_S)
        assert more
        found += more
    return found


def block(once: ExactlyOnce, producer: Producer, then: Callable[[], object] = lambda: None) -> Transaction:
    """Copy four messages, and do something at the end of the block."""
    with once as transaction:
        copy(producer, some(transaction))
        then()
    return transaction


def flushed(producer: Producer, *then: Callable[[], object]) -> Callable[[], None]:
    """Return what sends all that was copied, and then does these."""

    def steps() -> None:
        producer.flush(CALL_S)
        for each in then:
            each()

    return steps


def fail() -> None:
    raise ZeroDivisionError


def copy_all(once: ExactlyOnce, producer: Producer, broker: exacta.Broker, count: int = MESSAGES) -> list[bool]:
    """Copy until all is copied, and return which transactions were committed."""
    committed = []
    while len(copied(broker)) < count:
        with once as transaction:
            copy(producer, transaction.consume(3, CALL_S))
        committed.append(transaction.committed)
    return committed


def position(consumer: Consumer) -> int:
    (found,) = consumer.position([TopicPartition("in", 0)])
    return int(found.offset)


def test_records_and_offsets_are_committed_together(
    broker: exacta.Broker, consumer: Consumer, producer: Producer
) -> None:
    once = exacta.exactly_once(consumer, producer)
    with once as transaction:
        copy(producer, some(transaction))
        assert not transaction.committed
        assert copied(broker) == []
    assert transaction.committed
    assert (copied(broker), broker.offsets("copy")) == (numbers(4), {("in", 0): 4})


def test_offsets_are_those_of_the_messages_that_were_handed_out(
    broker: exacta.Broker, new_consumer: NewConsumer, producer: Producer
) -> None:
    """The consumer has fetched more, of both topics."""
    fill(broker, "other", MESSAGES)
    once = exacta.exactly_once(new_consumer("in", "other"), producer)
    with once as transaction:
        messages = some(transaction, 13)
    taken = {topic: max(each.offset() for each in messages if each.topic() == topic) for topic in ("in", "other")}
    assert broker.offsets("copy") == {(topic, 0): last + 1 for topic, last in taken.items()}


def test_an_error_of_the_block_aborts_and_its_messages_come_again(
    broker: exacta.Broker, consumer: Consumer, producer: Producer
) -> None:
    once = exacta.exactly_once(consumer, producer)
    with once as transaction:
        copy(producer, some(transaction, 2))
    with pytest.raises(ZeroDivisionError):
        block(once, producer, fail)
    assert (copied(broker), broker.offsets("copy")) == (numbers(2), {("in", 0): 2})
    assert all(copy_all(once, producer, broker))
    assert copied(broker) == numbers()


def test_the_position_is_back_when_the_block_has_failed(consumer: Consumer, producer: Producer) -> None:
    once = exacta.exactly_once(consumer, producer)
    with pytest.raises(ZeroDivisionError):
        block(once, producer, fail)
    message = consumer.poll(CALL_S)
    assert message is not None
    assert message.offset() == 0


def test_a_block_without_messages(broker: exacta.Broker, new_consumer: NewConsumer, producer: Producer) -> None:
    broker.create_topic("empty", 1)
    with exacta.exactly_once(new_consumer("empty"), producer) as transaction:
        assert transaction.consume(10, 0.1) == []
    assert transaction.committed
    assert broker.offsets("copy") == {}


# --- failures of the commit -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("api", ["AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn"])
@pytest.mark.parametrize("fault", ["drop_answer", "cut_connection"])
def test_a_lost_request_or_answer(
    broker: exacta.Broker, consumer: Consumer, producer: Producer, api: str, fault: str
) -> None:
    once = exacta.exactly_once(consumer, producer)
    with once as transaction:
        copy(producer, some(transaction))
        met = getattr(broker.faults, fault)(api)
    assert met.happened
    copy_all(once, producer, broker)
    assert (copied(broker), broker.offsets("copy")) == (numbers(), {("in", 0): MESSAGES})


@pytest.mark.parametrize(
    ("api", "error"),
    [
        ("TxnOffsetCommit", "ILLEGAL_GENERATION"),
        ("TxnOffsetCommit", "UNKNOWN_MEMBER_ID"),
        ("EndTxn", "TRANSACTION_ABORTABLE"),
    ],
)
def test_what_a_repeat_mends_is_not_raised(
    broker: exacta.Broker,
    consumer: Consumer,
    producer: Producer,
    api: str,
    error: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "exacta.transform.confluent")
    once = exacta.exactly_once(consumer, producer)
    with once as transaction:
        copy(producer, some(transaction))
        broker.faults.refuse(api, error=error)
    assert not transaction.committed
    assert "its messages come again" in caplog.text
    assert broker.offsets("copy") == {}
    assert all(copy_all(once, producer, broker))
    assert copied(broker) == numbers()


def test_what_no_repeat_mends_is_raised_and_comes_again(
    broker: exacta.Broker, consumer: Consumer, producer: Producer
) -> None:
    once = exacta.exactly_once(consumer, producer)
    broker.faults.refuse("TxnOffsetCommit", error="GROUP_AUTHORIZATION_FAILED")
    with pytest.raises(KafkaException) as raised:
        block(once, producer)
    assert raised.value.args[0].code() == KafkaError.GROUP_AUTHORIZATION_FAILED
    copy_all(once, producer, broker)
    assert copied(broker) == numbers()


def test_a_record_that_the_broker_refuses_is_not_left_out(
    broker: exacta.Broker, consumer: Consumer, producer: Producer
) -> None:
    once = exacta.exactly_once(consumer, producer)
    broker.faults.refuse("Produce", error="TOPIC_AUTHORIZATION_FAILED")
    with pytest.raises(KafkaException):
        block(once, producer)
    assert (copied(broker), broker.offsets("copy")) == ([], {})

    def goes_on() -> bool:
        try:
            copy_all(once, producer, broker)
        except KafkaException as error:  # librdkafka refuses by itself until it has asked for the topic again
            if error.args[0].code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise
            return False
        return True

    wait_until(goes_on, CALL_S)
    assert copied(broker) == numbers()


def test_a_fenced_producer_raises_the_clients_own_error(
    broker: exacta.Broker, consumer: Consumer, producer: Producer
) -> None:
    once = exacta.exactly_once(consumer, producer)
    with pytest.raises(KafkaException) as raised:
        block(once, producer, flushed(producer, lambda: broker.faults.fence("copy-1")))
    assert raised.value.args[0].fatal()
    assert (copied(broker), broker.offsets("copy")) == ([], {})
    with pytest.raises(KafkaException):
        block(once, producer)


def test_an_error_of_the_block_is_raised_though_the_producer_is_fenced(
    broker: exacta.Broker, consumer: Consumer, producer: Producer
) -> None:
    once = exacta.exactly_once(consumer, producer)
    with pytest.raises(ZeroDivisionError) as raised:
        block(once, producer, flushed(producer, lambda: broker.faults.fence("copy-1"), fail))
    assert "could not be aborted" in raised.value.__notes__[0]


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("where", ["before the messages", "in the block", "before the commit's answer"])
def test_a_restart_of_the_broker(
    broker: exacta.Broker, consumer: Consumer, producer: Producer, clean: bool, where: str
) -> None:
    once = exacta.exactly_once(consumer, producer)
    with once as transaction:
        copy(producer, some(transaction, 2))
    with once as transaction:
        if where == "before the messages":
            broker.restart(clean=clean)
        copy(producer, some(transaction))
        if where == "in the block":
            broker.restart(clean=clean)
        if where == "before the commit's answer":
            broker.faults.drop_answer("EndTxn", then=lambda: broker.restart(clean=clean))
    copy_all(once, producer, broker)
    assert (copied(broker), broker.offsets("copy")) == (numbers(), {("in", 0): MESSAGES})


def test_a_transaction_that_took_too_long(broker: exacta.Broker, consumer: Consumer, producer: Producer) -> None:
    once = exacta.exactly_once(consumer, producer)
    with pytest.raises(KafkaException):
        block(once, producer, flushed(producer, lambda: broker.faults.expire_transaction("copy-1")))
    assert (copied(broker), broker.offsets("copy")) == ([], {})


# --- how it is used ---------------------------------------------------------------------------------------------------


def test_a_block_in_a_block(consumer: Consumer, producer: Producer) -> None:
    once = exacta.exactly_once(consumer, producer)
    with once, pytest.raises(RuntimeError, match="cannot stand in another"), once:
        pass


def test_consuming_after_the_block(consumer: Consumer, producer: Producer) -> None:
    with exacta.exactly_once(consumer, producer) as transaction:
        pass
    with pytest.raises(RuntimeError, match="inside of its block"):
        transaction.consume(1, 0.1)


def test_a_consumer_that_is_assigned_by_hand_is_refused(
    broker: exacta.Broker, new_consumer: NewConsumer, producer: Producer
) -> None:
    """No generation protects its partitions."""
    consumer = new_consumer()
    consumer.unsubscribe()
    consumer.assign([TopicPartition("in", 0, 0)])
    once = exacta.exactly_once(consumer, producer)
    with pytest.raises(RuntimeError, match="no member of a group"):
        block(once, producer)


def test_an_error_among_the_messages_is_raised_after_them(
    broker: exacta.Broker, new_consumer: NewConsumer, producer: Producer
) -> None:
    """Otherwise its text would be taken for a message's value."""
    once = exacta.exactly_once(new_consumer("in", "nowhere", **{"topic.metadata.propagation.max.ms": 0}), producer)
    found: list[Any] = []

    def consume_on() -> None:
        with once as transaction:
            while True:
                found.extend(transaction.consume(3, 0.1))

    with pytest.raises(KafkaException) as raised:
        consume_on()
    assert raised.value.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert all(message.error() is None for message in found)
    copy_all(once, producer, broker)
    assert copied(broker) == numbers()


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (
            lambda consumer, producer: (object(), producer),
            "a consumer of confluent-kafka or aiokafka, not builtins.object",
        ),
        (lambda consumer, producer: (consumer, consumer), "takes a transactional producer of confluent-kafka"),
    ],
)
def test_other_objects_are_refused(
    consumer: Consumer, producer: Producer, make: Callable[[Any, Any], tuple[Any, Any]], told: str
) -> None:
    with pytest.raises(TypeError, match=told):
        exacta.exactly_once(*make(consumer, producer))


def test_no_two_programs_have_one_transactional_id(
    broker: exacta.Broker, consumer: Consumer, new_producer: NewProducer
) -> None:
    first, second = new_producer(), new_producer()
    with pytest.raises(KafkaException):
        block(exacta.exactly_once(consumer, first), first)
    copy_all(exacta.exactly_once(consumer, second), second, broker)
    assert copied(broker) == numbers()
