"""A standalone Spark cluster for the session; only where `make test-with WHAT=spark-cluster` runs."""

import os
from contextlib import ExitStack, suppress

import pytest

from tests.conformance.brokers import ON_KAFKA

WANTED = os.environ.get("EXACTA_TEST_SPARK_CLUSTER") == "1"
# Ten Java virtual machines are not for everybody.
collect_ignore_glob = [] if WANTED else ["test_*.py"]


@pytest.fixture(scope="session")
def networks():
    """Namespaces for the workers, or None: where there can be none, and for Kafka, whose nodes are on the loopback."""
    from tests.spark_cluster.networks import Networks, NoNetworks
    from tests.spark_cluster.standalone import WORKER_HOSTS

    with ExitStack() as stack:
        made = None
        if not ON_KAFKA:
            with suppress(NoNetworks):
                made = stack.enter_context(Networks(len(WORKER_HOSTS)))
        yield made


@pytest.fixture(scope="session")
def spark_cluster(tmp_path_factory, networks):
    from tests.spark_cluster.standalone import Standalone

    with Standalone(tmp_path_factory.mktemp("standalone"), networks) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def brokers(tmp_path_factory, spark_cluster):
    from tests.spark_cluster.brokers import some_brokers

    with some_brokers(tmp_path_factory.mktemp("brokers"), spark_cluster.host) as running:
        yield running
