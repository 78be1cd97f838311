"""Attacks on logins of Kafka clients, in virtual time: tokens that end, nonces of others, messages that come twice."""

import logging
from typing import Any

import pytest

from exacta.ports.authorizer import Principal
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from exacta.protocol.kafka.messages.k17_sasl_handshake import SaslHandshakeRequest
from exacta.protocol.kafka.messages.k36_sasl_authenticate import SaslAuthenticateRequest
from exacta.protocol.sasl.scram_client import ScramClient
from exacta.security.backoff import LoginBackoff
from exacta.security.exchange import Exchange, LoggedIn
from exacta.security.logins import MECHANISMS, Logins
from tests.kafka.by_hand import Broker, Client
from tests.security.test_logins import keys_of

NOW_MS = 1_700_000_000_000
TOKEN_MS = 60_000
METADATA = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
REFUSED = ErrorCode.SASL_AUTHENTICATION_FAILED


def tokens() -> Exchange:
    """Take any token of alice; it holds for a minute."""
    yield b""
    return LoggedIn(principal=Principal(name="alice"), expires_ms=NOW_MS + TOKEN_MS)


@pytest.fixture
def broker() -> Broker:
    backoff = LoginBackoff(0.001, lambda: 0.0)
    return Broker(
        logins=Logins(MECHANISMS, backoff, keys_of=keys_of, secret=b"a secret", wall_ms=lambda: NOW_MS, bearer=tokens)
    )


@pytest.fixture
def client(broker: Broker) -> Client:
    return broker.connect()


def handshake(broker: Broker, client: Client, mechanism: str) -> None:
    assert broker.ask(client, SaslHandshakeRequest(mechanism=mechanism), 1).error_code == ErrorCode.NONE


def say(broker: Broker, client: Client, message: bytes) -> Any:
    client.send(SaslAuthenticateRequest(auth_bytes=message), 2)
    broker.settle()
    broker.pass_time(1_000)
    [(_, answer)] = client.answers()
    return answer


def test_a_connection_ends_with_its_token_and_so_does_what_it_waits_for(
    broker: Broker, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    handshake(broker, client, "OAUTHBEARER")
    assert say(broker, client, b"a token").session_lifetime_ms == TOKEN_MS
    broker.ask(client, METADATA, 12)
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000)
    client.send(
        FetchRequest(max_wait_ms=600_000, min_bytes=1, topics=[FetchTopic(topic="t", partitions=[partition])]), 11
    )
    broker.settle()
    broker.pass_time(TOKEN_MS - 2_000)
    assert client.connection in broker.connections
    with caplog.at_level(logging.WARNING):
        broker.pass_time(1_001)
    assert client.connection not in broker.connections
    assert client.answers() == []
    assert "what it has shown of itself holds no more" in caplog.text
    broker.end()


@pytest.mark.parametrize("theirs", ["another login's", "longer", "shorter", "another client's"])
@pytest.mark.parametrize(("mechanism", "algorithm"), [("SCRAM-SHA-256", "sha256"), ("SCRAM-SHA-512", "sha512")])
def test_a_nonce_that_is_not_ours_proves_nothing(
    broker: Broker, client: Client, mechanism: str, algorithm: str, theirs: str
) -> None:
    other = broker.connect()
    answers = []
    for each in (other, client):
        handshake(broker, each, mechanism)
        login = ScramClient(algorithm, "alice", "secret", nonce="n" * 20)
        answers.append(bytes(say(broker, each, login.first()).auth_bytes))
    of_other, of_own = answers
    nonce = of_own.split(b",")[0]
    final = {
        "another login's": lambda: login.final(of_other),
        "longer": lambda: login.final(of_own.replace(nonce, nonce + b"x")),
        "shorter": lambda: login.final(of_own.replace(nonce, nonce[:-1])),
        "another client's": lambda: login.final(of_own).replace(b"r=" + b"n" * 20, b"r=" + b"m" * 20),
    }[theirs]()
    assert say(broker, client, final).error_code == REFUSED
    assert client.is_closing()


def test_a_proof_counts_on_its_own_connection_and_once(broker: Broker, client: Client) -> None:
    handshake(broker, client, "SCRAM-SHA-256")
    login = ScramClient("sha256", "alice", "secret")
    final = login.final(bytes(say(broker, client, login.first()).auth_bytes))
    assert say(broker, client, final).error_code == ErrorCode.NONE
    assert say(broker, client, final).error_code == ErrorCode.ILLEGAL_SASL_STATE
    other = broker.connect()
    handshake(broker, other, "SCRAM-SHA-256")
    say(broker, other, login.first())
    assert say(broker, other, final).error_code == REFUSED


def test_a_second_login_that_is_sent_along_with_the_first_changes_nothing(broker: Broker, client: Client) -> None:
    """All frames come in one piece: alice logs in, and a handshake for another user follows before any answer."""
    plain = SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret")
    sent = (SaslHandshakeRequest(mechanism="PLAIN"), 1), (plain, 2), (SaslHandshakeRequest(mechanism="PLAIN"), 1)
    again = SaslAuthenticateRequest(auth_bytes="\0Jürgen,=x\0päss".encode())
    client.send_bytes(b"".join(client.frame(*each) for each in (*sent, (again, 2), (METADATA, 12))))
    broker.settle()
    codes = [answer.error_code for _, answer in client.answers()[:4]]
    assert codes == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.ILLEGAL_SASL_STATE, ErrorCode.ILLEGAL_SASL_STATE]
    assert client.connection.principal == Principal(name="alice")
