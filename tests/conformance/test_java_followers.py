"""Kafka's clients for Java know a follower only, and find the leader (`make test-with WHAT=java`).

They ask any broker for much of what only the leader decides, and stay with a broker that they are connected to. So each
of these is done by several new clients, of which about half begin at the follower.
"""

import os
from collections.abc import Iterator

import pytest

if not os.environ.get("EXACTA_TEST_JAVA"):
    pytest.skip("set EXACTA_TEST_JAVA to run Kafka's client for Java", allow_module_level=True)

from tests.conformance.clients.interface import CALL_TIMEOUT_S
from tests.conformance.clients.java import Admin, JavaClient
from tests.conformance.test_followers import FOLLOWER, bootstrap, brokers
from tests.server.cluster.brokers import Brokers

__all__ = ["brokers"]

CLIENTS = 8


@pytest.fixture
def admins(brokers: Brokers) -> Iterator[list[Admin]]:
    made = [Admin(bootstrap(brokers)) for _ in range(CLIENTS)]
    yield made
    for admin in made:
        admin.close()


def _alteration(admin: Admin, kind: str, name: str, key: str, value: str) -> str:
    package = admin.java.clients.admin
    entry = package.AlterConfigOp(package.ConfigEntry(key, value), package.AlterConfigOp.OpType.SET)
    resource = admin.java.common.config.ConfigResource
    wanted = {resource(getattr(resource.Type, kind), name): [entry]}
    return admin.outcome(admin.ask("incrementalAlterConfigs", wanted).all())


def test_an_idempotent_producer_has_its_id_and_its_topic(brokers: Brokers) -> None:
    client = JavaClient()
    try:
        for number in range(CLIENTS):
            producer = client.producer(bootstrap(brokers))
            assert producer.send(f"t{number}", b"v", partition=0).result(CALL_TIMEOUT_S) == 0
    finally:
        client.close()


def test_access_rules_and_configurations_come_to_the_leader(admins: list[Admin]) -> None:
    admins[0].ask("createTopics", [admins[0].java.clients.admin.NewTopic("t", 1, 1)]).all().get()
    for admin in admins:
        assert _alteration(admin, "TOPIC", "t", "retention.ms", "1000") == "done"
        assert _alteration(admin, "BROKER", "", "max.connections", "1000") == "done"
        common = admin.java.common
        found = admin.outcome(admin.ask("deleteAcls", [common.acl.AclBindingFilter.ANY]).all())
        assert found == "SecurityDisabledException"


def test_the_options_of_a_follower_are_refused_at_once(admins: list[Admin]) -> None:
    """A client would ask it until its time is up otherwise."""
    assert _alteration(admins[0], "BROKER", str(FOLLOWER), "max.connections", "1000") == "InvalidRequestException"
