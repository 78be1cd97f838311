"""aiokafka's fixtures of a broker in a container, with Exacta; loaded by pytest in aiokafka's folder.

`EXACTA_ADDRESSES` has the port of each door, `EXACTA_CERTIFICATES` the folder with `ca.crt` and a client's certificate.
"""

import json
import os
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from stand_ins import stand_in

stand_in("docker")

HOST = "127.0.0.1"
PORTS = json.loads(os.environ["EXACTA_ADDRESSES"])
SECONDS = 30
RESOURCES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional_id": ResourceType.TRANSACTIONAL_ID,
    "cluster": ResourceType.BROKER,
}
FIELDS = ("restype", "name", "resource_pattern_type", "principal", "host", "operation", "permission_type")


def ask(request):
    admin = AdminClient({"bootstrap.servers": f"{HOST}:{PORTS['PLAINTEXT']}"})
    for future in request(admin).values():
        future.result(SECONDS)


class Rules:
    """Makes rules as aiokafka's `ACLManager` does by `kafka-acls.sh`."""

    def __init__(self):
        self._made = []

    def add_acl(self, **params):
        made = [*_rules(**params)]
        ask(lambda admin: admin.create_acls(made))
        self._made += made

    def list_acl(self, principal=None):
        return self._made

    def cleanup(self):
        wanted = [AclBindingFilter(*(getattr(each, field) for field in FIELDS)) for each in self._made]
        if wanted:
            ask(lambda admin: admin.delete_acls(wanted))
        self._made = []


def _rules(allow_principal=None, deny_principal=None, operation=None, **resources):
    [(kind, name)] = resources.items()
    for user, permission in ((allow_principal, AclPermissionType.ALLOW), (deny_principal, AclPermissionType.DENY)):
        if user is not None:
            yield AclBinding(
                RESOURCES[kind],
                "kafka-cluster" if kind == "cluster" else name,
                ResourcePatternType.LITERAL,
                f"User:{user}",
                "*",
                AclOperation[operation.upper()] if operation else AclOperation.ALL,
                permission,
            )


class Users:
    """Makes users as aiokafka's `KafkaConfig` does by `kafka-configs.sh`."""

    def add_scram_user(self, username, password):
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            info = ScramCredentialInfo(mechanism, 4096)
            upsertion = UserScramCredentialUpsertion(username, info, password.encode())
            ask(lambda admin, upsertion=upsertion: admin.alter_user_scram_credentials([upsertion]))


def fixture(scope, value):
    @pytest.fixture(scope=scope)
    def made():
        return value()

    return made


@pytest.hookimpl(tryfirst=True)
def pytest_plugin_registered(plugin):
    """Replace the fixtures of aiokafka's conftest."""
    if not hasattr(plugin, "KafkaServer"):
        return
    ports = [PORTS[protocol] for protocol in ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")]
    plugin.kafka_server = fixture("session", lambda: plugin.KafkaServer(HOST, *ports, None))
    plugin.ssl_folder = fixture("session", lambda: Path(os.environ["EXACTA_CERTIFICATES"]))
    plugin.acl_manager = fixture("class", Rules)
    plugin.kafka_config = fixture("class", Users)
    plugin.kerberos_utils = fixture("class", lambda: None)
