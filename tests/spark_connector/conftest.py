"""A Spark session with the connector's jars, and an Exacta for it; only in the suite `spark-connector`."""

import itertools
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

WANTED = os.environ.get("EXACTA_TEST_SPARK_CONNECTOR") == "1"
# Elsewhere there is another PySpark, and no Maven: nothing here is even imported.
collect_ignore_glob = [] if WANTED else ["test_*.py"]

if WANTED:
    import pyspark
    from pyspark.sql import SparkSession

    import exacta
    from tests.spark_connector.connector import connector_jars

_numbers = itertools.count()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator["SparkSession"]:
    """One session for all tests."""
    # The workers of format "exacta" must be this interpreter: Spark would take whatever `python3` is.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    jars = connector_jars(Path(pyspark.__file__).parent / "jars")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("spark-connector")
        .config("spark.jars", ",".join(str(jar) for jar in jars))
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def bootstrap() -> Iterator[str]:
    """Exacta, unless EXACTA_TEST_BOOTSTRAP names another broker."""
    if given := os.environ.get("EXACTA_TEST_BOOTSTRAP"):
        yield given
    else:
        with exacta.Broker(num_partitions=3) as broker:
            yield broker.bootstrap_servers


@pytest.fixture
def topic(bootstrap: str) -> str:
    """A new topic with three partitions."""
    from confluent_kafka.admin import AdminClient, NewTopic

    name = f"spark-{os.getpid()}-{next(_numbers)}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, 3, 1)])[name].result(30)
    return name
