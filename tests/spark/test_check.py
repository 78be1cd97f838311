"""`exacta.spark.check`: what is said of a job before its first batch, and that nothing is left of the asking."""

import os
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

import exacta
from exacta.client.errors import KafkaError, UnsupportedByBroker
from exacta.client.group_administration import list_groups
from exacta.client.routing import Client
from exacta.client.topics import READ, TopicAccess
from exacta.client.transactions import list_transactions
from exacta.protocol.kafka.errors import ErrorCode
from exacta.spark import CheckFailed, check
from tests.spark.clusters import new_topic

CHECK = sys.modules["exacta.spark.check"]
"""The module; the package shows the function of the same name."""

RUN = os.urandom(4).hex()
"""The parts of a name that this run gives to jobs: what they leave is told from what others do."""


def frame(streaming=True, **columns):
    types = {"string": StringType(), "int": IntegerType()}
    schema = StructType([StructField(name, types[kind]) for name, kind in (columns or {"value": "string"}).items()])
    return SimpleNamespace(schema=schema, isStreaming=streaming, sparkSession=SimpleNamespace())


@pytest.fixture
def options(bootstrap, tmp_path):
    return {"kafka.bootstrap.servers": bootstrap, "checkpointLocation": str(tmp_path), "transactional.id.prefix": RUN}


def left_on(bootstrap):
    with Client(bootstrap) as client:
        return list_transactions(client, RUN, states=()), list_groups(client, RUN), set(client.topic_names())


def test_a_job_that_can_run_and_nothing_is_left_of_the_asking(bootstrap, options):
    topic = new_topic(bootstrap, 1)
    before = left_on(bootstrap)
    report = check(frame(key="string", value="string"), options, topic=topic, **dict[str, Any]({"kafka.retries": 3}))
    assert report.problems == ()
    report.raise_if_failed()
    assert str(report).startswith("the job can run, as far as that can be told beforehand\n- note: options without eff")
    assert left_on(bootstrap) == before


def test_topics_that_do_not_exist_yet(bootstrap, options):
    before = left_on(bootstrap)
    named: dict[str, Any] = {"topic": f"{RUN}-a", "transaction.marker.topic": f"{RUN}-b"}
    report = check(frame(), options, **named)
    assert report.ok
    for topic in named.values():
        assert any(
            f"topic '{topic}' does not exist on {bootstrap}: the first batch cre" in each for each in report.notes
        )
    report = check(frame(value="string", topic="string"), {**options, "transaction.marker.topic": f"{RUN}-b"})
    assert report.ok
    assert any("rows name their topics in column 'topic'" in each for each in report.notes)
    assert left_on(bootstrap) == before


def test_everything_that_is_wrong_is_said_at_once(tmp_path):
    with exacta.Broker(auto_create_topics_enable=False, transaction_max_timeout_ms=60_000) as broker:
        at = broker.bootstrap_servers
        report = check(
            frame(value="int", size="int"),
            {"kafka.bootstrap.servers": at, "topic": "nowhere", "kafka.acks": "1", "transaction.scop": "batch"},
        )
    assert [each.partition(": ")[0] for each in report.problems] == [
        "option 'kafka.acks' can only be all or -1, not '1'",
        "format \"exacta\" does not know option 'transaction.scop' for writing; did you mean 'transaction.scope'?",
        "column 'size' cannot be written",
        "column 'value' must be of type string or binary, not int",
        "the brokers allow no transaction of 900000 ms",
        f"topic 'nowhere' does not exist on {at}, and the cluster creates none on demand",
    ]
    assert any("option 'checkpointLocation' is not among the options" in each for each in report.notes)
    with pytest.raises(CheckFailed, match=r"problems: 6\n- problem: option 'kafka.acks'"):
        report.raise_if_failed()


def test_options_that_lead_to_no_cluster():
    report = check(frame(key="string"), {"topic": "x"})
    assert report.problems == (
        "writing needs option 'kafka.bootstrap.servers' (host:port,host:port)",
        "writing needs a column 'value' (string or binary); there are: key",
    )


def test_a_cluster_that_cannot_be_reached():
    """A port on which nobody listens."""
    options = {"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "x", "kafka.delivery.timeout.ms": 300}
    (problem,) = check(frame(streaming=False), options).problems
    assert "the cluster at 127.0.0.1:1 did not answer as it should for 0.3 s" in problem


def test_a_checkpoint_that_cannot_be_read(bootstrap, options, tmp_path):
    (tmp_path / "metadata").write_text("nonsense")
    report = check(frame(), options, topic=new_topic(bootstrap, 1))
    assert [each[:40] for each in report.problems] == ["the query's id could not be read from th"]


def test_permissions_that_are_missing(bootstrap, options, monkeypatch):
    """The errors are those of a broker with access rules; `tests/rights/` and `test_secured.py` ask one."""

    def refused(client, producer, **_):
        assert producer.transactional_id.startswith(f"{RUN}-check-")
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "aborting a transaction")

    monkeypatch.setattr("exacta.client.trials.end_transaction", refused)
    monkeypatch.setattr(CHECK, "look_at_topic", lambda client, topic: TopicAccess(1, frozenset({READ})))
    report = check(frame(), options, topic="orders")
    begin = f"a client that does not log in lacks a permission on {bootstrap}: the sink needs "
    assert report.problems == (
        f"{begin}Describe and Write on transactional ids that begin with '{RUN}'",
        f"{begin}Describe, Write and Read on topic 'orders'",
    )


@pytest.mark.parametrize(
    "error",
    [
        KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "reading the settings", "a permission is missing"),
        UnsupportedByBroker("there is no such request"),
    ],
)
def test_a_time_out_is_tried_where_it_may_not_be_read_and_the_report_says_what_that_leaves(
    bootstrap, options, monkeypatch, error
):
    def refused(client, node_id, names):
        raise error

    monkeypatch.setattr(CHECK, "broker_configs", refused)
    topic = new_topic(bootstrap, 1)
    too_long = check(frame(), {**options, "kafka.transaction.timeout.ms": 2_000_000_000}, topic=topic)
    assert [each.partition(":")[0] for each in too_long.problems] == [
        "the brokers allow no transaction of 2000000000 ms"
    ]
    before = left_on(bootstrap)[0]
    report = check(frame(), options, topic=topic)
    assert report.ok
    (left,) = set(left_on(bootstrap)[0]) - set(before)
    assert any(f"was tried by transactional id '{left}', which the cluster keeps" in each for each in report.notes)
