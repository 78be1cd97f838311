"""Fixtures: a cluster for the test session, topics of it, and a place for reports that are shown at the end."""

import pytest

from tests.conformance.brokers import ON_KAFKA
from tests.spark import faults
from tests.spark.clusters import ELSEWHERE, a_cluster

_REPORTS = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def bootstrap():
    with a_cluster() as servers:
        yield servers


@pytest.fixture(params=["one by one"] if ELSEWHERE or ON_KAFKA else ["at once", "one by one"])
def way(request):
    """How the sink ends a batch's transactions: Exacta knows both ways, any other cluster the second."""
    if request.param == "one by one":
        request.getfixturevalue("one_by_one")
    return request.param


@pytest.fixture
def one_by_one(monkeypatch):
    """The sink ends the transactions of a decided batch one by one, as on Apache Kafka."""
    monkeypatch.setattr("exacta.spark.at_once.can_end_at_once", lambda *_: False)


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    """A session of two cores, whose tasks may fail thrice."""
    from exacta.spark import session

    faults.travel_by_value()
    with pytest.MonkeyPatch.context() as patch:
        # Spark's own Java search must not matter.
        patch.delenv("JAVA_HOME", raising=False)
        settings = {"spark.sql.shuffle.partitions": "2", "spark.local.dir": str(tmp_path_factory.mktemp("blocks"))}
        started = session("local[2,4]", quick_start=True, settings=settings)
        started.sparkContext.setLogLevel("OFF")
        started.dataSource.register(faults.FaultySource)
        yield started
        started.stop()


@pytest.fixture
def reports(pytestconfig):
    """What is appended here is shown when all tests have run, whether they passed or not."""
    return pytestconfig.stash.setdefault(_REPORTS, [])


def pytest_terminal_summary(terminalreporter, config):
    for report in config.stash.get(_REPORTS, []):
        terminalreporter.write_line("")
        for line in report.splitlines():
            terminalreporter.write_line(line)
