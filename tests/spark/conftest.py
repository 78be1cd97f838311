"""Fixtures: a cluster and a Spark session."""

import pytest

from tests.conformance.brokers import ON_KAFKA
from tests.spark.by_hand import Query
from tests.spark.clusters import ELSEWHERE, a_cluster
from tests.spark.shared_session import end_shared_session, shared_session


@pytest.fixture(scope="session")
def bootstrap():
    with a_cluster() as servers:
        yield servers


@pytest.fixture(params=["one by one"] if ELSEWHERE or ON_KAFKA else ["at once", "one by one"])
def way(request):
    """The way in which the sink ends a batch's transactions.

    Exacta knows both ways, any other cluster only the second.
    """
    if request.param == "one by one":
        request.getfixturevalue("one_by_one")
    return request.param


@pytest.fixture
def query(bootstrap):
    """A query by hand, without Spark."""
    made = Query(bootstrap)
    yield made
    made.client.close()


@pytest.fixture
def one_by_one(monkeypatch):
    """The sink ends the transactions of a decided batch one by one, as on Apache Kafka."""
    monkeypatch.setattr("exacta.spark.sink.end_together.can_end_at_once", lambda *_: False)


@pytest.fixture
def spark(tmp_path_factory):
    """The session that the tests of this process share."""
    return shared_session(tmp_path_factory)


def pytest_sessionfinish() -> None:
    """Stop the session that the tests have shared."""
    end_shared_session()
