"""Real clients that log in: users and rules are made by Kafka's requests, and hold for each client and mechanism."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
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

from exacta.config.options import configure
from exacta.config.security import STANDARD_AUTHORIZER
from exacta.front.doors import Door, Endpoint
from exacta.server.event_loop import new_event_loop
from exacta.server.server import Server

SECONDS = 20
LOCAL = Endpoint("127.0.0.1", 0)
OPTIONS = {
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "super.users": "User:ANONYMOUS",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512,PLAIN",
    "connection.failed.authentication.delay.ms": 1,
}
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN")


class Served:
    """A server on a thread of its own, with a door for everybody and one that asks for a login."""

    def __init__(self, data: Path, options: Mapping[str, object] = OPTIONS) -> None:
        self._loop = new_event_loop()
        doors = [
            Door(front="kafka", name="LOCAL", endpoint=LOCAL),
            Door(front="kafka", name="SASL_PLAINTEXT", endpoint=LOCAL, login=True),
        ]
        self._server = Server(self._loop, configure(options), data, doors)
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._run(self._start())
        self.local, self.secured = (str(each.endpoint) for each in self._server.reception.doors)

    async def _start(self) -> None:
        self._server.open()
        await self._server.start()

    def _run(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(SECONDS)

    def stop(self) -> None:
        """Stop, and wait until it has stopped."""
        self._run(self._server.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


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
    try:
        producer = kafka.KafkaProducer(
            bootstrap_servers=address,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=mechanism,
            sasl_plain_username="alice",
            sasl_plain_password=password,
            max_block_ms=SECONDS * 1_000,
        )
    except kafka.errors.KafkaError:
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


@pytest.mark.parametrize("client", [by_librdkafka, by_aiokafka])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_another_password_is_refused(served: Served, client: Client, mechanism: str) -> None:
    assert client(served.secured, mechanism, "a guess", "alices-t") == "refused"
