"""Fixtures: a cluster for the test session, topics of it."""

import pytest

from tests.spark.clusters import a_cluster


@pytest.fixture(scope="session")
def bootstrap():
    with a_cluster() as servers:
        yield servers
