"""Certificates of clients: whose principal they give, whom the broker refuses, and the options that decide it."""

import datetime
import logging
import socket
import ssl
from pathlib import Path
from typing import Any

import confluent_kafka
import pulsar
import pytest
import trustme

import exacta
from exacta.config.security import STANDARD_AUTHORIZER
from exacta.ports.authorizer import ANONYMOUS, Principal
from exacta.web.requests import Peer
from tests.pulsar.wire import client
from tests.server.test_server import Process
from tests.server.tls_clients import ANSWER_SECONDS, at, is_answered, port_of, principals, told


def test_a_certificate_is_a_login_by_every_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Principal] = []
    make = Peer.__init__

    def noted(self: Peer, request: Any) -> None:
        make(self, request)
        asked.append(self.principal)

    monkeypatch.setattr(Peer, "__init__", noted)
    with exacta.Broker(tls=True, pulsar=True, ssl_client_auth="required") as broker:
        alice = broker.tls_certificate("alice")
        producer = confluent_kafka.Producer(at(broker, ssl_certificate_location=alice, ssl_key_location=alice))
        producer.produce("orders", b"42")
        assert producer.flush(ANSWER_SECONDS) == 0
        assert principals(broker) == {Principal(name="alice")}
        bob = broker.tls_certificate("bob")
        theirs = pulsar.AuthenticationTLS(bob, bob)
        with client(broker.pulsar_tls_url, tls_trust_certs_file_path=broker.tls_ca, authentication=theirs) as opened:
            opened.create_producer("t").send(b"x")
            assert Principal(name="bob") in principals(broker)
        context = ssl.create_default_context(cafile=broker.tls_ca)
        context.load_cert_chain(broker.tls_certificate("carol"))
        host, _, port = broker.web_tls_url.removeprefix("https://").rpartition(":")
        with socket.create_connection((host, int(port)), ANSWER_SECONDS) as plain:
            secured = context.wrap_socket(plain, server_hostname="localhost")
            path = b"/admin/v2/persistent/public/default/t/partitions"
            secured.sendall(b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path)
            assert secured.recv(100).startswith(b"HTTP/1.1 200 ")
            assert asked == [Principal(name="carol")]
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


def test_without_any_one_of_its_options_a_closed_door_stays_closed(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "server.pem"))
    lines = [
        "listeners=OUT://0.0.0.0:0",
        "listener.security.protocol.map=OUT:SSL",
        f"ssl.keystore.location={tmp_path}/server.pem",
        f"ssl.truststore.location={tmp_path}/ca.pem",
        "ssl.client.auth=required",
        "ssl.principal.mapping.rules=RULE:^CN=([^,]+).*$/$1/",
        "ssl.enabled.protocols=TLSv1.3",
    ]
    file = tmp_path / "server.properties"
    for left_out in (None, *lines):
        file.write_text("\n".join(each for each in lines if each is not left_out))
        server = Process(tmp_path / "data", "--config", str(file), listen=None)
        try:
            if server.process.stdout is not None and left_out in (None, lines[0], *lines[5:]):
                if left_out == lines[0]:  # then it listens on this machine only
                    assert server.address[0] == "127.0.0.1"
                    continue
                context = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
                assert not is_answered(server.address[1], context)
                authority.issue_cert(common_name="alice").configure_cert(context)
                assert is_answered(server.address[1], context)
            else:
                code, errors = server.end()
                assert code in (1, 2)
                assert errors.startswith("exacta: ")
        finally:
            server.clean_up()


def test_the_principal_of_a_certificate_is_who_access_rules_ask_about() -> None:
    rules = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:alice;User:exacta-testing"}
    with exacta.Broker(tls=True, pulsar=True, ssl_client_auth="required", config=rules) as broker:
        for name, refused in (("alice", None), ("bob", confluent_kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED)):
            certificate = broker.tls_certificate(name)
            options = at(broker, ssl_certificate_location=certificate, ssl_key_location=certificate)
            outcomes: list[Any] = []
            producer = confluent_kafka.Producer(options)
            producer.produce("orders", b"42", on_delivery=lambda error, _, told=outcomes: told.append(error))
            assert producer.flush(ANSWER_SECONDS) == 0
            [error] = outcomes
            assert (error and error.code()) == refused
            context = ssl.create_default_context(cafile=broker.tls_ca)
            context.load_cert_chain(certificate)
            status = b"200" if refused is None else b"403"
            assert http_status(broker, context, "/admin/v2/persistent/public/default/orders/partitions") == status
        assert [each.value for each in broker.records("orders")] == [b"42"]


def http_status(broker: exacta.Broker, context: ssl.SSLContext, path: str) -> bytes:
    port = int(broker.web_tls_url.rpartition(":")[2])
    with (
        socket.create_connection(("127.0.0.1", port), ANSWER_SECONDS) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secured,
    ):
        secured.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        return secured.recv(100).split(b" ")[1]
