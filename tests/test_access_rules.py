"""Access rules and users by other people's clients, over restarts, and no secret in what is written or shown."""

import base64
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kafka.admin import ACL, KafkaAdminClient, ResourcePattern
from kafka.admin import ACLFilter as KafkaPythonFilter
from kafka.admin import ACLOperation as KafkaPythonOperation
from kafka.admin import ACLPermissionType as KafkaPythonPermission
from kafka.admin import ResourceType as KafkaPythonType

import exacta
from exacta.config.security import STANDARD_AUTHORIZER
from exacta.core.values.scram import ScramMechanism as Mechanism

ME = "User:ANONYMOUS"
ON: dict[str, Any] = {"authorizer_class_name": STANDARD_AUTHORIZER, "super_users": ME}
SECONDS = 30
EVERYTHING = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
)


def binding(name: str, operation: AclOperation = AclOperation.READ, **given: Any) -> AclBinding:
    usual = {
        "restype": ResourceType.TOPIC,
        "name": name,
        "resource_pattern_type": ResourcePatternType.LITERAL,
        "principal": "User:alice",
        "host": "*",
        "operation": operation,
        "permission_type": AclPermissionType.ALLOW,
    }
    return AclBinding(**usual | given)


def create(admin: AdminClient, *bindings: AclBinding) -> None:
    for future in admin.create_acls([*bindings], request_timeout=SECONDS).values():
        assert future.result(SECONDS) is None


def described(admin: AdminClient, wanted: AclBindingFilter = EVERYTHING) -> set[AclBinding]:
    return {*admin.describe_acls(wanted, request_timeout=SECONDS).result(SECONDS)}


@pytest.fixture
def admin() -> Iterator[AdminClient]:
    with exacta.Broker(**ON) as broker:
        yield AdminClient({"bootstrap.servers": broker.bootstrap_servers})


def test_confluents_client_makes_finds_and_deletes_rules(admin: AdminClient) -> None:
    prefixed = binding("orders-", AclOperation.ALL, resource_pattern_type=ResourcePatternType.PREFIXED)
    denied = binding("orders-7", permission_type=AclPermissionType.DENY, principal="User:bob", host="10.0.0.1")
    group = binding("g", restype=ResourceType.GROUP)
    create(admin, prefixed, denied, group)
    assert described(admin) == {prefixed, denied, group}
    of_one = AclBindingFilter(
        ResourceType.TOPIC,
        "orders-7",
        ResourcePatternType.MATCH,
        None,
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    assert described(admin, of_one) == {prefixed, denied}
    (future,) = admin.delete_acls([of_one], request_timeout=SECONDS).values()
    assert {*future.result(SECONDS)} == {prefixed, denied}
    assert described(admin) == {group}


def test_kafka_pythons_client_makes_finds_and_deletes_rules() -> None:
    with exacta.Broker(**ON) as broker:
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        rule = ACL(
            principal="User:alice",
            host="*",
            operation=KafkaPythonOperation.READ,
            permission_type=KafkaPythonPermission.ALLOW,
            resource_pattern=ResourcePattern(KafkaPythonType.TOPIC, "t"),
        )
        assert admin.create_acls([rule])["failed"] == []
        every = KafkaPythonFilter(
            principal=None,
            host="*",
            operation=KafkaPythonOperation.ANY,
            permission_type=KafkaPythonPermission.ANY,
            resource_pattern=ResourcePattern(KafkaPythonType.TOPIC, "t"),
        )
        found, _ = admin.describe_acls(every)
        assert [*found] == [rule]
        ((_, deleted, _),) = admin.delete_acls([every])
        admin.close()
    assert deleted == [rule]


def test_a_client_may_do_what_a_rule_allows_and_no_more(tmp_path: Path) -> None:
    with exacta.Broker(data=tmp_path, **ON) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        for future in admin.create_topics([NewTopic("mine", 1, 1), NewTopic("others", 1, 1)]).values():
            future.result(SECONDS)
        create(admin, binding("mine", AclOperation.WRITE, principal=ME))
    with exacta.Broker(data=tmp_path, authorizer_class_name=STANDARD_AUTHORIZER) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "topic.metadata.refresh.interval.ms": 100})
        outcomes: dict[str, str | None] = {}

        def noted(error: KafkaError | None, message: Message) -> None:
            outcomes[message.topic() or ""] = None if error is None else error.name()

        for topic in ("mine", "others"):
            producer.produce(
                topic,
                b"x",
                on_delivery=lambda error, message: outcomes.update({message.topic(): error and error.name()}),
            )
        assert producer.flush(SECONDS) == 0
        assert outcomes == {"mine": None, "others": "TOPIC_AUTHORIZATION_FAILED"}
        client = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        refused = client.create_acls([binding("mine")])
        with pytest.raises(KafkaException, match="CLUSTER_AUTHORIZATION_FAILED"):
            next(iter(refused.values())).result(SECONDS)


def alter(admin: AdminClient, *alterations: Any) -> None:
    for future in admin.alter_user_scram_credentials([*alterations], request_timeout=SECONDS).values():
        assert future.result(SECONDS) is None


def upsertion(user: str, mechanism: ScramMechanism, password: bytes) -> UserScramCredentialUpsertion:
    return UserScramCredentialUpsertion(user, ScramCredentialInfo(mechanism, 4_096), password, b"a salt of the test")


def told(admin: AdminClient) -> dict[str, list[tuple[str, int]]]:
    found = admin.describe_user_scram_credentials(None, request_timeout=SECONDS).result(SECONDS)
    return {
        user: [(each.mechanism.name, each.iterations) for each in of_user.scram_credential_infos]
        for user, of_user in found.items()
    }


def test_confluents_client_makes_finds_and_deletes_users(admin: AdminClient) -> None:
    alter(
        admin,
        upsertion("alice", ScramMechanism.SCRAM_SHA_256, b"pencil"),
        upsertion("bob", ScramMechanism.SCRAM_SHA_512, b"pen"),
    )
    assert told(admin) == {"alice": [("SCRAM_SHA_256", 4_096)], "bob": [("SCRAM_SHA_512", 4_096)]}
    alter(admin, UserScramCredentialDeletion("alice", ScramMechanism.SCRAM_SHA_256))
    assert told(admin) == {"bob": [("SCRAM_SHA_512", 4_096)]}
    (future,) = admin.alter_user_scram_credentials(
        [UserScramCredentialDeletion("nobody", ScramMechanism.SCRAM_SHA_256)]
    ).values()
    with pytest.raises(KafkaException, match="RESOURCE_NOT_FOUND"):
        future.result(SECONDS)


def dumped(data: Path) -> str:
    program = [sys.executable, "-m", "exacta.cli", "log", "dump", "--data", str(data)]
    return subprocess.run(program, capture_output=True, text=True, check=True).stdout


def test_the_dump_of_a_journal_tells_of_users_and_shows_no_key(tmp_path: Path) -> None:
    with exacta.Broker(data=tmp_path, **ON) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        alter(admin, upsertion("alice", ScramMechanism.SCRAM_SHA_256, b"pencil"))
        create(admin, binding("orders"))
        key = broker.in_engine(lambda log: log.advice.scram_key("alice", Mechanism.SCRAM_SHA_256))
    assert key is not None
    text = dumped(tmp_path)
    lines = [json.loads(line) for line in text.splitlines()]
    (keys_set,) = (line for line in lines if line["event"] == "ScramKeysSet")
    ((mechanism, _, iterations, *secrets),) = keys_set["keys"]
    assert (keys_set["user"], mechanism, iterations, secrets) == ("alice", 1, 4_096, ["(hidden)", "(hidden)"])
    (created,) = (line for line in lines if line["event"] == "AclsCreated")
    assert created["acls"] == [["Topic", "orders", "Literal", "User:alice", "*", "Read", True]]
    for secret in (key.stored_key.value, key.server_key.value):
        assert key.stored_key.value in b"".join(path.read_bytes() for path in (tmp_path / "journal").glob("*.log"))
        for form in (secret.hex(), base64.b64encode(secret).decode().rstrip("="), repr(secret)[2:-1]):
            assert form not in text


def test_a_broker_with_rules_does_not_start_open(tmp_path: Path) -> None:
    with exacta.Broker(data=tmp_path, **ON) as broker:
        create(AdminClient({"bootstrap.servers": broker.bootstrap_servers}), binding("orders"))
    with (
        pytest.raises(Exception, match=r"access rules \(1\), .*authorizer\.class\.name=org"),
        exacta.Broker(data=tmp_path),
    ):
        pass
    with exacta.Broker(data=tmp_path, **ON) as broker:
        assert described(AdminClient({"bootstrap.servers": broker.bootstrap_servers})) == {binding("orders")}
