"""Pulsar's client for Java logs in: by a token, by name and password, by a certificate, with TLS and without."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

import exacta
from tests.pulsar_clients.brokers import ON_PULSAR
from tests.pulsar_clients.java import JavaClient, api, java, outcome, receive, send, texts
from tests.pulsar_clients.logins import PASSWORD, USER, broker_with_logins, token
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(ON_PULSAR, reason="the broker under test has no logins")


@pytest.fixture(scope="module")
def secured() -> Iterator[exacta.Broker]:
    with broker_with_logins() as broker:
        yield broker


def by_token(written: str) -> Any:
    return api("AuthenticationFactory").token(written)


def by_password(user: str, password: str) -> Any:
    found = java("org.apache.pulsar.client.impl.auth.AuthenticationBasic")()
    found.configure(f'{{"userId": "{user}", "password": "{password}"}}')
    return found


def by_certificate(broker: exacta.Broker, folder: Path) -> Any:
    """The client reads the key of RSA alone, in PKCS #8, and from a file of its own."""
    assert broker._authority is not None
    issued = broker._authority._authority.issue_cert("client.invalid", common_name=USER, key_type=trustme.KeyType.RSA)
    key = load_pem_private_key(issued.private_key_pem.bytes(), None)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "key.pem").write_bytes(pem)
    (folder / "certificate.pem").write_bytes(b"".join(each.bytes() for each in issued.cert_chain_pems))
    return api("AuthenticationFactory").TLS(str(folder / "certificate.pem"), str(folder / "key.pem"))


def client(broker: exacta.Broker, authentication: Any = None, *, tls: bool = False, **more: Any) -> JavaClient:
    more |= {} if authentication is None else {"authentication": authentication}
    if tls:
        more |= {"tlsTrustCertsFilePath": broker.tls_ca, "enableTlsHostnameVerification": True}
    return JavaClient(broker.pulsar_tls_url if tls else broker.pulsar_url, **more)


@pytest.mark.parametrize(
    ("method", "tls"),
    [("token", False), ("token", True), ("basic", False), ("basic", True), ("certificate", True)],
)
def test_who_logs_in_may_do_what_the_rules_say(secured: exacta.Broker, method: str, tls: bool, tmp_path: Path) -> None:
    authentication = {
        "token": lambda: by_token(token()),
        "basic": lambda: by_password(USER, PASSWORD),
        "certificate": lambda: by_certificate(secured, tmp_path),
    }[method]()
    opened = client(secured, authentication, tls=tls)
    topic = f"alices-java-{method}-{tls}"
    consumer = opened.consumer(topic, "alices-own")
    producer = opened.producer(topic)
    send(producer, "x")
    transaction = opened.begin()
    send(producer, "y", transaction=transaction)
    assert outcome(transaction.commit()) == "done"
    assert texts(receive(consumer, 2)) == ["x", "y"]
    assert outcome(lambda: opened.producer("bobs")) == "AuthorizationException"
    opened.close()


@pytest.mark.parametrize(
    "make",
    [
        lambda: None,
        lambda: by_token("a.b.c"),
        lambda: by_token(token(seconds=-60)),
        lambda: by_password(USER, "wrong"),
        lambda: by_password("nobody", PASSWORD),
    ],
    ids=["nothing", "no token", "an old token", "a wrong password", "an unknown user"],
)
def test_who_shows_nothing_of_worth_is_refused(secured: exacta.Broker, make: Any) -> None:
    opened = client(secured, make(), enableTransaction=False)  # else it is refused when it is built
    assert outcome(lambda: opened.producer("alices-topic")) == "AuthenticationException"
    opened.close()


def test_a_client_goes_on_with_new_tokens() -> None:
    """Each token holds for two seconds, and the client goes on by one connection beyond the end of the third."""
    import jpype

    asked: list[str] = []

    def supply() -> str:
        asked.append(token(seconds=2))
        return asked[-1]

    with broker_with_logins() as broker:
        opened = client(broker, by_token(jpype.JProxy("java.util.function.Supplier", dict={"get": supply})))
        producer = opened.producer("alices-topic")
        assert broker._server is not None
        [connection] = [each for each in broker._server._connections if each.front == "pulsar"]
        wait_until(lambda: len(asked) > 4, 20, "the client is asked for other tokens")
        send(producer, "x")
        assert connection in broker._server._connections
        opened.close()
