"""Logins of Kafka clients: what may be sent when, how each mechanism goes, and what an attacker tries."""

import logging
import struct
import time
from collections.abc import Iterator
from typing import Any

import pytest

from exacta.kafka.connection import foreign_protocol
from exacta.kafka.handlers import HANDLERS
from exacta.kafka.login import Login, Phase
from exacta.ports.authorizer import Principal
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.codec import encode_request
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from exacta.protocol.kafka.messages.k17_sasl_handshake import SaslHandshakeRequest
from exacta.protocol.kafka.messages.k18_api_versions import ApiVersionsRequest
from exacta.protocol.kafka.messages.k36_sasl_authenticate import SaslAuthenticateRequest
from exacta.protocol.sasl.scram import ALGORITHMS
from exacta.protocol.sasl.scram_client import ScramClient
from exacta.security.backoff import LoginBackoff
from exacta.security.exchange import LoggedIn
from exacta.security.logins import Logins
from tests.kafka.wire import Front, Wire, front
from tests.security.test_logins import PASSWORD_MECHANISMS, PASSWORDS, keys_of

VERSIONS = ApiVersionsRequest(client_software_name="x", client_software_version="1")
METADATA = MetadataRequest(topics=[])
SESSION_MS = 1_500


def quick_logins(session_ms: int = 0) -> Logins:
    """Return logins whose refusals wait for no time that a test would feel."""
    backoff = LoginBackoff(0.001, time.monotonic)
    return Logins(
        PASSWORD_MECHANISMS,
        backoff,
        keys_of=keys_of,
        secret=b"a secret",
        session_ms=session_ms,
        wall_ms=lambda: 0,
    )


@pytest.fixture
def broker() -> Iterator[Front]:
    """A broker whose clients log in."""
    with front(logins=quick_logins) as running:
        yield running


def handshake(wire: Wire, mechanism: str, version: int = 1) -> None:
    response = wire.ask(SaslHandshakeRequest(mechanism=mechanism), version)
    assert (response.error_code, response.mechanisms) == (ErrorCode.NONE, list(PASSWORD_MECHANISMS))


def plain(user: str = "alice", password: str = "secret") -> SaslAuthenticateRequest:
    return SaslAuthenticateRequest(auth_bytes=f"\0{user}\0{password}".encode())


def log_in(
    wire: Wire, mechanism: str = "PLAIN", user: str = "alice", password: str = "secret", version: int = 2
) -> Any:
    """Log in; return the last answer."""
    handshake(wire, mechanism)
    if mechanism == "PLAIN":
        return wire.ask(plain(user, password), version)
    client = ScramClient(ALGORITHMS[mechanism], user, password)
    first = wire.ask(SaslAuthenticateRequest(auth_bytes=client.first()), version)
    assert first.error_code == ErrorCode.NONE
    last = wire.ask(SaslAuthenticateRequest(auth_bytes=client.final(bytes(first.auth_bytes))), version)
    if last.error_code == ErrorCode.NONE:
        client.verify(bytes(last.auth_bytes))
    return last


def is_served(wire: Wire) -> bool:
    return wire.ask(METADATA, 12).cluster_id == "a-cluster"


@pytest.mark.parametrize("mechanism", PASSWORD_MECHANISMS)
@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("asks_for_versions", [False, True])
def test_who_logs_in_is_served_as_this_user(
    broker: Front, wire: Wire, mechanism: str, version: int, asks_for_versions: bool
) -> None:
    if asks_for_versions:
        assert wire.ask(VERSIONS, 3).error_code == ErrorCode.NONE
    for user, password in PASSWORDS.items():
        wire = broker.connect()
        response = log_in(wire, mechanism, user, password, version)
        assert (response.error_code, response.session_lifetime_ms) == (ErrorCode.NONE, 0)
        assert is_served(wire)
        assert wire.ask(VERSIONS, 3).error_code == ErrorCode.NONE
        assert {each.principal.name for each in broker.connections} >= {user}


@pytest.mark.parametrize("mechanism", PASSWORD_MECHANISMS)
@pytest.mark.parametrize(("user", "password"), [("alice", "a guess"), ("nobody", "another guess")])
def test_a_refusal_tells_nothing_and_ends_the_connection(
    wire: Wire, mechanism: str, user: str, password: str, caplog: pytest.LogCaptureFixture
) -> None:
    response = log_in(wire, mechanism, user, password)
    assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert response.error_message == f"Authentication failed: invalid credentials with SASL mechanism {mechanism}"
    assert wire.is_closed()
    [line] = [record.getMessage() for record in caplog.records if record.name == "exacta.audit"]
    assert f"the login of {user} by {mechanism}" in line
    assert password not in line


@pytest.mark.parametrize("version", [0, 1])
def test_a_mechanism_that_is_not_offered(wire: Wire, version: int) -> None:
    response = wire.ask(SaslHandshakeRequest(mechanism="GSSAPI"), version)
    assert response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert response.mechanisms == list(PASSWORD_MECHANISMS)
    assert wire.is_closed()


# --- what may be sent when --------------------------------------------------------------------------------------------


def raw(key: int, version: int = 0, body: bytes = b"") -> bytes:
    """Return a request of any API, whose body is of no account."""
    frame = struct.pack(">hhih", key, version, 7, 1) + b"c" + body
    return struct.pack(">i", len(frame)) + frame


LET_THROUGH = {
    Phase.BEGUN: {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE},
    Phase.VERSIONS_TOLD: {ApiKey.SASL_HANDSHAKE},
    Phase.EXCHANGE: {ApiKey.SASL_AUTHENTICATE},
}
"""The requests of each phase before the login, said once more by hand: the code runs `MAY_SEND`."""


@pytest.mark.parametrize(
    ("phase", "key"), [(phase, key) for phase, known in LET_THROUGH.items() for key in sorted(HANDLERS.keys() - known)]
)
def test_before_the_login_nothing_else_is_read(
    wire: Wire, phase: Phase, key: int, caplog: pytest.LogCaptureFixture
) -> None:
    if phase is not Phase.BEGUN:
        wire.ask(VERSIONS, 3)
    if phase is Phase.EXCHANGE:
        handshake(wire, "SCRAM-SHA-256")
    wire.socket.sendall(raw(key, body=b"\xff" * 100))
    assert wire.is_closed()
    assert f"it sent a request of API {key} where it has to log in" in caplog.text


def test_a_request_of_another_version_before_the_login(wire: Wire) -> None:
    wire.socket.sendall(raw(ApiKey.SASL_HANDSHAKE, version=9))
    assert wire.is_closed()


def test_versions_that_are_not_served_are_told_and_may_be_asked_for_again(wire: Wire) -> None:
    wire.socket.sendall(raw(ApiKey.API_VERSIONS, version=99, body=b"\0"))
    assert struct.unpack(">ih", wire.receive_frame()[:6]) == (7, ErrorCode.UNSUPPORTED_VERSION)
    assert wire.ask(VERSIONS, 3).error_code == ErrorCode.NONE


def test_a_door_without_logins_takes_none() -> None:
    with front() as broker:
        wire = broker.connect()
        assert wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert wire.ask(plain(), 2).error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert is_served(wire)


def test_a_session_without_an_end_is_not_repeated(wire: Wire) -> None:
    log_in(wire)
    assert wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert wire.ask(plain(), 2).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert is_served(wire)


# --- frames around the login ------------------------------------------------------------------------------------------


def frames(*requests: tuple[Any, int]) -> bytes:
    """Return requests in one piece, with correlation ids from 1."""
    return b"".join(
        b"".join(encode_request(request, version, number, "c")) for number, (request, version) in enumerate(requests, 1)
    )


def test_requests_that_are_sent_ahead_are_served_once_the_client_has_logged_in(wire: Wire) -> None:
    sent = ((SaslHandshakeRequest(mechanism="PLAIN"), 1), (plain(), 2), (METADATA, 12))
    wire.socket.sendall(frames(*sent))
    answers = [wire.receive(request, version) for request, version in sent]
    assert [number for number, _ in answers] == [1, 2, 3]
    assert answers[2][1].cluster_id == "a-cluster"


def test_requests_that_are_sent_ahead_of_a_refusal_are_not_served(wire: Wire) -> None:
    sent = ((SaslHandshakeRequest(mechanism="PLAIN"), 1), (plain(password="wrong"), 2), (METADATA, 12))
    wire.socket.sendall(frames(*sent))
    assert wire.receive(*sent[0])[1].error_code == ErrorCode.NONE
    assert wire.receive(*sent[1])[1].error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert wire.is_closed()


def test_a_long_message_before_the_login_is_refused_unread(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    wire.socket.sendall(struct.pack(">i", (64 << 10) + 1))
    assert wire.is_closed()
    assert "above sasl.server.max.receive.size" in caplog.text


def test_after_the_login_requests_may_be_long(wire: Wire) -> None:
    log_in(wire)
    topics = [MetadataRequestTopic(name=f"{number:0200}") for number in range(1_000)]
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    assert len(wire.ask(request, 12).topics) == 1_000


# --- bare tokens, after SaslHandshake v0 ------------------------------------------------------------------------------


def say(wire: Wire, token: bytes) -> bytes:
    """Send a bare token; return the answer."""
    wire.socket.sendall(struct.pack(">i", len(token)) + token)
    return wire.receive_frame()


@pytest.mark.parametrize("mechanism", PASSWORD_MECHANISMS)
def test_old_clients_send_bare_tokens(wire: Wire, mechanism: str) -> None:
    handshake(wire, mechanism, version=0)
    if mechanism == "PLAIN":
        assert say(wire, b"\0alice\0secret") == b""
    else:
        client = ScramClient(ALGORITHMS[mechanism], "alice", "secret")
        client.verify(say(wire, client.final(say(wire, client.first()))))
    assert is_served(wire)


def test_a_bare_token_that_proves_nothing_ends_the_connection(wire: Wire) -> None:
    handshake(wire, "PLAIN", version=0)
    wire.socket.sendall(struct.pack(">i", 3) + b"\0a\0")
    assert wire.is_closed()


def test_a_token_that_looks_like_a_request_is_a_token(wire: Wire) -> None:
    handshake(wire, "PLAIN", version=0)
    wire.socket.sendall(frames((METADATA, 12)))
    assert wire.is_closed()


# --- sessions that end ------------------------------------------------------------------------------------------------


class TestSessions:
    """The table of a login by a clock of its own, and once over the wire."""

    def opened(self, session_ends_s: float | None) -> Login:
        login = Login()
        exchange = quick_logins().begin("PLAIN")
        assert exchange is not None
        login.begin("PLAIN", exchange, 0.0, takes_tokens=False)
        login.open(LoggedIn(principal=Principal(name="alice")), session_ends_s)
        return login

    def test_no_request_is_served_after_the_end_but_the_client_may_log_in_once_more(self) -> None:
        login = self.opened(10.0)
        assert {key: login.refusal(key, 9.9) for key in ApiKey} == dict.fromkeys(ApiKey)
        ended = {key for key in ApiKey if login.refusal(key, 10.0) is not None}
        assert ended == set(ApiKey) - {ApiKey.SASL_HANDSHAKE}

    def test_a_session_without_an_end_goes_on(self) -> None:
        login = self.opened(None)
        assert {key: login.refusal(key, 1e9) for key in ApiKey} == dict.fromkeys(ApiKey)
        assert not login.may_begin(1e9)

    def test_a_login_is_repeated_at_most_each_second(self) -> None:
        login = self.opened(10.0)
        assert not login.may_begin(0.9)
        assert login.may_begin(1.0)

    def test_the_same_user_by_the_same_mechanism_goes_on(self) -> None:
        with front(logins=lambda: quick_logins(SESSION_MS)) as broker:
            wire = broker.connect()
            assert log_in(wire).session_lifetime_ms == SESSION_MS
            self._let_pass(broker, 1.0)
            assert log_in(wire).session_lifetime_ms == SESSION_MS
            assert is_served(wire)

    @pytest.mark.parametrize(
        ("mechanism", "user", "reason"),
        [
            ("PLAIN", "Jürgen,=x", "it logs in once more as another user"),
            ("SCRAM-SHA-256", "alice", "it repeats a login by PLAIN with SCRAM-SHA-256"),
        ],
    )
    def test_another_user_or_mechanism_is_refused(
        self, mechanism: str, user: str, reason: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        with front(logins=lambda: quick_logins(SESSION_MS)) as broker:
            wire = broker.connect()
            log_in(wire)
            self._let_pass(broker, 1.0)
            handshake(wire, mechanism)
            token = plain(user, PASSWORDS[user]).auth_bytes
            if mechanism != "PLAIN":
                token = ScramClient(ALGORITHMS[mechanism], user, PASSWORDS[user]).first()
            response = wire.ask(SaslAuthenticateRequest(auth_bytes=token), 2)
            assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            assert wire.is_closed()
            assert reason in caplog.text

    def test_a_connection_that_outlives_its_session_is_closed(self, caplog: pytest.LogCaptureFixture) -> None:
        with front(logins=lambda: quick_logins(SESSION_MS)) as broker:
            wire = broker.connect()
            log_in(wire)
            self._let_pass(broker, SESSION_MS / 1000)
            wire.send(METADATA, 12)
            assert wire.is_closed()
            assert "its session has ended" in caplog.text

    def test_a_short_bare_token_while_an_answer_is_owed_is_one(self, caplog: pytest.LogCaptureFixture) -> None:
        with front(logins=lambda: quick_logins(SESSION_MS)) as broker:
            wire = broker.connect()
            log_in(wire)
            wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12)
            self._let_pass(broker, 1.0)
            partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000)
            fetch = FetchRequest(
                max_wait_ms=60_000, min_bytes=1, topics=[FetchTopic(topic="t", partitions=[partition])]
            )
            sent = (
                b"".join(encode_request(fetch, 11, 1, "c")),
                b"".join(encode_request(SaslHandshakeRequest(mechanism="PLAIN"), 0, 2, "c")),
            )
            wire.socket.sendall(b"".join(sent) + struct.pack(">i", 1) + b"x")
            assert wire.is_closed()
            assert "it sent something other than two names and a password" in caplog.text
            assert "Traceback" not in caplog.text

    @staticmethod
    def _let_pass(broker: Front, seconds: float) -> None:
        """Move the time at which each login began into the past: nobody waits."""

        def move() -> None:
            for connection in broker.connections:
                login = connection.login
                assert login is not None
                login._last_begun_s -= seconds
                if login._session_ends_s is not None:
                    login._session_ends_s -= seconds

        broker.on_loop(move)


def test_an_exchange_that_has_failed_is_not_taken_up_again() -> None:
    login = Login()
    exchange = quick_logins().begin("PLAIN")
    assert exchange is not None
    login.begin("PLAIN", exchange, 0.0, takes_tokens=False)
    work = next(login.proceed(b"\0alice\0secret"))
    assert callable(work)
    assert login.exchange is None
    with pytest.raises(AssertionError):
        next(login.proceed(b"\0alice\0secret"))


@pytest.fixture(autouse=True)
def _audited(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "exacta.audit")


def test_the_hint_for_a_client_that_speaks_tls_names_the_doors_protocol() -> None:
    for logs_in, protocol in ((False, "PLAINTEXT"), (True, "SASL_PLAINTEXT")):
        told = foreign_protocol(b"\x16\x03\x01\x02", logs_in=logs_in)
        assert told is not None
        assert told.endswith(f"clients set security.protocol={protocol}")
