"""kill -9 of Spark, of Python workers and of the broker, at every point of the sink's protocol and at random.

`EXACTA_TEST_KILLS` says how many; a hundred take ten minutes. A share of them is dealt (tests/shares.py).
`EXACTA_TEST_BROKER=kafka` puts an Apache Kafka in the broker's place, of transaction protocol
`EXACTA_TEST_TRANSACTION_VERSION`. A quarter as many kills befall a query whose user logs in at an Exacta, by TLS, and
has the rights that docs/how-to/permissions.md names, and no others.
"""

import os

import pytest

from tests.client.secured_exacta import secured_exacta
from tests.conformance.brokers import broker_name, broker_process
from tests.rights.page import rows
from tests.shares import share_of
from tests.spark import faults
from tests.spark.kill_campaign import Campaign
from tests.spark.kill_plan import Victim, plan
from tests.spark.secured_options import options_of

KILLS = int(os.environ.get("EXACTA_TEST_KILLS", "12"))
SEED = int(os.environ.get("EXACTA_TEST_SEED", "1"))

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300 + 60 * KILLS)]


def test_killed_at_every_point_of_the_protocol(tmp_path, reports):
    kills = plan(SEED, KILLS, chosen=share_of)
    with broker_process(tmp_path) as broker:
        campaign = Campaign(broker, tmp_path / "campaign", kills)
        found = campaign.run()
    reports.append(campaign.report(f"Exacta's sink on {broker_name()}, seed {SEED}", found))
    assert campaign.struck.total() == len(kills)
    assert found.exactly_once, reports[-1]


def test_killed_behind_tls_and_a_login_with_just_the_rights_of_the_page(tmp_path, reports):
    kills = plan(SEED, max(4, KILLS // 4), chosen=share_of)
    with secured_exacta(tmp_path / "secured") as broker:
        broker.allow(rules_of_a_query("stranger"))
        connection = {
            "kafka.bootstrap.servers": broker.access.listeners["SASL_SSL"],
            **options_of(broker.access, "SASL_SSL", user="stranger"),
        }
        options = {"transactional.id.prefix": "job"}
        campaign = Campaign(broker, tmp_path / "campaign", kills, connection=connection, options=options)
        found = campaign.run()
    reports.append(campaign.report(f"Exacta's sink by SASL_SSL and with its rights alone, seed {SEED}", found))
    assert campaign.struck.total() == len(kills)
    assert found.exactly_once, reports[-1]


def rules_of_a_query(user):
    """Return the rules that the page names for a stream that is read and one that is written."""
    page = {row.task: row for row in rows("Spark")}
    names = {"orders": "source-", "copy": "sink-"}  # a campaign's topics begin so
    rights = {*page["a stream is read"].needs, *page["a stream is written"].needs}
    for each in rights:
        rule = each.rule()._replace(principal=f"User:{user}")
        yield rule._replace(pattern="Prefixed", name=names[each.name]) if each.name in names else rule


def test_the_campaign_sees_the_repetitions_of_a_sink_that_writes_at_least_once(tmp_path, reports):
    # Where all tasks are done, all rows are in the log, and Spark does not know it: the batch is run again.
    kills = plan(SEED, 1, {Victim.SPARK: (faults.ALL_TASKS_DONE,)})
    with broker_process(tmp_path) as broker:
        options = {"delivery.guarantee": "at-least-once"}
        campaign = Campaign(broker, tmp_path / "campaign", kills, options=options)
        found = campaign.run()
    reports.append(campaign.report(f"a sink without transactions on {broker_name()}, seed {SEED}", found))
    assert found.twice > 0
    assert found.lost == 0
