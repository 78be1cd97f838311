"""Fixtures: a cluster for the test session, topics of it."""

import pytest

from tests.spark.clusters import ELSEWHERE, a_cluster


@pytest.fixture(scope="session")
def bootstrap():
    with a_cluster() as servers:
        yield servers


@pytest.fixture(params=["one by one"] if ELSEWHERE else ["at once", "one by one"])
def way(request, monkeypatch):
    """How the sink ends a batch's transactions: Exacta knows both ways, any other cluster the second."""
    if request.param == "one by one":
        monkeypatch.setattr("exacta.spark.at_once.can_end_at_once", lambda *_: False)
    return request.param
