"""Fixtures: a cluster for the test session, a client and a topic of it; certificates and a script for a secured one."""

import pytest
from benchmarks.kafka.security import Secured

from exacta.client.routing import Client
from tests.client.secured import Script
from tests.spark.clusters import a_cluster, new_topic


@pytest.fixture(scope="session")
def bootstrap():
    with a_cluster() as servers:
        yield servers


@pytest.fixture
def client(bootstrap):
    with Client(bootstrap) as client:
        yield client


@pytest.fixture
def topic(bootstrap):
    return new_topic(bootstrap, 2)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    return Secured.at(tmp_path_factory.mktemp("secured"), "127.0.0.1")


@pytest.fixture
def script(certificates):
    return Script(accounts=dict(certificates.accounts))
