"""Pulsar's client for Python logs in: by a token, by name and password, by a certificate, with TLS and without."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pulsar
import pytest

import exacta
from tests.pages.blocks import ROOT, blocks_of
from tests.pulsar import wire
from tests.pulsar_clients.brokers import ON_PULSAR
from tests.pulsar_clients.logins import PASSWORD, SECONDS, SECRET, USER, broker_with_logins, token
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.skipif(ON_PULSAR, reason="the broker under test has no logins"),
    pytest.mark.usefixtures("unpaced_logins"),
]


@pytest.fixture(scope="module")
def secured() -> Iterator[exacta.Broker]:
    with broker_with_logins() as broker:
        yield broker


@contextmanager
def client(
    broker: exacta.Broker, authentication: Any = None, *, tls: bool = False, seconds: int = SECONDS
) -> Iterator[pulsar.Client]:
    more = {"tls_trust_certs_file_path": broker.tls_ca, "tls_validate_hostname": True} if tls else {}
    url = broker.pulsar_tls_url if tls else broker.pulsar_url
    with wire.client(url, authentication=authentication, operation_timeout_seconds=seconds, **more) as opened:
        yield opened


def by_certificate(broker: exacta.Broker, user: str = USER) -> Any:
    file = broker.tls_certificate(user)
    return pulsar.AuthenticationTLS(file, file)


@pytest.mark.parametrize(
    ("method", "tls"),
    [("token", False), ("token", True), ("basic", False), ("basic", True), ("certificate", True)],
)
def test_who_logs_in_may_do_what_the_rules_say(secured: exacta.Broker, method: str, tls: bool) -> None:
    authentication = {
        "token": lambda: pulsar.AuthenticationToken(token()),
        "basic": lambda: pulsar.AuthenticationBasic(USER, PASSWORD),
        "certificate": lambda: by_certificate(secured),
    }[method]()
    topic = f"alices-{method}-{tls}"
    with client(secured, authentication, tls=tls) as opened:
        consumer = opened.subscribe(topic, "alices-own")
        opened.create_producer(topic).send(b"x")
        message = consumer.receive(1_000 * SECONDS)
        consumer.acknowledge(message)
        assert message.data() == b"x"
        with pytest.raises(pulsar.AuthorizationError):
            opened.create_producer("bobs")


def test_who_shows_nothing_of_worth_is_refused(secured: exacta.Broker) -> None:
    """The client for C++ takes any refusal for a connection that was lost, and tries on until its time is up."""
    shown = [
        None,
        pulsar.AuthenticationToken("a.b.c"),
        pulsar.AuthenticationToken(token(seconds=-60)),
        pulsar.AuthenticationBasic(USER, "wrong"),
        pulsar.AuthenticationBasic("nobody", PASSWORD),
    ]

    def outcome(authentication: Any) -> str:
        with client(secured, authentication, seconds=1) as opened:
            try:
                opened.create_producer("alices-topic")
            except pulsar.PulsarException as error:
                return type(error).__name__
        return "opened"

    with ThreadPoolExecutor() as threads:
        assert set(threads.map(outcome, shown)) == {"Timeout"}


def test_a_client_goes_on_with_new_tokens() -> None:
    """Each token holds for two seconds, and the client goes on by one connection beyond the end of the third."""
    asked: list[str] = []

    def supply() -> str:
        asked.append(token(seconds=2))
        return asked[-1]

    with broker_with_logins() as broker, client(broker, pulsar.AuthenticationToken(supply)) as opened:
        producer = opened.create_producer("alices-topic")
        assert broker._server is not None
        [connection] = [each for each in broker._server._connections if each.front == "pulsar"]
        wait_until(lambda: len(asked) > 4, SECONDS, "the client is asked for other tokens")
        producer.send(b"x")
        assert connection in broker._server._connections


def test_the_examples_of_the_page(secured: exacta.Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("token.key").write_bytes(SECRET)
    examples = [
        each.text
        for each in blocks_of(ROOT / "docs/how-to/logins.md")
        if (each.section, each.language) == ("Pulsar clients", "python")
    ]
    assert len(examples) == 3
    for text in examples:
        at_home = text.replace("pulsar+ssl://broker.example.org:6651", secured.pulsar_tls_url)
        exec(at_home.replace("/etc/ssl/exacta-ca.pem", secured.tls_ca), {})
