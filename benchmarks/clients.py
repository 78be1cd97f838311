"""The client of every case: librdkafka through confluent-kafka, at its defaults but for what a case is about.

Owns how producers, consumers and topics are made, so that every broker is met by exactly the same client. Logging of
librdkafka is turned down to what is critical: a broker that is stopped while clients still wind down is no news here.
"""

import time
from collections.abc import Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

ADMIN_TIMEOUT_S = 30.0
TRANSACTION_TIMEOUT_S = 30.0
COUNT_STEP_S = 0.2
COUNT_STALL_S = 10.0
LOG_LEVEL_CRITICAL = 2


class ReadingFailedError(Exception):
    """A topic did not hold what the broker had acknowledged."""


class DeliveryFailedError(Exception):
    """A message was not acknowledged."""


def settings(bootstrap: str, **more: Any) -> dict[str, Any]:
    """Return a librdkafka configuration; underscores in the names of further settings stand for dots."""
    named = {name.replace("_", "."): value for name, value in more.items()}
    return {"bootstrap.servers": bootstrap, "log_level": LOG_LEVEL_CRITICAL, **named}


def plain_producer(bootstrap: str, **more: Any) -> Any:
    """Make a producer at librdkafka's defaults, but for further settings: not idempotent."""
    return Producer(settings(bootstrap, **more))


def send_first(bootstrap: str) -> None:
    """Send a message to a broker that has just started, and wait for the answer; raises DeliveryFailedError.

    The producer is made only now, so that what is measured is not its back-off between attempts to connect; a plain
    one, because librdkafka's idempotent producer asks for its id by a timer of half a second on any broker.
    """
    producer = plain_producer(bootstrap)
    errors: list[object] = []
    producer.produce("start", b"first", on_delivery=lambda error, _: errors.append(error))
    producer.flush(TRANSACTION_TIMEOUT_S)
    if errors != [None]:
        reason = errors[0] if errors else f"no answer within {TRANSACTION_TIMEOUT_S:.0f} s"
        raise DeliveryFailedError(f"the first message was not acknowledged: {reason}")


def idempotent_producer(bootstrap: str, transactional_id: str | None = None) -> Any:
    """Make the producer for bulk data: the client's queue is large, so that it never waits for its own limit."""
    large = {"queue_buffering_max_messages": 1_000_000}
    if transactional_id is not None:
        return transactional_producer(bootstrap, transactional_id, **large)
    return Producer(settings(bootstrap, enable_idempotence=True, **large))


def transactional_producer(bootstrap: str, transactional_id: str, **more: Any) -> Any:
    """Make a transactional producer and register its id with the broker.

    Apache Kafka's first may meet a coordinator that is not ready yet, and be told to try again.
    """
    producer = Producer(settings(bootstrap, transactional_id=transactional_id, **more))
    deadline_s = time.monotonic() + TRANSACTION_TIMEOUT_S
    while True:
        try:
            producer.init_transactions(TRANSACTION_TIMEOUT_S)
        except KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > deadline_s:
                raise
        else:
            return producer


def committed_consumer(bootstrap: str, group: str, **more: Any) -> Any:
    """Make a read_committed consumer that commits no offsets by itself."""
    own = {"group_id": group, "isolation_level": "read_committed", "enable_auto_commit": False}
    return Consumer(settings(bootstrap, auto_offset_reset="earliest", **own, **more))


def answers(bootstrap: str) -> bool:
    """Tell whether the broker answers a metadata request now."""
    quick = settings(bootstrap, reconnect_backoff_ms=10, reconnect_backoff_max_ms=50)
    try:
        return bool(AdminClient(quick).list_topics(timeout=2.0).brokers)
    except KafkaException:
        return False


def create_topic(bootstrap: str, topic: str, partitions: int) -> None:
    """Create a topic and wait for it; raises KafkaException."""
    admin = AdminClient(settings(bootstrap))  # held until the answer is there: its end would cancel the request
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(ADMIN_TIMEOUT_S)


def delete_topics(bootstrap: str, topics: Sequence[str]) -> None:
    """Delete topics and wait for it; one that is not there is fine. Raises KafkaException."""
    admin = AdminClient(settings(bootstrap))
    for deleted in admin.delete_topics(list(topics)).values():
        try:
            deleted.result(ADMIN_TIMEOUT_S)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise


def count_committed(bootstrap: str, topic: str, partitions: int, expected: int) -> int:
    """Count the committed records of a topic by reading all partitions to their ends; raises ReadingFailedError.

    An end is waited at until as many as expected have come, for Apache Kafka answers a commit before it has written the
    markers that make the records visible. Fewer than expected are returned once nothing has come for some time.
    """
    consumer = committed_consumer(bootstrap, f"count-{topic}", enable_partition_eof=True)
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
        records = 0
        at_end: set[int] = set()
        heard_s = time.monotonic()
        while len(at_end) < partitions or records < expected:
            # Returns early only with this many messages: the time-out is what the last, smaller batch costs.
            messages = consumer.consume(num_messages=10_000, timeout=COUNT_STEP_S)
            if messages:
                heard_s = time.monotonic()
            elif time.monotonic() - heard_s > COUNT_STALL_S:
                break
            for message in messages:
                error = message.error()
                if error is None:
                    records += 1
                elif error.code() == KafkaError._PARTITION_EOF:
                    at_end.add(message.partition())
                else:
                    raise ReadingFailedError(f"reading {topic}: {error}")
        return records
    finally:
        consumer.close()
