"""Logins by HTTP: every row of the table of `web/login.py`, over real sockets; then what makes a login hold no more."""

import base64
import logging
import ssl
import time
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

import jwt
import pytest
from msgspec.structs import replace

import exacta
from exacta.config.pulsar_logins import METHODS
from exacta.config.security import STANDARD_AUTHORIZER
from exacta.core.access.first_user import rules_of
from exacta.core.commands import AlterScramKeys, CreateAcls
from exacta.core.values.acl import Operation
from exacta.core.values.scram import ScramAlteration, ScramMechanism
from exacta.protocol.sasl.scram import salted_password
from exacta.security import logins as security_logins
from exacta.security.first_user import FIRST_USER
from exacta.security.scram_keys import kept_key
from tests.docstring_tables import docstring_table

pytestmark = pytest.mark.usefixtures("unpaced_logins")

SERVED = docstring_table("exacta.web.login", "a request shows").column("is served")
SECRET = b"a secret of thirty-two bytes, or more"
OPTIONS: dict[str, Any] = {
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "super.users": "User:ANONYMOUS",  # the Kafka listener of the test kit needs no login
    "authenticationEnabled": True,
    "authenticationProviders": ",".join(METHODS),
    "tokenSecretKey": "data:;base64," + base64.b64encode(SECRET).decode(),
    "connection.failed.authentication.delay.ms": 0,
    "ssl.client.auth": "requested",
}
ALICE, BOB = "alice", "bob"


def do(broker: exacta.Broker, command: Any) -> None:
    """Let the log decide a command; what the next request sees is decided."""
    broker.in_engine(lambda log: log.submit((command,), lambda _: None, None, ""))


def key(user: str, password: str) -> ScramAlteration:
    salt, mechanism = b"salt of sixteen.", ScramMechanism.SCRAM_SHA_256
    salted = salted_password("sha256", password, salt, 4_096)
    return ScramAlteration(user, mechanism, kept_key(mechanism, salt, 4_096, salted))


@pytest.fixture(scope="module")
def broker() -> Iterator[exacta.Broker]:
    with exacta.Broker(pulsar=True, tls=True, config=OPTIONS) as started:
        do(started, AlterScramKeys(alterations=(key(ALICE, "pencil"), key(BOB, "pen:cil"))))
        rights = tuple(replace(rules_of(user)[0], operation=Operation.DESCRIBE) for user in (ALICE, "carol"))
        do(started, CreateAcls(acls=rights))
        yield started


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def bearer(subject: str, **claims: Any) -> str:
    return "Bearer " + jwt.encode({"sub": subject, "exp": int(time.time()) + 600, **claims}, SECRET, "HS256")


def connect(broker: exacta.Broker, certificate: str | None = None) -> HTTPConnection:
    if certificate is None:
        return HTTPConnection(urlsplit(broker.web_url).netloc, timeout=30)
    context = ssl.create_default_context(cafile=broker.tls_ca)
    context.load_cert_chain(broker.tls_certificate(certificate))
    return HTTPSConnection(urlsplit(broker.web_tls_url).netloc, context=context, timeout=30)


def ask(connection: HTTPConnection, *shown: str, path: str = "/metrics") -> HTTPResponse:
    connection.putrequest("GET", path)
    for each in shown:
        connection.putheader("Authorization", each)
    connection.endheaders()
    answer = connection.getresponse()
    answer.read()
    return answer


def status(broker: exacta.Broker, *shown: str, path: str = "/metrics", certificate: str | None = None) -> int:
    connection = connect(broker, certificate)
    try:
        return ask(connection, *shown, path=path).status
    finally:
        connection.close()


REFUSED = {
    "an unknown user": basic("nobody", "pencil"),
    "a wrong password": basic(ALICE, "pencil2"),
    "no password": basic(ALICE, ""),
    "no colon": "Basic " + base64.b64encode(b"alice").decode(),
    "no base64": "Basic pencil!",
    "base64 of no UTF-8": "Basic " + base64.b64encode(b"alice:\xff").decode(),
    "a control character": basic("alice\n", "pencil"),
    "a null character": basic("alice\x00", "pencil"),
    "a name in the password": basic("", "alice:pencil"),
    "the name of the first user": basic(FIRST_USER.name, "pencil"),
    "another scheme": "Negotiate YII=",
    "no scheme": "",
    "a scheme alone": "Basic",
    "no token": "Bearer ",
    "a token of another key": "Bearer " + jwt.encode({"sub": ALICE, "exp": 9e9}, b"x" * 32, "HS256"),
    "an unsigned token": "Bearer " + jwt.encode({"sub": ALICE, "exp": 9e9}, "", "none"),
    "a token that has expired": bearer(ALICE, exp=int(time.time()) - 1),
    "a token without an end": "Bearer " + jwt.encode({"sub": ALICE}, SECRET, "HS256"),
    "two tokens": bearer(ALICE) + ", " + bearer(ALICE),
    "a huge password": basic(ALICE, "x" * 8_000),
}


def test_the_table_is_complete() -> None:
    assert list(SERVED) == [
        "no `Authorization`, by a certificate",
        "no `Authorization`",
        "`Basic` with a user's password",
        "`Bearer` with a token that is taken",
        "anything else",
        "more than one `Authorization`",
    ]


def test_a_certificate_is_a_login(broker: exacta.Broker) -> None:
    assert status(broker, certificate="carol") == 200
    assert status(broker, certificate="mallory") == 403
    assert status(broker, basic(ALICE, "guess"), certificate="carol") == 401


def test_a_request_that_shows_nothing_is_told_how_to_log_in(broker: exacta.Broker) -> None:
    connection = connect(broker)
    for path in ("/metrics", "/admin/v2/clusters", "/status.html", "/no-such-path", "/", "/health/other"):
        answer = ask(connection, path=path)
        assert answer.status == 401
        assert answer.headers.get_all("WWW-Authenticate") == [
            'Basic realm="exacta", charset="UTF-8"',
            'Bearer realm="exacta"',
        ]
    connection.close()


@pytest.mark.parametrize("path", ["/health/live", "/health/ready"])
def test_live_and_ready_answer_who_shows_nothing_without_details(broker: exacta.Broker, path: str) -> None:
    connection = connect(broker)
    connection.request("GET", path)
    answer = connection.getresponse()
    assert (answer.status, answer.read()) == (200, b'{"status":"%s"}' % path.rpartition("/")[2].encode())
    connection.request("GET", "/health/ready", headers={"Authorization": basic(ALICE, "pencil")})
    assert b'"disk"' in connection.getresponse().read()
    connection.close()


def test_a_password_and_a_token_are_logins_and_rights_are_asked_behind_them(broker: exacta.Broker) -> None:
    assert status(broker, basic(ALICE, "pencil")) == 200
    assert status(broker, basic(BOB, "pen:cil")) == 403
    assert status(broker, bearer(ALICE)) == 200
    assert status(broker, bearer(BOB)) == 403
    assert status(broker, basic(ALICE, "pencil").replace("Basic", "bAsIc")) == 200


@pytest.mark.parametrize("shown", REFUSED.values(), ids=REFUSED.keys())
def test_anything_else_is_refused_on_every_path(broker: exacta.Broker, shown: str) -> None:
    connection = connect(broker)
    assert ask(connection, shown).status == 401
    assert ask(connection, shown, path="/health/live").status == 401
    connection.close()


def test_two_logins_are_none(broker: exacta.Broker) -> None:
    good = basic(ALICE, "pencil")
    assert status(broker, good, good) == int(SERVED["more than one `Authorization`"][-3:])
    assert status(broker, good, basic(BOB, "guess")) == 400


def test_a_login_is_of_its_request_alone(broker: exacta.Broker) -> None:
    """The next request of the connection, which shows nothing, is nobody's."""
    connection = connect(broker)
    assert [ask(connection, *each).status for each in ([basic(ALICE, "pencil")], [], [bearer(BOB)], [])] == [
        200,
        401,
        403,
        401,
    ]
    connection.close()


def test_a_password_is_derived_once_and_one_that_is_changed_holds_no_more(
    broker: exacta.Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    derived = []

    def counted(*args: Any) -> bytes:
        derived.append(args[1])
        return salted_password(*args)

    monkeypatch.setattr(security_logins, "salted_password", counted)
    do(broker, AlterScramKeys(alterations=(key("dave", "old"),)))
    connection = connect(broker)
    assert [ask(connection, basic("dave", "old")).status for _ in range(3)] == [403] * 3
    assert derived == ["old"]
    do(broker, AlterScramKeys(alterations=(key("dave", "new"),)))
    assert ask(connection, basic("dave", "old")).status == 401
    assert ask(connection, basic("dave", "new")).status == 403
    do(broker, AlterScramKeys(alterations=(ScramAlteration("dave", ScramMechanism.SCRAM_SHA_256),)))
    assert ask(connection, basic("dave", "new")).status == 401
    connection.close()


def test_each_refusal_is_counted_for_its_address(broker: exacta.Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    failed, backoff = [], front_logins(broker).backoff

    def counted(address: str) -> float:
        failed.append(address)
        return 0.0

    monkeypatch.setattr(backoff, "failed", counted)
    assert (status(broker, basic(ALICE, "guess")), status(broker, basic(ALICE, "pencil"))) == (401, 200)
    assert failed == ["127.0.0.1"]


def front_logins(broker: exacta.Broker) -> Any:
    assert broker._server is not None
    assert broker._server._broker is not None
    return broker._server._broker.logins


def test_the_audit_log_has_a_line_for_a_user_of_a_connection_and_for_each_refusal(
    broker: exacta.Broker, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "exacta.audit"):
        connection = connect(broker)
        for shown in (basic(ALICE, "pencil"), basic(ALICE, "pencil"), bearer(BOB), basic("al\nice", "gu\ress")):
            ask(connection, shown)
        connection.close()
    told = [each.getMessage() for each in caplog.records if each.name == "exacta.audit"]
    assert [line.partition(" from ")[0] for line in told] == [
        "User:alice logged in by basic",
        "User:bob logged in by token",
        "the login of al\\nice by basic",
    ]
    assert all(line.count("at the door WEB") == 1 for line in told)
    assert not any(secret in "".join(told) for secret in ("pencil", "ress", "eyJ"))
