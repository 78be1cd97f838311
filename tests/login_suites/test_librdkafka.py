"""librdkafka's own tests of its admin client (0081) and of logging in once more (0142).

They run one subtest at a time, since some that cannot pass stand between the others.
"""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.login_suites.broker import SecuredBroker, secured_broker

BUILD_SECONDS = 3600
TEST_SECONDS = 900
REAUTHENTICATION_MS = 3_000
ONE_NODE = {"accept.any.replication.factor": "true"}
"""The tests want topics with three replicas."""
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
SHARE_GROUPS = "It reads by a share group, and these are not served."
KERBEROS = "It sets an option of Kerberos for a broker, which is not offered."
LEFT_OUT = {
    "0081-admin.c": {
        "do_test_AlterConfigs": KERBEROS,
        "do_test_IncrementalAlterConfigs": KERBEROS,
    },
    "0142-reauthentication.c": {
        "do_test_share_consumer": SHARE_GROUPS,
        "do_test_share_oauthbearer": SHARE_GROUPS,
        "do_test_share_reauth_failure": SHARE_GROUPS,
        "do_test_oauthbearer": "It logs in by a token that is not signed. Here every token is.",
    },
}
"""The subtests that are left out, and the reason of each."""
TRIED_AGAIN = {
    "do_test_DescribeConsumerGroups": "It wants groups to be empty a second after the sessions of their members have "
    "ended. A broker that was held up gives members longer.",
}
"""The subtests that a busy machine fails through no fault of the broker's: they may fail once."""

pytestmark = pytest.mark.timeout(BUILD_SECONDS + TEST_SECONDS)


@pytest.fixture(scope="module")
def tests(source: Callable[[str], Path]) -> Path:
    """The folder of the tests, built."""
    folder = source("librdkafka")
    if not (folder / "tests" / "test-runner").exists():
        for command in (["./configure"], ["make", "libs"], ["make", "-C", "tests", "test-runner"]):
            subprocess.run(command, cwd=folder, check=True, timeout=BUILD_SECONDS, capture_output=True)
    return folder / "tests"


def run(tests: Path, folder: Path, broker: SecuredBroker, mechanism: str, number: str, subtest: str) -> None:
    """Run one test as a user who may do everything but what a rule denies."""
    configuration = {
        "bootstrap.servers": broker.address("SASL_PLAINTEXT"),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": "tester",
        "sasl.password": "secret",
    }
    (folder / "test.conf").write_text("".join(f"{name}={value}\n" for name, value in configuration.items()))
    environment = {
        "PATH": "/usr/bin:/bin",
        "LD_LIBRARY_PATH": f"{tests.parent / 'src'}:{tests.parent / 'src-cpp'}",
        "RDKAFKA_TEST_CONF": str(folder / "test.conf"),
        "TESTS": number,
        "TEST_KAFKA_VERSION": "4.2.0",
        "SUBTESTS": subtest,
    }
    for _ in range(2 if subtest in TRIED_AGAIN else 1):
        done = subprocess.run(
            ["./test-runner", "-p1"],
            cwd=tests,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=TEST_SECONDS,
        )
        if done.returncode == 0:
            break
    assert done.returncode == 0, f"{subtest}: {done.stderr[-8000:]}"
    assert re.search(rf"{subtest}\S*:\d+.*PASS", done.stderr), f"{subtest} has not run: {done.stderr[-2000:]}"


def subtests_of(tests: Path, file: str) -> list[str]:
    """Return the functions of a test that run a subtest, but for those that are left out."""
    found = re.findall(r"^(?:static )?void\s+(do_test_\w+)\(", (tests / file).read_text(), re.MULTILINE)
    assert LEFT_OUT[file].keys() <= set(found)
    return [name for name in found if name not in LEFT_OUT[file] and name != "do_test_apis"]


def test_admin(tests: Path, tmp_path: Path) -> None:
    with secured_broker(tmp_path, {**ONE_NODE, "num.partitions": "4"}) as broker:
        broker.add_user("tester", "secret")
        for subtest in subtests_of(tests, "0081-admin.c"):
            run(tests, tmp_path, broker, "SCRAM-SHA-512", "0081", subtest)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_logging_in_once_more(tests: Path, tmp_path: Path, mechanism: str) -> None:
    with secured_broker(tmp_path, {**ONE_NODE, "connections.max.reauth.ms": str(REAUTHENTICATION_MS)}) as broker:
        broker.add_user("tester", "secret")
        for subtest in subtests_of(tests, "0142-reauthentication.c"):
            run(tests, tmp_path, broker, mechanism, "0142", subtest)
