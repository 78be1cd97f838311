"""A broker with access rules, furnished as docs/how-to/permissions.md tells, and `alice`, who has no right yet.

By its first door everybody may do everything; by the other one users log in.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import exacta
from exacta.client.access_rules import AccessRule, Wanted, add_rules, remove_rules
from exacta.client.group_offsets import commit_offsets
from exacta.client.producer import IdempotentProducer
from exacta.client.quotas import alter_quotas
from exacta.client.security import Cluster, Sasl, Security
from exacta.client.topics import create_topic
from exacta.client.transactions import TopicPartition, init_producer_id, new_producer
from exacta.client.users import set_password
from exacta.config.security import STANDARD_AUTHORIZER
from exacta.core.commands import Command, Subscribe
from exacta.core.commands.subscriptions import EARLIEST
from exacta.core.values.subscriptions import SubscriptionType
from exacta.front.doors import Door, Endpoint
from tests.client.appending import append

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


class Place(exacta.Broker):
    """The broker."""

    def __init__(self, folder: Path) -> None:
        super().__init__(**OPTIONS)
        self._doors = [*self._doors, Door(front="kafka", name="LOGIN", endpoint=Endpoint("127.0.0.1", 0), login=True)]
        self.folder = folder

    @property
    def address(self) -> str:
        """Where the user logs in."""
        return str(self._doors[1].endpoint)

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

    @property
    def cluster(self) -> Cluster:
        """The cluster as the user's own client knows it."""
        return Cluster(
            bootstrap=self.address, security=Security(sasl=Sasl(mechanism=MECHANISM, username=USER, password=PASSWORD))
        )

    def allow(self, rights: Iterable[Right]) -> None:
        """Let the user have these rights, and no others."""
        with self.client() as client:
            remove_rules(client, Wanted(principal=PRINCIPAL))
            if rules := [each.rule() for each in rights]:
                add_rules(client, rules)

    def do(self, command: Command) -> None:
        """Let the log do something that no client of Kafka asks for."""
        done = threading.Event()
        self.in_engine(lambda log: log.submit([command], lambda answers: done.set()))
        assert done.wait(SECONDS)


@contextmanager
def furnished(folder: Path) -> Iterator[Place]:
    """Yield the place: topics with records, a group with a position, a subscription, an open transaction."""
    place = Place(folder)
    with place, place.client() as client:
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
        place.do(
            Subscribe(
                topic="orders",
                partition=0,
                subscription="shop",
                subscription_type=SubscriptionType.SHARED,
                begin=EARLIEST,
            )
        )
        yield place


def refusal(task: Callable[[Place], object], place: Place) -> Exception:
    """Return what a task raises that lacks a right."""
    try:
        task(place)
    except Exception as error:  # noqa: BLE001  # each client has errors of its own
        return error
    raise AssertionError("it was done without the right")
