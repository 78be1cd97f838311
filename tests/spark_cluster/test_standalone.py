"""The sink on a Spark cluster: executors are lost, drivers begin elsewhere, tasks run twice at once."""

import os

import pytest

from tests.spark import faults
from tests.spark.clusters import check_exactly, held_back
from tests.spark.kill_campaign import Campaign
from tests.spark.kill_plan import ON_A_CLUSTER, plan
from tests.spark.successors import ROWS, Query, ended

KILLS = int(os.environ.get("EXACTA_TEST_KILLS", "8"))
SEED = int(os.environ.get("EXACTA_TEST_SEED", "1"))

pytestmark = pytest.mark.timeout(600 + 60 * KILLS)


def test_killed_at_every_point_in_a_cluster(spark_cluster, brokers, tmp_path, reports):
    campaign = Campaign(
        brokers,
        tmp_path / "campaign",
        plan(SEED, KILLS, ON_A_CLUSTER),
        connection=brokers.connection,
        settings=spark_cluster.settings,
        master=spark_cluster.master,
        kill_executor=spark_cluster.kill_worker_of,
    )
    found = campaign.run()
    reports.append(campaign.report(f"Exacta's sink in {spark_cluster.name}, on {brokers.name}, seed {SEED}", found))
    assert campaign.struck.total() == KILLS
    assert found.exactly_once, reports[-1]


# A copy is started as soon as the other task has ended.
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.1",
}


def test_what_a_speculative_loser_left_open_is_swept(spark_cluster, brokers, tmp_path):
    """The first attempt stands still with everything written; its copy on the other worker wins."""
    settings = {**spark_cluster.settings, **SPECULATION}
    query = Query(
        brokers.bootstrap,
        tmp_path,
        lives=1,
        master=spark_cluster.master,
        settings=settings,
        connection=brokers.connection,
    )
    try:
        life, loser = query.begin_and_halt(faults.MARKER_WRITTEN)
        # Nobody lets it go on: the query comes to its end by the copy alone.
        assert ended(life) == ""
        assert held_back(query.bootstrap, query.sink) == {}
        check_exactly(query.bootstrap, query.sink, range(ROWS))
        faults.release(query.directory, loser)
    finally:
        query.lives.end()
