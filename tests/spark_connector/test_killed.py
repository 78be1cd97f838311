"""The campaign of `tests/spark/test_kill.py` against Spark's own sink: it loses nothing, and writes much twice.

That shows that the campaign would see it if Exacta's sink did.
"""

import os
from pathlib import Path

import pyspark
import pytest

from tests.conformance.brokers import broker_name, broker_process
from tests.spark.kill_campaign import Campaign
from tests.spark.kill_plan import OF_ANY_SINK, Victim, plan
from tests.spark_connector.connector import connector_jars

KILLS = int(os.environ.get("EXACTA_TEST_KILLS", "6"))
SEED = int(os.environ.get("EXACTA_TEST_SEED", "1"))
POINTS = {Victim.SPARK: OF_ANY_SINK, Victim.WORKER: OF_ANY_SINK[:1], Victim.BROKER: OF_ANY_SINK}

pytestmark = pytest.mark.timeout(300 + 60 * KILLS)


def test_spark_s_own_sink_repeats_rows(tmp_path, reports):
    jars = connector_jars(Path(pyspark.__file__).parent / "jars")
    with broker_process(tmp_path) as broker:
        campaign = Campaign(
            broker,
            tmp_path / "campaign",
            plan(SEED, KILLS, POINTS),
            sink_format="kafka",
            settings={"spark.jars": ",".join(map(str, jars))},
        )
        found = campaign.run()
    reports.append(campaign.report(f"Spark's own sink on {broker_name()}, seed {SEED}", found))
    assert found.twice > 0
    assert found.lost == 0
