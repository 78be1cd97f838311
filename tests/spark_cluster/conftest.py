"""A standalone Spark cluster for the session; only where `make test-spark-cluster` runs."""

import os

import pytest

WANTED = os.environ.get("EXACTA_TEST_SPARK_CLUSTER") == "1"
# Ten Java virtual machines are not for everybody.
collect_ignore_glob = [] if WANTED else ["test_*.py"]


@pytest.fixture(scope="session")
def spark_cluster(tmp_path_factory):
    from tests.spark_cluster.standalone import Standalone

    with Standalone(tmp_path_factory.mktemp("standalone")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def brokers(tmp_path_factory):
    from tests.spark_cluster.brokers import some_brokers

    with some_brokers(tmp_path_factory.mktemp("brokers")) as running:
        yield running
