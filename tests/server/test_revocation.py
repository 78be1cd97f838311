"""Revoked means now, for the clients of other people: users, rules, certificates, authorities, keys of tokens."""

import asyncio
import datetime
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import kafka
import pulsar
import pytest
import trustme
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import GroupAuthorizationFailedError, TopicAuthorizationFailedError

import exacta
from exacta.config.security import STANDARD_AUTHORIZER
from exacta.core.commands import AlterScramKeys, CreateAcls, DeleteAcls
from exacta.core.ids import PrincipalName
from exacta.core.values.acl import Acl, AclFilter, Operation, Pattern, ResourceKind
from exacta.core.values.scram import ScramAlteration, ScramMechanism
from exacta.ports.authorizer import Principal
from exacta.protocol.kafka.messages.k17_sasl_handshake import SaslHandshakeRequest
from exacta.protocol.kafka.messages.k18_api_versions import ApiVersionsRequest
from exacta.protocol.kafka.messages.k36_sasl_authenticate import SaslAuthenticateRequest
from exacta.protocol.sasl.scram import ALGORITHMS, salted_password
from exacta.security.scram_keys import kept_key
from exacta.server.server import Server
from tests.kafka.wire import Wire
from tests.pulsar.wire import client
from tests.security.test_tokens import token, write_keys
from tests.server.served import SECONDS, Served
from tests.server.tls_clients import ANSWER_SECONDS, is_answered, port_of, principals
from tests.waiting import wait_until

AT_ONCE_S = 1.0
ALICE, ME = PrincipalName("User:alice"), PrincipalName("User:ANONYMOUS")
RULES: dict[str, Any] = {"authorizer_class_name": STANDARD_AUTHORIZER}


def rule(kind: ResourceKind, name: str, who: PrincipalName = ALICE, *, allows: bool = True) -> Acl:
    return Acl(kind, name, Pattern.LITERAL, who, "*", Operation.ALL, allows)


def submit(server: Server, *commands: Any) -> None:
    """Let commands be decided, as if no request had brought them, and wait until they are durable."""
    done = asyncio.run_coroutine_threadsafe(_submit(server, commands), server._loop)
    done.result(SECONDS)


async def _submit(server: Server, commands: tuple[Any, ...]) -> None:
    durable = asyncio.Event()
    server.engine.submit(commands, lambda answers: durable.set())
    await durable.wait()


def keys(password: str) -> AlterScramKeys:
    mechanism, salt = ScramMechanism.SCRAM_SHA_256, b"salt of alice"
    salted = salted_password(ALGORITHMS[mechanism.sasl_name], password, salt, 4_096)
    return AlterScramKeys(alterations=(ScramAlteration("alice", mechanism, kept_key(mechanism, salt, 4_096, salted)),))


NO_KEYS = AlterScramKeys(alterations=(ScramAlteration("alice", ScramMechanism.SCRAM_SHA_256),))
NO_RULES = DeleteAcls(filters=(AclFilter(principal=ALICE),))


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path / "data")
    acls = (rule(ResourceKind.TOPIC, "t"), rule(ResourceKind.GROUP, "g"))
    submit(served._server, CreateAcls(acls=acls), keys("secret"))
    producer = confluent_kafka.Producer({"bootstrap.servers": served.local})
    producer.produce("t", b"first")
    assert producer.flush(SECONDS) == 0
    yield served
    served.stop()


def members(server: Server) -> int:
    def count(state: Any) -> int:
        groups = (state.volatile.memberships.get("g"), state.volatile.consumer_groups.get("g"))
        return sum(len(each.members) for each in groups if each is not None)

    async def look() -> int:
        return server.engine.advice.look(count)

    return asyncio.run_coroutine_threadsafe(look(), server._loop).result(SECONDS)


def is_there(server: Server, name: str) -> bool:
    return Principal(name=name) in {each.principal for each in server._connections}


def timed(change: Callable[[], None], ended: Callable[[], object], what: str) -> None:
    """Make a change, and see that something ends within a second of it."""
    change()
    began = time.monotonic()
    wait_until(lambda: bool(ended()), SECONDS, what)
    assert time.monotonic() - began < AT_ONCE_S, what


def by_librdkafka(served: Served, protocol: str) -> Callable[[], str]:
    errors: list[str] = []
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": served.secured,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": "alice",
            "sasl.password": "secret",
            "group.id": "g",
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 30_000,
            "socket.timeout.ms": 60_000,
            "error_cb": lambda error: errors.append(error.name()),
        }
    )
    consumer.subscribe(["t"])
    message = consumer.poll(SECONDS)
    assert message is not None
    assert message.error() is None, message.error()

    def goes_on() -> str:
        while not errors or errors[-1] == "_TRANSPORT":
            message = consumer.poll(0.1)
            if message is not None and message.error() is not None:
                errors.append(message.error().name())
        consumer.unsubscribe()
        return errors[-1]

    return goes_on


def by_kafka_python(served: Served) -> Callable[[], str]:
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=served.secured,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="SCRAM-SHA-256",
        sasl_plain_username="alice",
        sasl_plain_password="secret",
        auto_offset_reset="earliest",
        fetch_max_wait_ms=30_000,
        request_timeout_ms=60_000,
    )
    consumer.assign([kafka.TopicPartition("t", 0)])
    assert next(consumer).value == b"first"

    def goes_on() -> str:
        try:
            while True:
                consumer.poll(timeout_ms=1_000)
        except kafka.errors.KafkaError as error:
            return type(error).__name__
        finally:
            consumer.close(autocommit=False)

    return goes_on


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("change", ["the user is removed", "the password is changed"])
def test_a_consumer_of_a_user_that_is_gone_or_has_another_password_ends(
    served: Served, protocol: str, change: str
) -> None:
    goes_on = by_librdkafka(served, protocol)
    assert members(served._server) == 1
    altered = NO_KEYS if change == "the user is removed" else keys("another")
    submit(served._server, altered)
    began = time.monotonic()
    wait_until(lambda: not is_there(served._server, "alice"), SECONDS, "the end of the connections of alice")
    wait_until(lambda: not members(served._server), SECONDS, "the end of the membership of alice")
    assert time.monotonic() - began < AT_ONCE_S
    assert goes_on() in ("_AUTHENTICATION", "_ALL_BROKERS_DOWN")


def test_kafka_pythons_consumer_ends_with_its_rules(served: Served) -> None:
    goes_on = by_kafka_python(served)
    submit(served._server, NO_RULES)
    began = time.monotonic()
    assert goes_on() == "TopicAuthorizationFailedError"
    assert time.monotonic() - began < 5 * AT_ONCE_S


def test_librdkafkas_consumer_ends_with_its_rules(served: Served) -> None:
    goes_on = by_librdkafka(served, "classic")
    timed(lambda: submit(served._server, NO_RULES), lambda: not members(served._server), "the membership of alice")
    assert goes_on() in ("TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED")


def test_aiokafkas_consumer_ends_with_its_rules(served: Served) -> None:
    async def run() -> str:
        consumer = AIOKafkaConsumer(
            "t",
            bootstrap_servers=served.secured,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="SCRAM-SHA-256",
            sasl_plain_username="alice",
            sasl_plain_password="secret",
            group_id="g",
            auto_offset_reset="earliest",
            fetch_max_wait_ms=30_000,
            request_timeout_ms=60_000,
        )
        await consumer.start()
        try:
            assert (await consumer.getone()).value == b"first"
            waiting = asyncio.ensure_future(consumer.getone())
            await asyncio.to_thread(submit, served._server, NO_RULES)
            began = time.monotonic()
            await waiting
        except (TopicAuthorizationFailedError, GroupAuthorizationFailedError) as error:
            assert time.monotonic() - began < 5 * AT_ONCE_S
            return type(error).__name__
        finally:
            await consumer.stop()
        return "nothing"

    assert asyncio.run(asyncio.wait_for(run(), SECONDS)).endswith("AuthorizationFailedError")


# --- Pulsar -----------------------------------------------------------------------------------------------------------


def server_of(broker: exacta.Broker) -> Server:
    assert broker._server is not None
    return broker._server


@pytest.mark.parametrize("gone", ["t", "s"], ids=["of the topic", "of the subscription"])
def test_pulsars_producers_and_consumers_are_closed_when_their_rules_go(gone: str) -> None:
    with exacta.Broker(pulsar=True, super_users="User:admin", **RULES) as broker:
        server = server_of(broker)
        rights = [(ResourceKind.TOPIC, "t"), (ResourceKind.TOPIC, "u"), (ResourceKind.GROUP, "s")]
        submit(server, CreateAcls(acls=tuple(rule(kind, name, ME) for kind, name in rights)))
        with client(broker.pulsar_url) as opened:
            producer, other = opened.create_producer("t"), opened.create_producer("u")
            consumer = opened.subscribe("t", "s")
            producer.send(b"first")
            assert consumer.receive(SECONDS * 1_000).data() == b"first"
            found: list[Any] = [each for each in server._connections if each.front == "pulsar"]
            [connection] = [each for each in found if each.producers]
            submit(server, DeleteAcls(filters=(AclFilter(name=gone),)))
            began = time.monotonic()
            left = 1 if gone == "t" else 2
            wait_until(lambda: len(connection.producers) == left, SECONDS, "the end of the producer")
            wait_until(lambda: not connection.consumers, SECONDS, "the end of the consumer")
            assert time.monotonic() - began < AT_ONCE_S
            submit(server, CreateAcls(acls=(rule(ResourceKind.TOPIC, "t", PrincipalName("User:bob")),)))
            other.send(b"goes on")
            with pytest.raises(pulsar.Timeout):
                consumer.receive(100)


# --- certificates -----------------------------------------------------------------------------------------------------


class Doors:
    """A broker whose clients show certificates, of authorities that a test can take away."""

    def __init__(self, path: Path, *authorities: trustme.CA) -> None:
        self._sockets: list[ssl.SSLSocket] = []
        self._trusted = path / "trusted.pem"
        self.trust(*authorities)
        self.broker = exacta.Broker(
            tls=True, pulsar=True, ssl_client_auth="required", ssl_truststore_location=str(self._trusted)
        )

    def __enter__(self) -> "Doors":
        self.broker.start()
        return self

    def __exit__(self, *exc: object) -> None:
        for each in self._sockets:
            each.close()
        self.broker.close()

    def trust(self, *authorities: trustme.CA) -> None:
        beside = self._trusted.with_suffix(".new")
        beside.write_bytes(b"".join(each.cert_pem.bytes() for each in authorities))
        beside.replace(self._trusted)

    def context(self, issued: trustme.LeafCert) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.broker.tls_ca)
        issued.configure_cert(context)
        return context

    def connect(self, name: str, authority: trustme.CA, port: int | None = None, **more: Any) -> ssl.SSLSocket:
        context = self.context(authority.issue_cert("localhost", common_name=name, **more))
        plain = socket.create_connection(("127.0.0.1", port or port_of(self.broker)), ANSWER_SECONDS)
        secured = context.wrap_socket(plain, server_hostname="localhost")
        self._sockets.append(secured)
        wait_until(lambda: any(name in str(each) for each in principals(self.broker)), ANSWER_SECONDS, name)
        return secured


def is_closed(secured: ssl.SSLSocket) -> bool:
    try:
        return secured.recv(1) == b""
    except OSError:
        return True


def test_clients_of_an_authority_that_is_trusted_no_more_are_closed_by_every_protocol(tmp_path: Path) -> None:
    first, second = trustme.CA(), trustme.CA()
    with Doors(tmp_path, first, second) as doors:
        broker = doors.broker
        ports = [int(each.rpartition(":")[2]) for each in (broker.pulsar_tls_url, broker.web_tls_url)]
        clients = [doors.connect(f"name{port}", first, port) for port in (port_of(broker), *ports)]
        doors.trust(second)
        began = time.monotonic()
        assert all(map(is_closed, clients))
        assert time.monotonic() - began < 2 * AT_ONCE_S  # half a second until the file is looked at
        assert not is_answered(port_of(broker), doors.context(first.issue_cert("localhost", common_name="late")))
        assert is_answered(port_of(broker), doors.context(second.issue_cert("localhost", common_name="other")))


def test_one_more_authority_and_files_that_are_none_close_nobody(tmp_path: Path) -> None:
    first, second = trustme.CA(), trustme.CA()
    with Doors(tmp_path, first) as doors:
        broker = doors.broker
        client = doors.connect("alice", first)
        for content in (b"no certificate", first.cert_pem.bytes() + second.cert_pem.bytes()):
            doors._trusted.write_bytes(content)
            server_of(broker)._loop.call_soon_threadsafe(server_of(broker).read_certificates_again)
        wait_until(
            lambda: is_answered(port_of(broker), doors.context(second.issue_cert("localhost", common_name="bob"))),
            ANSWER_SECONDS,
            "the second authority",
        )
        client.sendall(b"\0\0\0\x0a\0\x12\0\0\0\0\0\x07\xff\xff")
        assert client.recv(8)[4:8] == b"\0\0\0\x07"


def test_a_connection_ends_with_its_certificate(tmp_path: Path) -> None:
    authority = trustme.CA()
    with Doors(tmp_path, authority) as doors:
        ends = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=3)
        client = doors.connect("alice", authority, not_after=ends)
        assert is_closed(client)
        late_s = time.time() - ends.timestamp()
        assert -1.0 <= late_s < AT_ONCE_S  # a certificate knows whole seconds


# --- tokens -----------------------------------------------------------------------------------------------------------


def test_clients_of_a_key_that_is_gone_from_its_file_are_closed(tmp_path: Path) -> None:
    keys_file = tmp_path / "keys.json"
    write_keys(keys_file, "rsa", "ec")
    served = Served(
        tmp_path / "data",
        {
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": keys_file.as_uri(),
            "sasl.oauthbearer.expected.issuer": "https://issuer.example",
            "sasl.oauthbearer.expected.audience": "exacta",
        },
    )
    host, _, port = served.secured.rpartition(":")
    wires = {kind: Wire((host, int(port))) for kind in ("rsa", "ec")}
    for kind, wire in wires.items():
        assert wire.ask(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1).error_code == 0
        message = f"n,,\x01auth=Bearer {token(kind)}\x01\x01".encode()
        assert wire.ask(SaslAuthenticateRequest(auth_bytes=message), 2).error_code == 0
    write_keys(keys_file, "ec")
    began = time.monotonic()
    assert wires["rsa"].is_closed()
    assert time.monotonic() - began < 2 * AT_ONCE_S
    assert wires["ec"].ask(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3).error_code == 0
    for wire in wires.values():
        wire.socket.close()
    served.stop()
