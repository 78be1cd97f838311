"""What the page says of other people's Kafka clients, as functions that raise what the client raises."""

import asyncio
import logging
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from typing import Any

import aiokafka
import aiokafka.admin
import kafka
import kafka.admin
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from tests.rights.place import SECONDS, Place, Right

Task = Callable[[Place], object]
CONFLUENT, KAFKA_PYTHON, AIOKAFKA = "confluent-kafka", "kafka-python", "aiokafka"
QUICK = {
    "topic.metadata.refresh.interval.ms": 100,
    "topic.metadata.propagation.max.ms": 100,
    "retry.backoff.ms": 20,
    "log_level": 0,
}
GROUP = {"group.id": "billing", "enable.auto.commit": False, "auto.offset.reset": "earliest"}
FROM_START = {
    "group_id": "billing",
    "enable_auto_commit": False,
    "auto_offset_reset": "earliest",
    # One that is refused may end without leaving, and the next one waits for its time-out.
    "session_timeout_ms": 6_000,
    "heartbeat_interval_ms": 500,
}
KEYWORDS = {"retry_backoff_ms": 20, "metadata_max_age_ms": 100}


class Refused(Exception):
    """librdkafka said this by a callback."""


def is_refusal(missing: Right, error: BaseException, *more: str) -> bool:
    """Return whether an error is the refusal of a right; each client writes `Topic authorization failed` otherwise."""
    said = re.sub("[^a-z]", "", f"{error!r} {error}".lower())
    return any(f"{kind}authorizationfailed" in said for kind in (missing.resource.lower(), *more))


class Logged(logging.Handler):
    """What kafka-python and aiokafka log of a topic: without a right on it their consumers wait, and raise nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.refusals: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the refusals."""
        if "is not authorized for this client" in (text := record.getMessage()):
            self.refusals.append(text)

    def check(self) -> None:
        """Raise what was logged."""
        if self.refusals:
            raise Refused(f"topic authorization failed, and this was logged: {self.refusals[0]}")


@contextmanager
def logged() -> Iterator[Logged]:
    """Look at what the clients log meanwhile."""
    handler = Logged()
    loggers = [logging.getLogger(f"{name}.cluster") for name in ("kafka", "aiokafka")]
    for each in loggers:
        each.addHandler(handler)
    try:
        yield handler
    finally:
        for each in loggers:
            each.removeHandler(handler)


# --- confluent-kafka --------------------------------------------------------------------------------------------------


def produced(producer: Producer) -> None:
    """Write one record, and wait until it is written; raise what came instead."""
    outcome: list[KafkaError | None] = []
    producer.produce("copy", b"x", on_delivery=lambda error, _: outcome.append(error))
    assert producer.flush(SECONDS) == 0
    if outcome[0] is not None:
        raise KafkaException(outcome[0])


def idempotent(place: Place) -> None:
    fatal: list[str] = []
    settings = place.librdkafka | QUICK | {"enable.idempotence": True, "error_cb": lambda each: fatal.append(str(each))}
    try:
        produced(Producer(settings))
    except KafkaException as error:
        raise Refused(f"{error} {fatal}") from error


def transactional(place: Place) -> None:
    producer = Producer(place.librdkafka | QUICK | {"transactional.id": "job-1"})
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    produced(producer)
    producer.commit_transaction(SECONDS)


def received(consumer: Consumer) -> None:
    """Wait for a record; raise what came instead."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        message = consumer.poll(0.1)
        if message is not None:
            if message.error() is not None:
                raise KafkaException(message.error())
            return
    raise AssertionError("neither a record nor an error")


def in_group(place: Place, **more: Any) -> None:
    with closing(Consumer(place.librdkafka | QUICK | GROUP | more)) as consumer:
        consumer.subscribe(["orders"])
        received(consumer)
        consumer.commit(asynchronous=False)


def of_partitions(place: Place) -> None:
    """Consume on from the group's offset. Without a right on the topic it waits; only a look at the topic says why."""
    with closing(Consumer(place.librdkafka | QUICK | GROUP)) as consumer:
        consumer.assign([TopicPartition("orders", 0)])
        refusal = consumer.list_topics("orders", SECONDS).topics["orders"].error
        if refusal is not None:
            raise KafkaException(refusal)
        received(consumer)


def transformed(place: Place) -> None:
    producer = Producer(place.librdkafka | QUICK | {"transactional.id": "job-1"})
    producer.init_transactions(SECONDS)
    with closing(Consumer(place.librdkafka | QUICK | GROUP)) as consumer:
        consumer.subscribe(["orders"])
        received(consumer)
        producer.begin_transaction()
        produced(producer)
        producer.send_offsets_to_transaction(
            consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), SECONDS
        )
        producer.commit_transaction(SECONDS)


def administer(ask: Callable[[AdminClient], dict[Any, Any]]) -> Task:
    def task(place: Place) -> None:
        admin = AdminClient(place.librdkafka | QUICK)
        [done] = ask(admin).values()
        done.result(SECONDS)

    return task


def new_rule(admin: AdminClient) -> dict[Any, Any]:
    operation, allow = AclOperation.READ, AclPermissionType.ALLOW
    of = (ResourceType.TOPIC, "orders", ResourcePatternType.LITERAL)
    return admin.create_acls([AclBinding(*of, "User:carol", "*", operation, allow)])


def offsets_of_group(place: Place) -> None:
    admin = AdminClient(place.librdkafka | QUICK)
    [done] = admin.list_consumer_group_offsets(
        [ConsumerGroupTopicPartitions("billing", [TopicPartition("orders", 0)])]
    ).values()
    [found] = done.result(SECONDS).topic_partitions
    if found.error is not None:
        raise KafkaException(found.error)


# --- kafka-python -----------------------------------------------------------------------------------------------------


def python_producer(place: Place, **more: Any) -> Any:
    return closing(kafka.KafkaProducer(**place.python, **KEYWORDS, max_block_ms=1_000 * SECONDS, **more))


def python_idempotent(place: Place) -> None:
    with python_producer(place, enable_idempotence=True) as producer:
        producer.send("copy", b"x").get(SECONDS)


def python_transactional(place: Place) -> None:
    with python_producer(place, transactional_id="job-1") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("copy", b"x").get(SECONDS)
        producer.commit_transaction()


def python_received(consumer: Any) -> None:
    """Wait for a record, or for the line in the log that says why none comes."""
    deadline = time.monotonic() + SECONDS
    with logged() as log:
        while not consumer.poll(100):
            log.check()
            assert time.monotonic() < deadline


def python_in_group(place: Place) -> None:
    with closing(kafka.KafkaConsumer("orders", **place.python, **KEYWORDS, **FROM_START)) as consumer:
        python_received(consumer)
        consumer.commit()


def python_without_group(place: Place) -> None:
    with closing(kafka.KafkaConsumer(**place.python, **KEYWORDS)) as consumer:
        partition = kafka.TopicPartition("orders", 0)
        consumer.assign([partition])
        consumer.seek(partition, 0)
        python_received(consumer)


def python_admin(ask: Callable[[Any], object]) -> Task:
    def task(place: Place) -> None:
        with closing(kafka.admin.KafkaAdminClient(**place.python, retry_backoff_ms=20)) as admin:
            found = ask(admin)
            if isinstance(found, dict) and found.get("failed"):
                raise found["failed"][0][1]

    return task


def python_rule(admin: Any) -> object:
    return admin.create_acls(
        [
            kafka.admin.ACL(
                principal="User:carol",
                host="*",
                operation=kafka.admin.ACLOperation.READ,
                permission_type=kafka.admin.ACLPermissionType.ALLOW,
                resource_pattern=kafka.admin.ResourcePattern(kafka.admin.ResourceType.TOPIC, "orders"),
            )
        ]
    )


# --- aiokafka ---------------------------------------------------------------------------------------------------------


def looped(work: Callable[[Place], Any]) -> Task:
    def task(place: Place) -> None:
        asyncio.run(asyncio.wait_for(work(place), SECONDS))

    return task


@asynccontextmanager
async def started(client: Any) -> AsyncIterator[Any]:
    """Start a client, and stop it: also one that does not start, which `async with` leaves as it is."""
    try:
        await client.start()
        yield client
    finally:
        await client.stop()


async def aio_idempotent(place: Place) -> None:
    async with started(aiokafka.AIOKafkaProducer(**place.python, **KEYWORDS, enable_idempotence=True)) as producer:
        await producer.send_and_wait("copy", b"x")


async def aio_transactional(place: Place) -> None:
    client = aiokafka.AIOKafkaProducer(**place.python, **KEYWORDS, transactional_id="job-1")
    async with started(client) as producer, producer.transaction():
        await producer.send_and_wait("copy", b"x")


async def aio_in_group(place: Place) -> None:
    client = aiokafka.AIOKafkaConsumer("orders", **place.python, **KEYWORDS, **FROM_START)
    async with started(client) as consumer:
        await consumer.getone()
        await consumer.commit()


async def aio_without_group(place: Place) -> None:
    with logged() as log:
        async with started(aiokafka.AIOKafkaConsumer(**place.python, **KEYWORDS)) as consumer:
            partition = aiokafka.TopicPartition("orders", 0)
            consumer.assign([partition])
            consumer.seek(partition, 0)
            while not await consumer.getmany(timeout_ms=100):
                log.check()


def aio_admin(ask: Callable[[Any], Any]) -> Task:
    async def work(place: Place) -> None:
        admin = aiokafka.admin.AIOKafkaAdminClient(**place.python, retry_backoff_ms=20)
        await admin.start()
        try:
            raise_errors(await ask(admin))
        finally:
            await admin.close()

    return looped(work)


def raise_errors(found: Any) -> None:
    """Raise the error that an answer of aiokafka's admin holds: it does not do that by itself."""
    for response in found if isinstance(found, list) else [found]:
        for field in ("topic_errors", "topic_error_codes", "resources"):
            for entry in getattr(response, field, ()):
                code = next(each for each in entry if isinstance(each, int))
                if code:
                    raise aiokafka.errors.for_code(code)(str(entry))


TASKS: dict[tuple[str, str], Task] = {
    ("idempotent producer", CONFLUENT): idempotent,
    ("idempotent producer", KAFKA_PYTHON): python_idempotent,
    ("idempotent producer", AIOKAFKA): looped(aio_idempotent),
    ("transactional producer", CONFLUENT): transactional,
    ("transactional producer", KAFKA_PYTHON): python_transactional,
    ("transactional producer", AIOKAFKA): looped(aio_transactional),
    ("consumer in a group", CONFLUENT): in_group,
    ("consumer in a group", KAFKA_PYTHON): python_in_group,
    ("consumer in a group", AIOKAFKA): looped(aio_in_group),
    ("consumer in a group, by KIP-848", CONFLUENT): lambda place: in_group(place, **{"group.protocol": "consumer"}),
    ("consumer of partitions, from a group's offsets", CONFLUENT): of_partitions,
    ("consumer of partitions without a group", KAFKA_PYTHON): python_without_group,
    ("consumer of partitions without a group", AIOKAFKA): looped(aio_without_group),
    ("consume, transform, produce", CONFLUENT): transformed,
    ("admin: create a topic", CONFLUENT): administer(lambda admin: admin.create_topics([NewTopic("invoices", 1, 1)])),
    ("admin: create a topic", KAFKA_PYTHON): python_admin(
        lambda admin: admin.create_topics([kafka.admin.NewTopic("invoices", 1, 1)])
    ),
    ("admin: create a topic", AIOKAFKA): aio_admin(
        lambda admin: admin.create_topics([aiokafka.admin.NewTopic("invoices", 1, 1)])
    ),
    ("admin: delete a topic", CONFLUENT): administer(lambda admin: admin.delete_topics(["orders"])),
    ("admin: delete a topic", KAFKA_PYTHON): python_admin(lambda admin: admin.delete_topics(["orders"])),
    ("admin: delete a topic", AIOKAFKA): aio_admin(lambda admin: admin.delete_topics(["orders"])),
    ("admin: settings of a topic", CONFLUENT): administer(
        lambda admin: admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, "orders")])
    ),
    ("admin: settings of a topic", AIOKAFKA): aio_admin(
        lambda admin: admin.describe_configs(
            [
                aiokafka.admin.config_resource.ConfigResource(
                    aiokafka.admin.config_resource.ConfigResourceType.TOPIC, "orders"
                )
            ]
        )
    ),
    ("admin: offsets of a group", CONFLUENT): offsets_of_group,
    ("admin: make a rule", CONFLUENT): administer(new_rule),
    ("admin: make a rule", KAFKA_PYTHON): python_admin(python_rule),
}
