"""AlterUserScramCredentials and DescribeUserScramCredentials (KIP-554)."""

import hashlib
import hmac
import logging
from typing import Any

import pytest

from exacta.core.values.scram import ScramMechanism
from exacta.kafka.handlers.k51_alter_user_scram_credentials import MOST_AT_ONCE
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k50_describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from exacta.protocol.kafka.messages.k51_alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from tests.kafka.by_hand import Broker, Client
from tests.kafka.test_acl_requests import closed

NONE = ErrorCode.NONE
SALT, ITERATIONS = b"salt of alice", 4_096
SALTED = hashlib.pbkdf2_hmac("sha256", b"pencil", SALT, ITERATIONS)


def upsertion(name: str = "alice", **given: Any) -> ScramCredentialUpsertion:
    usual: dict[str, Any] = {"mechanism": 1, "iterations": ITERATIONS, "salt": SALT, "salted_password": SALTED}
    return ScramCredentialUpsertion(name=name, **usual | given)


def alter(
    broker: Broker,
    client: Client,
    *upsertions: ScramCredentialUpsertion,
    deletions: tuple[tuple[str, int], ...] = (),
) -> dict[str, int]:
    gone = [ScramCredentialDeletion(name=name, mechanism=mechanism) for name, mechanism in deletions]
    request = AlterUserScramCredentialsRequest(deletions=gone, upsertions=list(upsertions))
    results = broker.ask(client, request, 0).results
    assert len({each.user for each in results}) == len(results)
    return {each.user: each.error_code for each in results}


def described(broker: Broker, client: Client, *users: str) -> dict[str, Any]:
    request = DescribeUserScramCredentialsRequest(users=[UserName(name=each) for each in users] or None)
    return {
        each.user: each.error_code or [(info.mechanism, info.iterations) for info in each.credential_infos]
        for each in broker.ask(client, request, 0).results
    }


def test_a_user_is_made_described_and_deleted() -> None:
    broker, client = closed()
    assert described(broker, client) == {}
    assert alter(broker, client, upsertion(), upsertion("bob", mechanism=2, iterations=8_192)) == {
        "alice": NONE,
        "bob": NONE,
    }
    assert described(broker, client) == {"alice": [(1, 4_096)], "bob": [(2, 8_192)]}
    assert described(broker, client, "alice", "nobody") == {
        "alice": [(1, 4_096)],
        "nobody": ErrorCode.RESOURCE_NOT_FOUND,
    }
    assert described(broker, client, "alice", "alice") == {"alice": ErrorCode.DUPLICATE_RESOURCE}
    assert alter(broker, client, deletions=(("alice", 1), ("bob", 1))) == {
        "alice": NONE,
        "bob": ErrorCode.RESOURCE_NOT_FOUND,
    }
    assert described(broker, client) == {"bob": [(2, 8_192)]}


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"iterations": 4_095}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"iterations": 16_385}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"salt": b""}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"salted_password": b""}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"name": ""}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"name": "a\nb"}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"name": "ANONYMOUS"}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"mechanism": 0}, ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        ({"mechanism": 3}, ErrorCode.UNSUPPORTED_SASL_MECHANISM),
    ],
)
def test_a_key_that_cannot_be_hinders_no_other_user(wrong: dict[str, Any], code: ErrorCode) -> None:
    broker, client = closed()
    bad = upsertion(**{"name": "bob"} | wrong)
    assert alter(broker, client, bad, upsertion()) == {bad.name: code, "alice": NONE}
    assert described(broker, client) == {"alice": [(1, 4_096)]}


def test_a_user_that_is_named_twice_keeps_what_there_is() -> None:
    broker, client = closed()
    alter(broker, client, upsertion())
    twice = alter(broker, client, upsertion(iterations=5_000), deletions=(("alice", 1),))
    assert twice == {"alice": ErrorCode.DUPLICATE_RESOURCE}
    assert described(broker, client) == {"alice": [(1, 4_096)]}


def test_the_keys_are_those_of_rfc_5802_and_nothing_else_is_kept() -> None:
    broker, client = closed()
    alter(broker, client, upsertion())
    key = broker.context.engine.advice.scram_key("alice", ScramMechanism.SCRAM_SHA_256)
    assert key is not None
    assert (key.salt, key.iterations) == (SALT, ITERATIONS)
    client_key = hmac.new(SALTED, b"Client Key", "sha256").digest()
    assert key.stored_key.value == hashlib.sha256(client_key).digest()
    assert key.server_key.value == hmac.new(SALTED, b"Server Key", "sha256").digest()
    assert broker.context.engine.advice.scram_key("alice", ScramMechanism.SCRAM_SHA_512) is None
    assert broker.context.engine.advice.scram_key("bob", ScramMechanism.SCRAM_SHA_256) is None


def test_no_text_shows_a_password_or_a_key(caplog: pytest.LogCaptureFixture) -> None:
    broker, client = closed()
    request = AlterUserScramCredentialsRequest(upsertions=[upsertion(salted_password=b"SALTEDPASSWORD")])
    assert "SALTEDPASSWORD" not in f"{request!r} {request}"
    with caplog.at_level(logging.DEBUG):
        broker.ask(client, request, 0)
    key = broker.context.engine.advice.scram_key("alice", ScramMechanism.SCRAM_SHA_256)
    assert key is not None
    texts = [caplog.text, repr(broker.engine._state), repr(key)]
    secrets = [b"SALTEDPASSWORD", key.stored_key.value, key.server_key.value]
    for text in texts:
        for secret in secrets:
            assert secret.hex() not in text
            assert repr(secret)[2:-1] not in text


def test_without_an_authorizer_nobody_can_set_keys() -> None:
    broker = Broker()
    client = broker.connect()
    both = alter(broker, client, upsertion(), deletions=(("bob", 1), ("alice", 1)))
    assert both == dict.fromkeys(("bob", "alice"), ErrorCode.SECURITY_DISABLED)
    assert described(broker, client, "alice") == {"alice": ErrorCode.RESOURCE_NOT_FOUND}


def test_a_request_of_too_many_is_refused_as_a_whole() -> None:
    broker, client = closed()
    many = [upsertion(f"u{number}") for number in range(MOST_AT_ONCE + 1)]
    assert set(alter(broker, client, *many).values()) == {ErrorCode.POLICY_VIOLATION}
    gone = tuple((each.name, 1) for each in many)
    assert set(alter(broker, client, deletions=gone).values()) == {ErrorCode.POLICY_VIOLATION}
    assert set(alter(broker, client, *many[1:]).values()) == {NONE}
    assert len(described(broker, client)) == MOST_AT_ONCE
