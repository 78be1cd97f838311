"""The lines and blocks of the pages that are not run, and why: another test has them, or they are no examples."""

from tests.pages.blocks import Block
from tests.pages.names import (
    BACKUP,
    BEGINNING_PULSAR,
    BEGINNING_SPARK,
    CLUSTERS,
    DATABASE,
    DECLARATIVE,
    DEPLOY,
    FROM_TESTCONTAINERS,
    INSTALL,
    JOINING,
    KEYS,
    MONITORING,
    MOVING,
    ONE_LOG,
    README,
    SPARK,
    TESTING,
    TUTORIAL,
)

# Lines that no run runs, and why. The first one that begins so counts; an empty line and a comment need none.
_AN_INDEX = "packages come from an index; tests/spark/installed.py makes such an environment"
_TEN_MINUTES = "it takes ten minutes; tests/verify runs it for seconds, `make test-with WHAT=verify` for longer"
_A_POSTGRESQL = "it takes a PostgreSQL; `make test-with WHAT=two-phase` has one"
_PACKED = "it takes a cluster; `make test-with WHAT=spark-packed` does so"
_A_SYSTEMD = "it takes root and a running systemd; tests/test_packaging.py has the unit verified"
_AN_IMAGE = "it takes podman; `make test-dist` runs the steps of the image as a script"
NOT_RUN = {
    (INSTALL, "pip install PATH/TO/exacta"): "`make test-dist` does so, with the wheel",
    (INSTALL, "pip install 'exacta-log[pulsar]'"): "tests/test_extras.py does so with another extra",
    (INSTALL, "exacta --version"): "tests/test_cli.py asks for it",
    (BEGINNING_SPARK, "pip install 'exacta-log[spark]'"): _AN_INDEX,
    (BEGINNING_PULSAR, "pip install 'exacta-log[pulsar]'"): _AN_INDEX,
    (README, "make demo"): "a target of the Makefile, with tests of its own",
    (README, "make test"): "this is what runs here",
    ("CONTRIBUTING.md", "make check"): "a target of the Makefile",
    ("CONTRIBUTING.md", "make test"): "this is what runs here",
    (README, "pip install ."): "`make test-dist` runs it, with the wheel",
    (README, "exacta serve &"): "the same",
    (README, "pip install 'exacta-log[spark]'"): _AN_INDEX,
    (TUTORIAL, "python -m venv tutorial && cd tutorial && . bin/activate"): "the environment of the tests is used",
    (TUTORIAL, "pip install 'PATH/TO/exacta[demo]'"): _AN_INDEX,
    ("docs/how-to/verify.md", "exacta verify --bootstrap-server 127.0.0.1:9092 --duration 600"): _TEN_MINUTES,
    ("docs/how-to/verify.md", "exacta verify --bootstrap-server 127.0.0.1:9092 --pulsar-url"): _TEN_MINUTES,
    ("docs/how-to/verify.md", "exacta verify --bootstrap-server 127.0.0.1:9092 --transaction-buffer"): _TEN_MINUTES,
    ("docs/how-to/verify.md", "    --restart-command"): _TEN_MINUTES,
    ("docs/reference/pulsar.md", "pip install 'exacta-log[pulsar]'"): _AN_INDEX,
    ("docs/reference/pulsar.md", "exacta serve --pulsar-listen"): "tests/server start it on a free port",
    ("docs/reference/pulsar.md", "  --web-listen"): "the same",
    **{
        ("docs/how-to/logins.md", start): "tests/pulsar_clients/test_python_logins.py runs the section's examples"
        for start in (
            "pulsar.tls.listen=",
            "tlsCertificateFilePath=",
            "tlsKeyFilePath=",
            "authentication",
            "tokenSecretKey=",
        )
    },
    ("docs/how-to/permissions.md", "exacta acls add"): "tests/rights/test_page.py runs it where access rules are on",
    **{
        ("docs/how-to/logins.md", start): "tests/pages/test_first_user.py does what the section says"
        for start in (
            "listeners=",
            "advertised.listeners=",
            "ssl.",
            "authorizer.class.name=",
            "exacta serve --config server.properties",
            "exacta: listening on",
            "exacta: there is no user",
            "bootstrap.servers=",
            "security.protocol=",
            "exacta users add admin",
            "sasl.mechanism=",
            "sasl.username=",
            "sasl.password=",
        )
    },
    **{
        ("docs/how-to/logins.md", start): "tests/server/test_login_clients.py has such a server, users and rules"
        for start in ("sasl.enabled", "sasl.oauthbearer")
    },
    ("docs/how-to/logins.md", "exacta acls add User:prometheus"): "tests/web/test_login.py has such a rule",
    **{
        ("docs/how-to/tls.md", start): "tests/server/test_configuration_file.py reads the file"
        for start in ("listeners=", "listener.", "advertised.listeners=", "ssl.")
    },
    ("docs/reference/pulsar.md", "  --set tlsCertificateFilePath"): "the same",
    ("docs/reference/pulsar.md", "pulsar-admin"): "Apache Pulsar's tool; tests/pulsar/test_rest.py asks what it asks",
    ("docs/reference/pulsar.md", "  --metadata"): "the same",
    (
        "docs/reference/ask.md",
        "exacta subscriptions ",
    ): "tests/pulsar/test_operating.py has a subscription",
    ("docs/reference/reset-subscription.md", "exacta subscriptions "): "the same",
    (MONITORING, "pip install 'exacta-log[web]'"): _AN_INDEX,
    (MONITORING, "exacta serve --web-listen"): "tests/metrics starts it on a free port",
    (MONITORING, "exacta config set broker-logger"): "tests/kafka/test_loggers.py asks what it asks",
    (DATABASE, "pip install 'exacta-log[postgres]'"): _AN_INDEX,
    (DATABASE, "database = exacta.Postgres("): _A_POSTGRESQL,
    **{
        (DEPLOY, start): _A_SYSTEMD
        for start in ("python3 -m venv", "/opt/exacta/bin/", "mkdir -p /etc/exacta", "system")
    },
    **{(DEPLOY, start): _AN_IMAGE for start in ("make dist", "podman ", "  --listen :9092", "  --config")},
    (SPARK, "export JAVA_HOME"): "tests/spark/test_installed.py does so where there is no other Java",
    (SPARK, "spark-submit job.py"): "the same",
    (CLUSTERS, "FROM your-spark-image"): "an image is made",
    (CLUSTERS, "COPY PATH/TO/exacta"): "the same",
    (CLUSTERS, "RUN pip install '/tmp/exacta[spark-worker]'"): "the same",
    (CLUSTERS, "python -m venv environment"): _PACKED,
    (CLUSTERS, "environment/bin/pip install"): _PACKED,
    (CLUSTERS, "environment/bin/venv-pack"): _PACKED,
    (CLUSTERS, "export PYSPARK_PYTHON"): _PACKED,
    (CLUSTERS, "spark-submit"): _PACKED,
}

_BOTH_SIDES = "it takes a Pulsar client, too; tests/pulsar/test_joint_transactions.py has both sides"

_JAVA = "it takes Java"
_AN_OPERATOR = "it takes root, and a machine of its own"
_A_PIPELINE = "it takes Spark's own command; tests/spark/test_declarative_pipelines.py runs it"

_WITH_PULSAR = "it takes a broker for both protocols; tests/one_log/test_keys.py runs it as it is printed"
_IN_JAVA = f"{_JAVA}; tests/pulsar_clients/test_java_keys.py runs it as it is printed"

# Blocks that are neither code nor output that a run could compare, by their first line.
NO_EXAMPLE = {
    (TESTING, "[pytest]"): "a file of settings; tests/testing/test_pytest_plugin.py has one",
    (FROM_TESTCONTAINERS, "# before"): "it takes a container",
    ("docs/reference/python-api.md", "with exacta.two_phase("): f"{DATABASE} has the same, which is run",
    (MONITORING, '{"status": "recovering"'): "tests/server/test_web_front.py asks for it",
    (MONITORING, '{"time": '): "tests/server/test_log_lines.py makes such a line",
    (MONITORING, "2026-"): "tests/engine/test_event_lines.py has such lines",
    (MONITORING, "scrape_configs:"): "Prometheus reads it",
    (MONITORING, "rule_files:"): "the same",
    (README, " Kafka clients"): "a drawing",
    (
        BEGINNING_PULSAR,
        "var client = PulsarClient",
    ): "it takes Java; `make test-with WHAT=pulsar` runs it as it is printed",
    ("docs/how-to/verify.md", "…"): "the output of ten minutes",
    **{
        ("docs/how-to/logins.md", start): "tests/pulsar_clients/test_python_logins.py runs it as it is printed"
        for start in ("import time", "from pathlib import Path", "import pulsar")
    },
    (DATABASE, "CREATE TABLE exacta_decisions"): "SQL; tests/databases/test_decisions.py compares it with the code",
    (MOVING, "# before"): "it takes Spark's own connector; `make test-with WHAT=spark-connector` has that",
    ("docs/explanation/spark-sink-protocol.md", "driver   InitProducerId(q-driver)"): "a drawing",
    ("docs/explanation/guarantees.md", " partition A"): "a drawing",
    ("docs/explanation/sidecar-topics.md", "                   slow writes"): "a drawing",
    ("docs/explanation/one-log.md", " orders, partition 0"): "a drawing",
    ("docs/explanation/architecture.md", "  Kafka's and "): "a drawing",
    ("docs/explanation/several-brokers.md", "clients -> broker 1"): "a drawing",
    (
        "docs/reference/ask.md",
        "orders-0, subscription billing",
    ): "the output of a broker with a history",
    (ONE_LOG, "producer.begin_transaction()"): _BOTH_SIDES,
    (ONE_LOG, "transfers, to Pulsar's clients"): "the output of a moment",
    (JOINING, "import exacta"): _BOTH_SIDES,
    (
        JOINING,
        "import java.io",
    ): "it takes Java; tests/pulsar_clients/test_java_joint_killed.py runs it as it is printed",
    (BACKUP, "systemctl stop"): _AN_OPERATOR,
    ("docs/how-to/configure.md", "exacta cluster accept-loss"): "it takes PostgreSQL that has lost commits",
    (
        "docs/how-to/configure.md",
        "exacta log copy",
    ): "it takes PostgreSQL; tests/server/cluster/test_processes.py does the same",
    (BACKUP, "fsfreeze"): _AN_OPERATOR,
    (BACKUP, "kill -STOP"): f"{_AN_OPERATOR}; tests/test_backup.py does the same",
    (DECLARATIVE, "# flows.py"): _A_PIPELINE,
    (DECLARATIVE, "name: orders"): _A_PIPELINE,
    (DECLARATIVE, "spark-pipelines run"): _A_PIPELINE,
    (DECLARATIVE, "the job named"): f"an error; {_A_PIPELINE}",
    (KEYS, "from confluent_kafka import"): _WITH_PULSAR,
    (KEYS, "import pulsar"): _WITH_PULSAR,
    (KEYS, "import mmh3"): _WITH_PULSAR,
    (KEYS, "import java.util.concurrent"): _IN_JAVA,
    (KEYS, "import com.google"): _IN_JAVA,
    (KEYS, "// asKafka"): "it takes Go; tests/pulsar_go/test_keys.py runs it as it is printed",
    (KEYS, "kgo.RecordPartitioner"): "it takes Go; tests/franz_go/test_franz_go.py runs it as it is printed",
}


def why_not_run(page: str, line: str) -> str | None:
    """Return why a line is not run, or None if it is."""
    return next((why for (where, start), why in NOT_RUN.items() if where == page and line.startswith(start)), None)


def why_no_example(block: Block) -> str | None:
    """Return why a block is none that is run, or None if it is one."""
    listed = NO_EXAMPLE.items()
    return next((why for (where, start), why in listed if where == block.page and block.text.startswith(start)), None)
