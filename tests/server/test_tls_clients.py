"""Real clients at doors with TLS: what passes, who is refused on either side, and what the operator is told."""

import asyncio
import datetime
import logging
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
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.helpers import create_ssl_context

import exacta
from exacta.ports.authorizer import ANONYMOUS, Principal
from exacta.server.tls import LOOK_SECONDS

ANSWER_SECONDS = 20
ECHO = b"x" * 300_000
"""It takes many of TLS's records."""


@pytest.fixture(scope="module")
def broker() -> Iterator[exacta.Broker]:
    with exacta.Broker(tls=True, pulsar=True) as broker:
        yield broker


def at(broker: exacta.Broker, **more: Any) -> dict[str, Any]:
    """Return the options of librdkafka."""
    options = {
        "bootstrap.servers": broker.bootstrap_servers,
        "security.protocol": "SSL",
        "ssl.ca.location": broker.tls_ca,
    }
    return options | {name.replace("_", "."): value for name, value in more.items()}


def by_librdkafka(broker: exacta.Broker, topic: str) -> bytes | None:
    producer = confluent_kafka.Producer(at(broker))
    producer.produce(topic, ECHO)
    assert producer.flush(ANSWER_SECONDS) == 0
    consumer = confluent_kafka.Consumer(at(broker, group_id=topic, auto_offset_reset="earliest"))
    consumer.subscribe([topic])
    [message] = consumer.consume(1, ANSWER_SECONDS)
    consumer.close()
    return message.value()


def by_kafka_python(broker: exacta.Broker, topic: str) -> bytes | None:
    options = {
        "bootstrap_servers": broker.bootstrap_servers,
        "security_protocol": "SSL",
        "ssl_cafile": broker.tls_ca,
    }
    producer = kafka.KafkaProducer(**options)
    producer.send(topic, ECHO).get(ANSWER_SECONDS)
    producer.close()
    consumer = kafka.KafkaConsumer(
        topic, group_id=topic, auto_offset_reset="earliest", consumer_timeout_ms=ANSWER_SECONDS * 1000, **options
    )
    record = next(iter(consumer))
    consumer.close()
    return record.value


def by_aiokafka(broker: exacta.Broker, topic: str) -> bytes | None:
    async def run() -> bytes | None:
        options = {
            "bootstrap_servers": broker.bootstrap_servers,
            "security_protocol": "SSL",
            "ssl_context": create_ssl_context(cafile=broker.tls_ca),
        }
        async with AIOKafkaProducer(**options) as producer:
            await producer.send_and_wait(topic, ECHO)
        async with AIOKafkaConsumer(topic, group_id=topic, auto_offset_reset="earliest", **options) as consumer:
            return (await consumer.getone()).value

    return asyncio.run(asyncio.wait_for(run(), ANSWER_SECONDS))


def by_pulsar(broker: exacta.Broker, topic: str) -> bytes | None:
    client = pulsar.Client(
        broker.pulsar_tls_url,
        tls_trust_certs_file_path=broker.tls_ca,
        tls_validate_hostname=True,
        operation_timeout_seconds=ANSWER_SECONDS,
        logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
    )
    consumer = client.subscribe(topic, "s")
    client.create_producer(topic).send(ECHO)
    found: bytes = consumer.receive(ANSWER_SECONDS * 1000).data()
    client.close()
    return found


@pytest.mark.parametrize("echoed", [by_librdkafka, by_kafka_python, by_aiokafka, by_pulsar])
def test_real_clients_produce_and_consume_by_tls(
    broker: exacta.Broker, echoed: Callable[[exacta.Broker, str], bytes | None]
) -> None:
    assert echoed(broker, echoed.__name__) == ECHO
    [record] = broker.records(echoed.__name__) if echoed is not by_pulsar else [None]
    assert record is None or record.value == ECHO


API_VERSIONS = b"\0\0\0\x0a\0\x12\0\0\0\0\0\x07\xff\xff"


def port_of(broker: exacta.Broker) -> int:
    return int(broker.bootstrap_servers.rpartition(":")[2])


def told(caplog: pytest.LogCaptureFixture, words: str) -> str:
    """Wait for a line of the log with these words: the client may see its end before the operator does."""
    deadline = time.monotonic() + ANSWER_SECONDS
    while True:
        for message in caplog.messages:
            if words in message:
                return message
        assert time.monotonic() < deadline, caplog.messages
        time.sleep(0.01)


def is_answered(port: int, context: ssl.SSLContext) -> bool:
    """Return whether a client that speaks TLS gets an answer; else the connection ends, or TLS says why not."""
    with socket.create_connection(("127.0.0.1", port), ANSWER_SECONDS) as plain:
        try:
            with context.wrap_socket(plain, server_hostname="localhost") as secured:
                secured.sendall(API_VERSIONS)
                return secured.recv(8)[4:8] == b"\0\0\0\x07"
        except ssl.SSLCertVerificationError:
            raise
        except OSError:
            return False


# --- clients that refuse us -------------------------------------------------------------------------------------------


def why_librdkafka_fails(options: dict[str, Any]) -> str:
    """Return the errors of a client that cannot connect."""
    errors: list[str] = []
    client = confluent_kafka.Producer(options | {"error_cb": lambda error: errors.append(error.str())})
    deadline = time.monotonic() + ANSWER_SECONDS
    while not errors and time.monotonic() < deadline:
        client.poll(0.1)
    return " ".join(errors)


def why_python_fails(broker: exacta.Broker, ca: str, name: str = "localhost") -> str:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    context = ssl.create_default_context(cafile=ca)
    with (
        socket.create_connection((host, int(port)), ANSWER_SECONDS) as plain,
        pytest.raises(ssl.SSLCertVerificationError) as refused,
    ):
        context.wrap_socket(plain, server_hostname=name)
    return refused.value.verify_message


def test_who_trusts_another_authority_refuses_the_broker(
    broker: exacta.Broker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "exacta.server")
    other = str(tmp_path / "other.pem")
    trustme.CA().cert_pem.write_to_path(other)
    assert "certificate verify failed" in why_librdkafka_fails(at(broker, ssl_ca_location=other))
    told(caplog, " at the door SSL: it does not accept our certificate, or our TLS (")
    assert "unable to get local issuer certificate" in why_python_fails(broker, other)


def test_a_certificate_for_another_host_is_refused(broker: exacta.Broker) -> None:
    assert "localhost.example" in why_python_fails(broker, broker.tls_ca, "localhost.example")


def test_a_certificate_that_has_expired_is_refused_and_a_renewed_one_is_taken_without_a_restart(tmp_path: Path) -> None:
    authority, keystore, ca = trustme.CA(), tmp_path / "server.pem", str(tmp_path / "ca.pem")
    authority.cert_pem.write_to_path(ca)
    yesterday = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
    old = authority.issue_cert(
        "localhost", "127.0.0.1", not_before=yesterday - datetime.timedelta(days=1), not_after=yesterday
    )
    old.private_key_and_cert_chain_pem.write_to_path(str(keystore))
    with exacta.Broker(tls=True, config={"ssl.keystore.location": str(keystore)}) as broker:
        assert why_python_fails(broker, ca) == "certificate has expired"
        host, _, port = broker.bootstrap_servers.rpartition(":")
        trusting = ssl.create_default_context(cafile=ca)
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        held = trusting.wrap_socket(socket.create_connection((host, int(port)), ANSWER_SECONDS))
        renewed = authority.issue_cert("localhost", "127.0.0.1")
        renewed.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "new.pem"))
        (tmp_path / "new.pem").replace(keystore)
        deadline = time.monotonic() + LOOK_SECONDS + ANSWER_SECONDS
        while True:  # files are looked at once a second at most
            try:
                assert is_answered(int(port), ssl.create_default_context(cafile=ca))
                break
            except ssl.SSLCertVerificationError:
                assert time.monotonic() < deadline
        held.sendall(API_VERSIONS)  # ApiVersions over the connection of before
        assert held.recv(8)[4:8] == b"\0\0\0\x07"
        held.close()


# --- clients that we refuse -------------------------------------------------------------------------------------------


def test_a_plain_client_at_a_door_with_tls_is_closed_with_one_line(
    broker: exacta.Broker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "exacta.server")
    host, _, port = broker.bootstrap_servers.rpartition(":")
    with socket.create_connection((host, int(port)), ANSWER_SECONDS) as plain:
        plain.sendall(API_VERSIONS)
        address = plain.getsockname()
        assert plain.recv(100) in (b"", b"\x15\x03\x01\x00\x02\x02\x46")  # nothing, or TLS's own word for it
    assert told(caplog, "no TLS with") == (
        f"no TLS with 127.0.0.1:{address[1]} at the door SSL: it does not speak TLS, and this door speaks nothing else "
        "(Kafka clients: security.protocol=SSL)"
    )
    assert why_librdkafka_fails({"bootstrap.servers": broker.bootstrap_servers}) != ""


def test_a_client_with_tls_at_a_plain_door_is_closed_with_one_line(caplog: pytest.LogCaptureFixture) -> None:
    with exacta.Broker(pulsar=True) as broker:
        for url, logger, words in (
            (broker.bootstrap_servers, "exacta.kafka", "a TLS handshake came to the Kafka port, which speaks no TLS"),
            (broker.pulsar_url, "exacta.pulsar", "a TLS handshake came to a door for Pulsar's clients that speaks no"),
            (broker.web_url, "exacta.web", "a TLS handshake came to a door for HTTP, which speaks no TLS"),
        ):
            caplog.clear()
            port = int(url.rpartition(":")[2])
            context = ssl.create_default_context()
            with (
                socket.create_connection(("127.0.0.1", port), ANSWER_SECONDS) as plain,
                pytest.raises(OSError, match=r"."),
            ):
                context.wrap_socket(plain, server_hostname="localhost")
            told(caplog, words)
            [record] = caplog.records
            assert (record.name, record.levelname) == (logger, "WARNING")


def principals(broker: exacta.Broker) -> set[Principal]:
    assert broker._server is not None
    return {each.principal for each in broker._server._connections}  # type: ignore[attr-defined]


def test_a_certificate_is_a_login_by_every_protocol() -> None:
    with exacta.Broker(tls=True, pulsar=True, ssl_client_auth="required") as broker:
        alice = broker.tls_certificate("alice")
        producer = confluent_kafka.Producer(at(broker, ssl_certificate_location=alice, ssl_key_location=alice))
        producer.produce("orders", b"42")
        assert producer.flush(ANSWER_SECONDS) == 0
        assert principals(broker) == {Principal(name="alice")}
        bob = broker.tls_certificate("bob")
        client = pulsar.Client(
            broker.pulsar_tls_url,
            tls_trust_certs_file_path=broker.tls_ca,
            authentication=pulsar.AuthenticationTLS(bob, bob),
            logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
        )
        client.create_producer("t").send(b"x")
        assert Principal(name="bob") in principals(broker)
        client.close()
        context = ssl.create_default_context(cafile=broker.tls_ca)
        context.load_cert_chain(broker.tls_certificate("carol"))
        host, _, port = broker.web_tls_url.removeprefix("https://").rpartition(":")
        with socket.create_connection((host, int(port)), ANSWER_SECONDS) as plain:
            secured = context.wrap_socket(plain, server_hostname="localhost")
            secured.sendall(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert secured.recv(100).startswith(b"HTTP/1.1 200 ")
            assert Principal(name="carol") in principals(broker)
            secured.close()
        [record] = broker.records("orders")  # the kit has a certificate of its own
        assert record.value == b"42"


def test_who_shows_no_certificate_is_nobody_where_it_is_only_asked_for() -> None:
    with exacta.Broker(tls=True, ssl_client_auth="requested") as broker:
        for certificate, principal in ((None, ANONYMOUS), ("dora", Principal(name="dora"))):
            file = certificate and broker.tls_certificate(certificate)
            more = {"ssl_certificate_location": file, "ssl_key_location": file} if file else {}
            producer = confluent_kafka.Producer(at(broker, **more))
            producer.produce("orders", b"42")
            assert producer.flush(ANSWER_SECONDS) == 0
            assert principal in principals(broker)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("none", "it has no certificate, which this door asks for (ssl.client.auth)"),
        ("another authority", "its certificate is not accepted: "),
        ("expired", "its certificate is not accepted: certificate has expired"),
        ("for servers only", "its certificate is not accepted: unsuitable certificate purpose"),
        ("a name that no rule fits", "no rule of ssl.principal.mapping.rules fits the owner of its certificate"),
    ],
)
def test_a_client_without_a_certificate_that_counts_gets_no_answer(
    kind: str, words: str, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level(logging.INFO)
    ours, other = trustme.CA(), trustme.CA()
    ours.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    past = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    made = {
        "none": None,
        "another authority": other.issue_cert(common_name="eve"),
        "expired": ours.issue_cert(common_name="eve", not_before=past, not_after=past + datetime.timedelta(days=1)),
        "for servers only": ours.issue_cert(common_name="eve"),
        "a name that no rule fits": ours.issue_cert(common_name="mallory"),
    }[kind]
    if kind == "for servers only":
        made = _for_servers_only(ours)
    rules = {"ssl.client.auth": "required", "ssl.principal.mapping.rules": "RULE:^CN=(eve).*$/$1/"}
    with exacta.Broker(tls=True, config={**rules, "ssl.truststore.location": str(tmp_path / "ca.pem")}) as broker:
        context = ssl.create_default_context(cafile=broker.tls_ca)
        if made is not None:
            made.configure_cert(context)
        assert not is_answered(port_of(broker), context)
        told(caplog, words)
        assert principals(broker) == set()


def _for_servers_only(authority: trustme.CA) -> trustme.LeafCert:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    key = serialization.load_pem_private_key(authority.private_key_pem.bytes(), None)
    own = authority.issue_cert(common_name="eve")
    now = datetime.datetime.now(datetime.UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "eve")])
    issuer = x509.load_pem_x509_certificate(authority.cert_pem.bytes())
    owners = serialization.load_pem_private_key(own.private_key_pem.bytes(), None)
    made = (
        x509.CertificateBuilder(issuer.subject, subject, owners.public_key(), 7, now, now + datetime.timedelta(days=1))  # type: ignore[arg-type]
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=True)
        .sign(key, hashes.SHA256())  # type: ignore[arg-type]
    )
    return trustme.LeafCert(own.private_key_pem.bytes(), made.public_bytes(serialization.Encoding.PEM), [])


def test_a_resumed_session_is_no_way_around_the_certificate() -> None:
    with exacta.Broker(tls=True, ssl_client_auth="required") as broker:
        context = ssl.create_default_context(cafile=broker.tls_ca)
        context.load_cert_chain(broker.tls_certificate("alice"))
        context.maximum_version = ssl.TLSVersion.TLSv1_2  # its session is there with the handshake
        host, _, port = broker.bootstrap_servers.rpartition(":")
        session = None
        for _ in range(2):
            with socket.create_connection((host, int(port)), ANSWER_SECONDS) as plain:
                secured = context.wrap_socket(plain, server_hostname="localhost", session=session)
                session = secured.session
                assert not secured.session_reused
                assert session is not None
                assert not session.has_ticket
                secured.close()


def test_two_doors_have_certificates_of_their_own_and_options_of_their_own(tmp_path: Path) -> None:
    from tests.server.test_server import Process

    first, second = trustme.CA(), trustme.CA()
    for name, authority in (("in", first), ("out", second)):
        authority.cert_pem.write_to_path(str(tmp_path / f"{name}-ca.pem"))
        issued = authority.issue_cert("localhost")
        issued.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / f"{name}.pem"))
    file = tmp_path / "server.properties"
    file.write_text(
        "listeners=IN://127.0.0.1:0,OUT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0\n"
        "listener.security.protocol.map=IN:SSL,OUT:SSL,PLAINTEXT:PLAINTEXT\n"
        f"ssl.keystore.location={tmp_path}/in.pem\n"
        f"listener.name.out.ssl.keystore.location={tmp_path}/out.pem\n"
        f"listener.name.out.ssl.truststore.location={tmp_path}/out-ca.pem\n"
        "listener.name.out.ssl.client.auth=required\n"
    )
    server = Process(tmp_path / "data", "--config", str(file), listen=None)
    try:
        assert server.process.stdout is not None
        ports = [server.address[1]] + [int(server.process.stdout.readline().rpartition(":")[2]) for _ in range(2)]
        for port, name, certificate, ok in (
            (ports[0], "in", None, True),
            (ports[1], "out", None, False),
            (ports[1], "out", second, True),
        ):
            context = ssl.create_default_context(cafile=str(tmp_path / f"{name}-ca.pem"))
            if certificate is not None:
                certificate.issue_cert(common_name="alice").configure_cert(context)
            assert is_answered(port, context) is ok
    finally:
        server.clean_up()


def test_no_admin_client_is_shown_a_secret_and_none_can_set_a_security_option(tmp_path: Path) -> None:
    from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

    with exacta.Broker(config={"ssl.key.password": "hush-1", "ssl.client.auth": "required"}) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        this = ConfigResource(ConfigResource.Type.BROKER, "0")
        found = admin.describe_configs([this])[this].result(ANSWER_SECONDS)
        secret, shown = found["ssl.key.password"], found["ssl.client.auth"]
        assert (secret.value, secret.is_sensitive, secret.is_read_only) == (None, True, True)
        assert (shown.value, shown.is_sensitive, shown.is_read_only) == ("required", False, True)
        assert "hush-1" not in repr(found)
        entry = ConfigEntry("ssl.client.auth", "none", incremental_operation=AlterConfigOpType.SET)
        change = ConfigResource(ConfigResource.Type.BROKER, "0", incremental_configs=[entry])
        with pytest.raises(confluent_kafka.KafkaException) as refused:
            admin.incremental_alter_configs([change])[change].result(ANSWER_SECONDS)
        assert refused.value.args[0].code() == confluent_kafka.KafkaError.INVALID_CONFIG
