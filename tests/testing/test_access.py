"""Users and access rules of an embedded broker, and a test that takes them away."""

from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

import exacta
from exacta.core.values.acl import Operation, Pattern, ResourceKind
from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.testing.access import acls_of
from tests.pulsar.wire import Wire

SECONDS = 20
ACLS = ["User:alice Write Read Create --topic orders", "User:alice Read --group g --prefixed"]


def options(broker: exacta.Broker, name: str = "alice", password: str = "secret") -> dict[str, Any]:
    tls = {"ssl.ca.location": broker.tls_ca} if broker._authority is not None else {}
    return {
        "bootstrap.servers": broker.bootstrap_servers,
        "security.protocol": "SASL_SSL" if tls else "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": name,
        "sasl.password": password,
        "log_level": 0,
        **tls,
    }


def outcome(broker: exacta.Broker, topic: str = "orders", more: dict[str, Any] | None = None, **who: str) -> str:
    """Write one record; return what came of it."""
    errors: list[str] = []
    told = {"error_cb": lambda error: errors.append(error.name()), "message.timeout.ms": 1_000 * SECONDS}
    producer = confluent_kafka.Producer(options(broker, **who) | told | (more or {}))
    producer.produce(topic, b"x", on_delivery=lambda error, _: errors.append(error.name() if error else "written"))
    while not errors:
        producer.poll(0.1)
    producer.purge()
    return errors[0]


@pytest.mark.parametrize("tls", [False, True])
def test_users_log_in_and_may_do_what_the_rules_say(*, tls: bool) -> None:
    with exacta.Broker(users={"alice": "secret", "bob": "pw"}, acls=ACLS, tls=tls) as broker:
        assert outcome(broker) == "written"
        assert outcome(broker, "another") == "TOPIC_AUTHORIZATION_FAILED"
        assert outcome(broker, name="bob", password="pw") == "TOPIC_AUTHORIZATION_FAILED"
        assert outcome(broker, password="a guess") == "_AUTHENTICATION"
        for mechanism in ("SCRAM-SHA-256", "PLAIN"):
            assert outcome(broker, more={"sasl.mechanism": mechanism}) == "written"
        assert [each.value for each in broker.records("orders")] == [b"x"] * 3  # the kit's own questions are answered


@pytest.mark.parametrize(
    ("password", "topic", "error"),
    [
        (b"alice:secret", "orders", None),
        (b"alice:secret", "others", pb.ServerError.AuthorizationError),
        (b"alice:a guess", "orders", pb.ServerError.AuthenticationError),
        (None, "orders", pb.ServerError.AuthenticationError),
    ],
)
def test_pulsar_clients_log_in_as_the_same_users(password: bytes | None, topic: str, error: int | None) -> None:
    with exacta.Broker(users={"alice": "secret"}, acls=ACLS, pulsar=True) as broker:
        wire = Wire(broker.pulsar_url, connects=False)
        connect = pb.CommandConnect(client_version="x", protocol_version=20)
        if password is not None:
            connect.auth_method_name, connect.auth_data = "basic", password
        answer = wire.ask(connect)
        if error != pb.ServerError.AuthenticationError:
            answer = wire.open_producer(topic)
        assert getattr(answer, "error", None) == error
        wire.close()


def test_without_rules_every_user_may_do_everything() -> None:
    with exacta.Broker(users={"alice": "secret"}) as broker:
        assert outcome(broker, "anything") == "written"


def test_a_certificate_names_whom_rules_are_about() -> None:
    with exacta.Broker(tls=True, ssl_client_auth="required", acls=ACLS) as broker:
        broker.create_topic("orders")
        for name, expected in (("alice", "written"), ("bob", "TOPIC_AUTHORIZATION_FAILED")):
            file = broker.tls_certificate(name)
            more = {"ssl.certificate.location": file, "ssl.key.location": file, "security.protocol": "SSL"}
            assert outcome(broker, more=more) == expected


def test_a_revoked_user_and_a_revoked_rule_count_at_once_and_over_a_restart(tmp_path: Path) -> None:
    with exacta.Broker(tmp_path / "data", users={"alice": "secret", "bob": "pw"}, acls=ACLS) as broker:
        assert outcome(broker) == "written"
        more = {"group.id": "g1", "auto.offset.reset": "earliest", "fetch.wait.max.ms": 30_000}
        consumer = confluent_kafka.Consumer(options(broker) | more)
        consumer.subscribe(["orders"])
        message = consumer.poll(SECONDS)
        assert message is not None
        assert message.value() == b"x"
        broker.faults.revoke("User:alice", "Read --topic orders")
        refused = consumer.poll(SECONDS)
        assert refused is not None
        error = refused.error()
        assert error is not None
        assert error.name() == "TOPIC_AUTHORIZATION_FAILED"
        consumer.close()
        assert outcome(broker) == "written"
        broker.faults.revoke("User:alice")
        assert outcome(broker) == "_AUTHENTICATION"
        broker.restart(clean=False)
        assert outcome(broker) == "_AUTHENTICATION"
        broker.faults.clear()
        assert outcome(broker) == "written"
        broker.faults.revoke("User:alice")
        broker.stop()
        broker.faults.clear()
        broker.start()
        assert outcome(broker) == "written"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("User:carol",), "revoke('User:carol'): there is no such user or rule"),
        (("User:bob", "Read --topic orders"), "there is no such user or rule"),
        (("User:alice", "Read"), "is no access rule: give one of --topic"),
    ],
)
def test_what_is_not_there_is_not_revoked(arguments: tuple[str, ...], words: str) -> None:
    with exacta.Broker(users={"alice": "secret"}, acls=ACLS) as broker:
        with pytest.raises(ValueError, match=r"revoke|no access rule") as raised:
            broker.faults.revoke(*arguments)
        assert words in str(raised.value)
        assert outcome(broker) == "written"


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("User:alice", "the following arguments are required: operations"),
        ("User:alice Reed --topic t", "there is no operation 'Reed'"),
        ("User:alice Read", "give one of --topic"),
        ("User:alice Read --topic t --group g", "give one of --topic"),
        ("alice Read --topic t", "the principal is not like User:alice"),
        ("User:alice Read --tropic t", "unrecognized arguments"),
        ("User:alice Read --topic 't", "No closing quotation"),
    ],
)
def test_a_rule_that_there_cannot_be_is_an_error_of_the_test(written: str, words: str) -> None:
    with pytest.raises(ValueError, match="is no access rule") as raised:
        exacta.Broker(users={}, acls=[written])
    assert words in str(raised.value)


def test_rules_need_somebody_whom_they_are_about() -> None:
    with pytest.raises(ValueError, match="acls need users"):
        exacta.Broker(acls=ACLS)


def test_a_rule_is_written_as_for_the_command() -> None:
    (found,) = acls_of("User:alice read --transactional-id 'my id' --prefixed --deny --host 10.0.0.1")
    assert (found.kind, found.name, found.pattern) == (ResourceKind.TRANSACTIONAL_ID, "my id", Pattern.PREFIXED)
    assert (found.operation, found.allows, found.host) == (Operation.READ, False, "10.0.0.1")
    (found,) = acls_of("User:alice Alter --cluster")
    assert found.kind is ResourceKind.CLUSTER


@pytest.mark.exacta_broker(users={"alice": "secret"}, acls=ACLS)
class TestByTheFixture:
    def test_a_user_that_is_revoked(self, exacta_broker: exacta.Broker) -> None:
        exacta_broker.faults.revoke("User:alice")
        assert outcome(exacta_broker) == "_AUTHENTICATION"

    def test_is_there_again_for_the_next_test(self, exacta_broker: exacta.Broker) -> None:
        assert outcome(exacta_broker) == "written"
