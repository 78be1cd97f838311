"""confluent-kafka-python's own tests of its admin client: rules, users, and what a client may do.

It has none of quotas, since its admin client knows no quotas.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.login_suites.broker import secured_broker
from tests.login_suites.running import assert_passed, outcomes

TESTS = ("tests/integration/admin",)
LEFT_OUT = {
    "test_incremental_alter_configs": "It expects a min.insync.replicas for all topics, which controllers of Apache "
    "Kafka write from 4.1 on.",
}


@pytest.mark.timeout(1500)
def test_own_tests(source: Callable[[str], Path], tmp_path: Path) -> None:
    client = source("confluent-kafka-python")
    with secured_broker(tmp_path, {}) as broker:
        broker.add_user("sasl_user", "sasl_user")
        environment = {"BROKERS": broker.address("PLAINTEXT"), "EXACTA_SECURED": broker.address("SASL_PLAINTEXT")}
        found = outcomes(client, TESTS, tmp_path, "exacta_for_confluent", environment)
    assert_passed(found, LEFT_OUT)
