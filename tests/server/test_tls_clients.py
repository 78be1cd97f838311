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
import pytest
import trustme
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.helpers import create_ssl_context

import exacta
from exacta.server.tls import LOOK_SECONDS
from tests.pulsar.wire import client
from tests.server.tls_clients import ANSWER_SECONDS, API_VERSIONS, at, is_answered, told

ECHO = b"x" * 300_000
"""It takes many of TLS's records."""


@pytest.fixture(scope="module")
def broker() -> Iterator[exacta.Broker]:
    with exacta.Broker(tls=True, pulsar=True) as broker:
        yield broker


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
    with client(broker.pulsar_tls_url, tls_trust_certs_file_path=broker.tls_ca, tls_validate_hostname=True) as opened:
        consumer = opened.subscribe(topic, "s")
        opened.create_producer(topic).send(ECHO)
        found: bytes = consumer.receive(ANSWER_SECONDS * 1000).data()
    return found


@pytest.mark.parametrize("echoed", [by_librdkafka, by_kafka_python, by_aiokafka, by_pulsar])
def test_real_clients_produce_and_consume_by_tls(
    broker: exacta.Broker, echoed: Callable[[exacta.Broker, str], bytes | None]
) -> None:
    assert echoed(broker, echoed.__name__) == ECHO
    [record] = broker.records(echoed.__name__) if echoed is not by_pulsar else [None]
    assert record is None or record.value == ECHO


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
