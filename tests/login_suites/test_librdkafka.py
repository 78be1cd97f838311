"""librdkafka's own tests of its admin client (0081) and of logging in once more (0142).

Both run by each mechanism with a password. 0142 runs one subtest at a time, since its tests of share groups, which are
not served here, stand between the others.
"""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.login_suites.broker import SecuredBroker, secured_broker

BUILD_SECONDS = 3600
TEST_SECONDS = 900
REAUTHENTICATION_MS = 3_000
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
SUBTESTS = ("do_test_consumer", "do_test_producer", "do_test_txn_producer", "do_test_reauth_failure")
LEFT_OUT = {
    "do_test_share_consumer": "It reads by a share group, and these are not served.",
    "do_test_share_oauthbearer": "It reads by a share group, and these are not served.",
    "do_test_share_reauth_failure": "It reads by a share group, and these are not served.",
    "do_test_oauthbearer": "It logs in by a token that is not signed. Here every token is.",
}
"""The subtests of 0142 that are left out, and the reason of each."""

pytestmark = pytest.mark.timeout(BUILD_SECONDS + TEST_SECONDS)


@pytest.fixture(scope="module")
def tests(source: Callable[[str], Path]) -> Path:
    """The folder of the tests, built."""
    folder = source("librdkafka")
    if not (folder / "tests" / "test-runner").exists():
        for command in (["./configure"], ["make", "libs"], ["make", "-C", "tests", "test-runner"]):
            subprocess.run(command, cwd=folder, check=True, timeout=BUILD_SECONDS, capture_output=True)
    return folder / "tests"


def run(tests: Path, folder: Path, broker: SecuredBroker, mechanism: str, number: str, subtests: str = "") -> None:
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
        **({"SUBTESTS": subtests} if subtests else {}),
    }
    done = subprocess.run(
        ["./test-runner", "-p1", "-Q"] if number == "0081" else ["./test-runner", "-p1"],
        cwd=tests,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=TEST_SECONDS,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-8000:]
    if subtests:
        assert f"{subtests}" in done.stderr + done.stdout


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_admin(tests: Path, tmp_path: Path, mechanism: str) -> None:
    with secured_broker(tmp_path, {"num.partitions": "4"}) as broker:
        broker.add_user("tester", "secret")
        run(tests, tmp_path, broker, mechanism, "0081")


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_logging_in_once_more(tests: Path, tmp_path: Path, mechanism: str) -> None:
    with secured_broker(tmp_path, {"connections.max.reauth.ms": str(REAUTHENTICATION_MS)}) as broker:
        broker.add_user("tester", "secret")
        for subtest in SUBTESTS:
            run(tests, tmp_path, broker, mechanism, "0142", subtest)


def test_each_subtest_is_run_or_left_out(tests: Path) -> None:
    text = (tests / "0142-reauthentication.c").read_text()
    found = {line.split("(")[0].split()[-1] for line in text.splitlines() if line.startswith(("void do_", "static void do_"))}
    assert found == {*SUBTESTS, *LEFT_OUT}
