"""aiokafka's own tests of logins, rules and TLS."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import trustme

from tests.login_suites.broker import secured_broker
from tests.login_suites.running import assert_passed, outcomes

TESTS = (
    "tests/test_sasl.py",
    "tests/test_helpers.py::test_create_ssl_context",
    "tests/test_consumer.py::TestConsumerIntegration::test_ssl_consume",
    "tests/test_producer.py::TestKafkaProducerIntegration::test_producer_ssl",
)
KERBEROS = "It logs in by Kerberos, which is not offered."
LEFT_OUT = {
    "test_sasl_unknown_topic_describe": "It skips itself: it is for Apache Kafka before 1.0.",
    "test_sasl_plaintext_gssapi": KERBEROS,
    "test_admin_client_sasl_plaintext_gssapi": KERBEROS,
}


@pytest.mark.timeout(1500)
def test_own_tests(source: Callable[[str], Path], tmp_path: Path) -> None:
    client = source("aiokafka")
    with secured_broker(tmp_path, {"num.partitions": "2"}) as broker:
        broker.add_user("test", "test")
        environment = {
            "AIOKAFKA_NO_EXTENSIONS": "1",
            "EXACTA_ADDRESSES": json.dumps(dict(broker.ports)),
            "EXACTA_CERTIFICATES": str(certificates(tmp_path, broker.authority)),
        }
        tests = ("--docker-image=exacta:1_4.2.0", *TESTS)
        found = outcomes(client, tests, tmp_path, "exacta_for_aiokafka", environment)
    assert_passed(found, LEFT_OUT)


def certificates(folder: Path, authority: Path) -> Path:
    """Make the files that the tests look for; the broker asks for no certificate."""
    found = folder / "certificates"
    found.mkdir()
    shutil.copy(authority, found / "ca.crt")
    client = trustme.CA().issue_cert("client.invalid")
    client.cert_chain_pems[0].write_to_path(found / "client.crt")
    client.private_key_pem.write_to_path(found / "client.key")
    return found
