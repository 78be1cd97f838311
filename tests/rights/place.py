"""A broker with access rules, furnished as docs/how-to/permissions.md tells, and `alice`, who has no right yet.

By its first door everybody may do everything; by the other one users log in. With `EXACTA_TEST_SECURE` it is the Apache
Kafka that this names (`python -m benchmarks.kafka --secure`), which is cleared for each test.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka.admin import AdminClient

import exacta
from exacta.client.access_rules import AccessRule, Wanted, add_rules, remove_rules
from exacta.client.group_administration import delete_group, list_groups
from exacta.client.group_offsets import commit_offsets
from exacta.client.producer import IdempotentProducer
from exacta.client.quotas import alter_quotas
from exacta.client.routing import Client
from exacta.client.topics import create_topic
from exacta.client.transactions import TopicPartition, init_producer_id, new_producer
from exacta.client.users import set_password
from exacta.config.security import STANDARD_AUTHORIZER
from exacta.core.commands import Subscribe
from exacta.core.commands.subscriptions import EARLIEST
from exacta.core.values.subscriptions import SubscriptionType
from exacta.front.doors import Door, Endpoint
from tests.client.appending import append
from tests.client.secured import REAL, Access

USER, PASSWORD, MECHANISM = "alice", "a password of the tests", "SCRAM-SHA-256"
PRINCIPAL = f"User:{USER}"
SECONDS = 20
ORDERS = TopicPartition("orders", 0)
OPTIONS: dict[str, Any] = {
    "authorizer_class_name": STANDARD_AUTHORIZER,
    "super_users": "User:ANONYMOUS",
    "transaction_two_phase_commit_enable": True,
    "group_initial_rebalance_delay_ms": 0,
    "group_consumer_heartbeat_interval_ms": 200,
}


class Right(NamedTuple):
    """One operation on one resource, or on all whose names begin so."""

    operation: str
    resource: str
    name: str
    is_prefix: bool = False

    def __str__(self) -> str:
        return f"{self.operation} on {self.resource} {self.name}{'*' * self.is_prefix}"

    def rule(self) -> AccessRule:
        """Return the rule that gives it to the user."""
        pattern = "Prefixed" if self.is_prefix else "Literal"
        return AccessRule(PRINCIPAL, "Allow", self.operation, self.resource, pattern, self.name, "*")


class Place:
    """The broker: where everybody may do everything, and where the user logs in."""

    def __init__(self, folder: Path, bootstrap_servers: str, address: str) -> None:
        self.folder, self.bootstrap_servers, self.address = folder, bootstrap_servers, address

    def client(self) -> Client:
        """Return a client that may do everything."""
        return Client(self.bootstrap_servers)

    @cached_property
    def librdkafka(self) -> dict[str, Any]:
        """The configuration by which librdkafka's clients log in."""
        return {
            "bootstrap.servers": self.address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": MECHANISM,
            "sasl.username": USER,
            "sasl.password": PASSWORD,
        }

    @cached_property
    def python(self) -> dict[str, Any]:
        """The arguments by which kafka-python and aiokafka log in."""
        return {
            "bootstrap_servers": self.address,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": MECHANISM,
            "sasl_plain_username": USER,
            "sasl_plain_password": PASSWORD,
        }

    @cached_property
    def spark(self) -> dict[str, str]:
        """The options by which source and sink log in."""
        login = f'org.apache.kafka.common.security.scram.ScramLoginModule required username="{USER}"'
        return {
            "kafka.bootstrap.servers": self.address,
            "kafka.security.protocol": "SASL_PLAINTEXT",
            "kafka.sasl.mechanism": MECHANISM,
            "kafka.sasl.jaas.config": f'{login} password="{PASSWORD}";',
        }

    @cached_property
    def properties(self) -> str:
        """The file that `--config` takes."""
        file = self.folder / "client.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in self.librdkafka.items()))
        return str(file)

    def allow(self, rights: Iterable[Right]) -> None:
        """Let the user have these rights, and no others."""
        with self.client() as client:
            remove_rules(client, Wanted(principal=PRINCIPAL))
            if rules := [each.rule() for each in rights]:
                add_rules(client, rules)


@contextmanager
def furnished(folder: Path) -> Iterator[Place]:
    """Yield the place: topics with records, a group with a position, a subscription, an open transaction."""
    with _apache_kafka(folder, Path(REAL)) if REAL else _exacta(folder) as place:
        yield place


@contextmanager
def _exacta(folder: Path) -> Iterator[Place]:
    login = Door(front="kafka", name="LOGIN", endpoint=Endpoint("127.0.0.1", 0), login=True)
    broker = exacta.Broker(**OPTIONS)
    broker._doors = [*broker._doors, login]
    with broker:
        place = Place(folder, broker.bootstrap_servers, str(broker._doors[1].endpoint))
        _furnish(place)
        subscribed = threading.Event()
        shop = Subscribe(
            topic="orders",
            partition=0,
            subscription="shop",
            subscription_type=SubscriptionType.SHARED,
            begin=EARLIEST,
        )
        broker.in_engine(lambda log: log.submit([shop], lambda answers: subscribed.set()))
        assert subscribed.wait(SECONDS)
        yield place


@contextmanager
def _apache_kafka(folder: Path, secured: Path) -> Iterator[Place]:
    """Clear and furnish a node of Apache Kafka; the names of the page are its own for the time of a test."""
    access = Access.of(secured)
    place = Place(folder, access.listeners["PLAINTEXT"], access.listeners["SASL_PLAINTEXT"])
    admin = AdminClient({"bootstrap.servers": place.bootstrap_servers})
    with place.client() as client:
        remove_rules(client, Wanted())
        producer = init_producer_id(client, "job-held", transaction_timeout_ms=600_000)  # it ends what is open
        assert producer
        for group in list_groups(client, ""):
            delete_group(client, group)
        if topics := [each for each in client.topic_names() if not each.startswith("__")]:
            for deleted in admin.delete_topics(topics).values():
                deleted.result(SECONDS)
        deadline = time.monotonic() + SECONDS
        while any(not each.startswith("__") for each in client.topic_names()):
            assert time.monotonic() < deadline
            time.sleep(0.01)
    _furnish(place)
    yield place


def _furnish(place: Place) -> None:
    with place.client() as client:
        set_password(client, USER, PASSWORD, MECHANISM)
        set_password(client, "bob", PASSWORD, MECHANISM)
        alter_quotas(client, {"user": "bob"}, {"consumer_byte_rate": 1_000_000.0})
        add_rules(client, [AccessRule("User:bob", "Allow", "Read", "Topic", "Literal", "orders", "*")])
        for topic in ("orders", "copy", "held"):
            create_topic(client, topic, partitions=1, configs={"retention.ms": "604800000"})
        with closing(IdempotentProducer(client, new_producer(client))) as writer:
            for value in (b"apples", b"pears"):
                append(writer, ORDERS, 0, value)
            writer.flush()
        holder = init_producer_id(client, "job-held", transaction_timeout_ms=600_000)
        with closing(IdempotentProducer(client, holder)) as writer:
            append(writer, TopicPartition("held", 0), 0, b"open")
            writer.flush()
        commit_offsets(client, "billing", {ORDERS: 1})


NOT_ON_KAFKA = {
    "subscriptions": "Apache Kafka has none",
    "acknowledges": "Apache Kafka has no such messages",
    "exacta.two_phase": "it needs an Exacta",
    "exacta cluster status": "it needs an Exacta",
    "exacta cluster move": "it needs an Exacta",
    "exacta users": "Apache Kafka 4.4 leaves who may not do it without an answer",
}
"""The words of rows that another broker cannot be tried with, and why."""


def skip_on_kafka(task: str) -> None:
    """Skip a row for which Apache Kafka is the wrong judge."""
    for words, why in NOT_ON_KAFKA.items() if REAL else ():
        if words in task:
            pytest.skip(why)


def refusal(task: Callable[[Place], object], place: Place) -> Exception:
    """Return what a task raises that lacks a right."""
    try:
        task(place)
    except Exception as error:  # noqa: BLE001  # each client has errors of its own
        return error
    raise AssertionError("it was done without the right")
