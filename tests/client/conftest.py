"""Fixtures: a cluster for the test session, a client and a topic of it."""

import pytest

from exacta.client.routing import Client
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
