"""The suites that need more than `make test` has: other people's clients, tools and brokers, and long campaigns.

`make test-with WHAT=java` runs one of them, and `make test-with` lists them. A suite is a row of `SUITES`: what it
proves, how long it takes, what it needs, and its runs of pytest. Variables such as `KILLS=100` say how much of it runs.
"""

import os
import shlex
import subprocess
import sys
from typing import NamedTuple

from tests.shares import VARIABLE, WHOLE


class Suite(NamedTuple):
    """One suite."""

    proves: str
    takes: str
    needs: str
    runs: tuple[str, ...]
    """Each run: its environment, then what pytest gets; or `-m` and a module that brings what the suite needs."""
    variables: dict[str, str] = {}  # noqa: RUF012 - a tuple's default, which nothing changes
    """What the caller may set, and what it is otherwise. The runs name them in braces."""


JAVA = "Java and Maven"
FAILURES = (
    "tests/spark/test_kill.py tests/spark/test_failures.py tests/spark/test_two_drivers.py "
    "tests/spark/sink/test_lost_markers.py"
)
ASKED_OF_KAFKA = (
    "tests/kafka/test_transaction_errors.py tests/kafka/test_pipelined_reads.py tests/kafka/test_internal_topics.py "
    "tests/kafka/test_misrouted_connections.py"
)

SUITES = {
    "java": Suite(
        "Kafka's Java client passes the conformance scenarios in both versions of the transaction protocol",
        "minutes",
        JAVA,
        (
            "EXACTA_TEST_JAVA=1 EXACTA_TEST_TRANSACTION_VERSION=2 tests/conformance",
            "EXACTA_TEST_JAVA=1 EXACTA_TEST_TRANSACTION_VERSION=1 tests/conformance",
        ),
    ),
    "tools": Suite("Kafka's command line tools work", "two minutes", JAVA, ("EXACTA_TEST_TOOLS=1 tests/tools",)),
    "logins": Suite(
        "the own tests of four Kafka clients for logins, users and access rules pass, but for those that are left out "
        "for a reason",
        "half an hour",
        "the clients' sources in `SOURCES` (`tests/login_suites/__init__.py`); a compiler for librdkafka",
        ("EXACTA_TEST_LOGIN_SUITES={SOURCES} -n 0 tests/login_suites",),
        {"SOURCES": "sources"},
    ),
    "streams": Suite(
        "a Kafka Streams application counts each order once, while it and the broker are killed",
        "minutes",
        JAVA,
        ("EXACTA_TEST_STREAMS=1 EXACTA_TEST_KILLS={KILLS} tests/streams",),
        {"KILLS": "15"},
    ),
    "attacks": Suite(
        "no request keeps the event loop for long beside a neighbour that sends heartbeats; the costs are printed",
        "half a minute",
        "",
        ("EXACTA_TEST_ATTACKS=1 -n 0 tests/attacks",),
    ),
    "fuzz": Suite(
        "hostile bytes, which a fuzzer breeds by the code that they reach, get nowhere and harm nobody, before and "
        "after the login, by Kafka's protocol, Pulsar's and HTTP",
        "ten minutes",
        "",
        ("-m tests.fuzz.coverage_guided {SECONDS}",),
        {"SECONDS": "600"},
    ),
    "power": Suite(
        "nothing acknowledged is lost where a machine loses its power under a real server and its clients",
        "half an hour",
        "",
        ("EXACTA_TEST_POWER_CUTS={KILLS} tests/power",),
        {"KILLS": "100"},
    ),
    "cluster": Suite(
        "three brokers over a PostgreSQL lose, double, tear and reorder nothing, and no answer is stale, while "
        "brokers, database and the ways between them are killed, paused, cut and slow; another `SEED` makes other "
        "faults",
        "half an hour",
        "",
        ("EXACTA_TEST_CLUSTER={KILLS} EXACTA_TEST_SEED={SEED} -n 0 tests/cluster",),
        {"KILLS": "100", "SEED": "1"},
    ),
    "verify": Suite(
        "`exacta verify` finds no anomaly on Exacta and on Apache Kafka, which are killed again and again",
        "ten minutes",
        JAVA,
        (
            "EXACTA_TEST_VERIFY={SECONDS} tests/verify",
            "EXACTA_TEST_VERIFY={SECONDS} EXACTA_TEST_BROKER=kafka tests/verify/test_run.py -k long",
        ),
        {"SECONDS": "300"},
    ),
    "go": Suite(
        "franz-go works, also while it and the broker are killed",
        "two minutes",
        "Go 1.26",
        ("EXACTA_TEST_FRANZ_GO=1 tests/franz_go",),
    ),
    "prometheus": Suite(
        "a real Prometheus scrapes the broker, and takes the alert rules and the dashboard's expressions",
        "seconds",
        "Prometheus, or Debian's `apt-get` to unpack it",
        ("-m tests.metrics.prometheus", "tests/metrics"),
    ),
    "two-phase": Suite(
        "a row and a message are there both or neither, on SQLite and PostgreSQL, wherever program, broker or database "
        "are killed",
        "twenty minutes",
        "",
        ("EXACTA_TEST_TWO_PHASE={KILLS} tests/databases tests/examples/test_shop.py",),
        {"KILLS": "100"},
    ),
    "exactly-once": Suite(
        "`exacta.exactly_once` copies each message once under kills, with confluent-kafka and aiokafka, on Exacta and "
        "on Apache Kafka",
        "half an hour",
        JAVA,
        (
            "EXACTA_TEST_EXACTLY_ONCE={KILLS} tests/transform/test_campaign.py",
            "EXACTA_TEST_EXACTLY_ONCE={KILLS} EXACTA_TEST_BROKER=kafka tests/transform/test_campaign.py",
        ),
        {"KILLS": "50"},
    ),
    "pulsar": Suite(
        "Pulsar's clients for Java and Python do as on Apache Pulsar, and each message is transformed once under "
        "kills, also in transactions with a Kafka client",
        "a quarter of an hour",
        JAVA,
        ("EXACTA_TEST_JAVA=1 EXACTA_TEST_KILLS={KILLS} tests/pulsar_clients",),
        {"KILLS": "20"},
    ),
    "pulsar-go": Suite(
        "the own tests of Pulsar's client for Go pass, but for those that are left out for a reason",
        "ten minutes",
        "Go 1.26, and free ports 6650, 6651, 8080 and 8443",
        ("EXACTA_TEST_PULSAR_GO=1 EXACTA_TEST_KILLS={KILLS} tests/pulsar_go",),
        {"KILLS": "20"},
    ),
    "differential": Suite(
        "random sequences of requests are answered as by Apache Kafka; another `SEED` makes others",
        "minutes",
        JAVA,
        (
            "EXACTA_TEST_DIFFERENTIAL={SEQUENCES} EXACTA_TEST_SEED={SEED} tests/differential",
            f"EXACTA_TEST_BROKER=kafka {ASKED_OF_KAFKA}",
        ),
        {"SEQUENCES": "10000", "SEED": "1"},
    ),
    "pulsar-differential": Suite(
        "random programs of commands come out as on Apache Pulsar",
        "minutes",
        "a running Apache Pulsar at `PULSAR` and `PULSAR_WEB`, with `acknowledgmentAtBatchIndexLevelEnabled=true`",
        (
            "EXACTA_TEST_PULSAR={PULSAR} EXACTA_TEST_PULSAR_WEB={PULSAR_WEB} EXACTA_TEST_PROGRAMS={PROGRAMS} "
            "EXACTA_TEST_SEED={SEED} tests/pulsar/differential",
        ),
        {
            "PROGRAMS": "500",
            "SEED": "1",
            "PULSAR": "pulsar://127.0.0.1:6650",
            "PULSAR_WEB": "http://127.0.0.1:8080",
        },
    ),
    "spark-connector": Suite(
        "Spark's own Kafka connector works with Exacta",
        "minutes",
        JAVA,
        ("EXACTA_TEST_SPARK_CONNECTOR=1 tests/spark_connector",),
    ),
    "spark-kafka": Suite(
        "source and sink write once on Apache Kafka as well, under both versions of the transaction protocol",
        "an hour",
        JAVA,
        (
            f"EXACTA_TEST_BROKER=kafka EXACTA_TEST_KILLS={{KILLS}} EXACTA_TEST_TRANSACTION_VERSION=2 {FAILURES}",
            f"EXACTA_TEST_BROKER=kafka EXACTA_TEST_KILLS={{KILLS}} EXACTA_TEST_TRANSACTION_VERSION=1 {FAILURES}",
            "EXACTA_TEST_BROKER=kafka EXACTA_TEST_KILLS={KILLS} EXACTA_TEST_SPARK_CONNECTOR=1 "
            "tests/spark_connector/test_killed.py",
        ),
        {"KILLS": "104"},
    ),
    "spark-cluster": Suite(
        "the sink writes once on a Spark cluster of two workers, whose processes are killed",
        "a quarter of an hour",
        "",
        ("EXACTA_TEST_SPARK_CLUSTER=1 EXACTA_TEST_KILLS={KILLS} tests/spark_cluster",),
        {"KILLS": "24"},
    ),
    "spark-kafka-cluster": Suite(
        "the same on three secured nodes of Apache Kafka",
        "a quarter of an hour",
        JAVA,
        ("EXACTA_TEST_SPARK_CLUSTER=1 EXACTA_TEST_KILLS={KILLS} EXACTA_TEST_BROKER=kafka tests/spark_cluster",),
        {"KILLS": "24"},
    ),
    "secured": Suite(
        "a secured Apache Kafka asks Exacta's own clients and common Kafka clients for the rights of "
        "docs/how-to/permissions.md, and the connections of Spark's source and sink are secured as on Exacta",
        "ten minutes",
        "`python -m benchmarks.kafka --secure DIR`, which runs beside it",
        (
            "EXACTA_TEST_SECURE={DIR} -n 0 tests/client/test_secured.py tests/rights",
            "EXACTA_TEST_SECURE={DIR} -n 0 -m spark tests/spark/test_secured.py",
        ),
        {"DIR": "secured"},
    ),
    "spark-4.2": Suite(
        "the oldest supported PySpark has the calls that source and sink lean on, and runs queries",
        "minutes",
        "",
        ("-m spark tests/spark/test_calls.py tests/spark/test_query.py tests/spark/test_reading.py",),
    ),
    "spark-packed": Suite(
        "executors get exacta from a packed environment",
        "minutes",
        "",
        ("EXACTA_TEST_PACKED=.venv-packed tests/packed",),
    ),
}


def commands(suite: Suite, arguments: list[str]) -> list[tuple[dict[str, str], list[str]]]:
    """Return what runs one after another: what the environment has in addition, and the command.

    A suite runs its sweeps whole, unless the caller names a share.
    """
    given = {name: os.environ.get(name, default) for name, default in suite.variables.items()}
    made = []
    for run in suite.runs:
        words = shlex.split(run.format(**given))
        set_by_run = dict(word.split("=", 1) for word in words if word.split("=")[0].isupper())
        environment = {VARIABLE: os.environ.get(VARIABLE) or WHOLE, **set_by_run}
        rest = words[len(set_by_run) :]
        if rest[0] == "-m" and rest[1].startswith("tests."):
            made.append((environment, [sys.executable, *rest]))
        else:
            made.append((environment, [sys.executable, "-m", "pytest", *rest, *arguments]))
    return made


def main(arguments: list[str]) -> int:
    """Run a suite until one of its runs fails; without a name, list them."""
    name, *rest = arguments or [""]
    if name not in SUITES:
        print(f"there is no suite {name!r}. " if name else "", end="")
        print("make test-with WHAT=... runs one of these:")
        for each, suite in SUITES.items():
            variables = "".join(f" {key}={value}" for key, value in suite.variables.items())
            print(f"  {each:20} {suite.proves} ({suite.takes}){variables}")
        return 2
    for environment, command in commands(SUITES[name], rest):
        status = subprocess.run(command, env={**os.environ, **environment}, check=False).returncode
        if status:
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
