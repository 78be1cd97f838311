"""kafka-python's own tests of logins, TLS and rules."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.login_suites.broker import secured_broker
from tests.login_suites.running import assert_passed, outcomes

TESTS = (
    "test/integration/test_sasl_integration.py",
    "test/integration/test_ssl_integration.py",
    "test/integration/test_admin_integration.py",
)
LEFT_OUT = {
    "test_alter_replica_log_dirs": "It asks to move replicas, which is not served: there is one directory.",
    "test_describe_metadata_quorum": "It asks for a quorum of controllers, which is not served: there is none.",
    "test_describe_configs_broker_resource_returns_configs": "It looks for advertised.listeners among the broker's "
    "configurations; doors are no configurations here.",
}


@pytest.mark.timeout(1500)
def test_own_tests(source: Callable[[str], Path], tmp_path: Path) -> None:
    client = source("kafka-python")
    with secured_broker(tmp_path, {}, "localhost") as broker:
        broker.add_user("alice", "alice-secret")
        environment = {
            "KAFKA_VERSION": "4.2.0",
            "EXACTA_ADDRESSES": json.dumps(dict(broker.ports)),
            "EXACTA_AUTHORITY": str(broker.authority),
        }
        found = outcomes(client, TESTS, tmp_path, "exacta_for_kafka_python", environment)
    assert_passed(found, LEFT_OUT)
