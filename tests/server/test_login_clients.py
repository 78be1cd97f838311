"""Real clients that log in: users and rules are made by Kafka's requests, and hold for each client and mechanism."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import confluent_kafka
import kafka
import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, TopicAuthorizationFailedError
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from kafka.net.compat import KafkaNetClient

from tests.server.served import SECONDS, Served

pytestmark = pytest.mark.usefixtures("unpaced_logins")

A_GUESS = "a guess"
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    served = Served(tmp_path_factory.mktemp("served") / "data")
    admin = AdminClient({"bootstrap.servers": served.local})
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):  # one at a time, as Kafka wants it
        info = ScramCredentialInfo(mechanism, 4096)
        upsertion = UserScramCredentialUpsertion("alice", info, b"secret", b"some salt of alice")
        for done in admin.alter_user_scram_credentials([upsertion]).values():
            done.result(SECONDS)
    rule = AclBinding(
        ResourceType.TOPIC,
        "alices-",
        ResourcePatternType.PREFIXED,
        "User:alice",
        "*",
        AclOperation.ALL,
        AclPermissionType.ALLOW,
    )
    for done in admin.create_acls([rule]).values():
        done.result(SECONDS)
    yield served
    served.stop()


def by_librdkafka(address: str, mechanism: str, password: str, topic: str) -> str:
    """Write one record; return what came of it."""
    errors: list[str] = []
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": "alice",
            "sasl.password": password,
            "error_cb": lambda error: errors.append(error.name()),
            "message.timeout.ms": 1_000 * SECONDS,
        }
    )
    producer.produce(topic, b"x", on_delivery=lambda error, _: errors.append(error.name() if error else "written"))
    while not errors:
        producer.poll(0.1)
    return errors[0].strip("_").replace("AUTHENTICATION", "refused").replace("TOPIC_AUTHORIZATION_FAILED", "forbidden")


def by_kafka_python(address: str, mechanism: str, password: str, topic: str) -> str:
    opened: list[KafkaNetClient] = []

    def client(**options: Any) -> KafkaNetClient:
        opened.append(KafkaNetClient(**options))
        return opened[-1]

    try:
        producer = kafka.KafkaProducer(
            kafka_client=client,
            bootstrap_servers=address,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=mechanism,
            sasl_plain_username="alice",
            sasl_plain_password=password,
            max_block_ms=SECONDS * 1_000,
            bootstrap_timeout_ms=1_000 * (2 if password == A_GUESS else SECONDS),  # it tries again until then
        )
    except kafka.errors.KafkaError:
        opened[0].close()  # which a producer that cannot be made leaves open, with its sockets
        return "refused"
    try:
        producer.send(topic, b"x").get(SECONDS)
    except kafka.errors.TopicAuthorizationFailedError:
        return "forbidden"
    finally:
        producer.close(0)
    return "written"


def by_aiokafka(address: str, mechanism: str, password: str, topic: str) -> str:
    async def run() -> str:
        producer = AIOKafkaProducer(
            bootstrap_servers=address,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=mechanism,
            sasl_plain_username="alice",
            sasl_plain_password=password,
        )
        try:
            await producer.start()
        except KafkaError:
            await producer.stop()
            return "refused"
        try:
            await producer.send_and_wait(topic, b"x")
        except TopicAuthorizationFailedError:
            return "forbidden"
        finally:
            await producer.stop()
        return "written"

    return asyncio.run(asyncio.wait_for(run(), SECONDS))


CLIENTS = [by_librdkafka, by_kafka_python, by_aiokafka]
Client = Callable[[str, str, str, str], str]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_user_may_do_what_the_rules_say_and_no_more(served: Served, client: Client, mechanism: str) -> None:
    assert client(served.secured, mechanism, "secret", f"alices-{client.__name__}") == "written"
    assert client(served.secured, mechanism, "secret", "somebody-elses") == "forbidden"


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_another_password_is_refused(
    served: Served, client: Client, mechanism: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert client(served.secured, mechanism, A_GUESS, "alices-t") == "refused"
    assert f"the login of alice by {mechanism}" in caplog.text, "kafka-python itself tells only of a time-out"
