"""Source and sink on a secured Apache Kafka: `python -m benchmarks.kafka --secure`, named by `EXACTA_TEST_SECURE`."""

import os
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException

import exacta.spark
from exacta.client.group_administration import list_groups
from exacta.client.routing import Client
from exacta.client.transactions import list_transactions
from tests.client.secured import MECHANISMS, Access
from tests.spark.clusters import check_exactly, new_topic
from tests.spark.queries import fill, reading, run, writing

REAL = os.environ.get("EXACTA_TEST_SECURE")
pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(200),
    pytest.mark.skipif(not REAL, reason="EXACTA_TEST_SECURE names no secured Apache Kafka"),
]
MODULES = {"PLAIN": "plain.PlainLoginModule"}


@pytest.fixture(scope="module")
def access():
    assert REAL is not None
    return Access.of(Path(REAL))


def options_of(access, protocol, mechanism="SCRAM-SHA-512", user="exacta", password=None):
    module = MODULES.get(mechanism, "scram.ScramLoginModule")
    login = f'username="{user}" password="{password or access.accounts[user]}";'
    sasl = {
        "kafka.sasl.mechanism": mechanism,
        "kafka.sasl.jaas.config": f"org.apache.kafka.common.security.{module} required {login}",
    }
    return {
        "kafka.security.protocol": protocol,
        **(sasl if protocol.startswith("SASL") else {}),
        **({"kafka.ssl.truststore.location": access.ca} if protocol.endswith("SSL") else {}),
        **({"kafka.ssl.keystore.location": access.client} if protocol == "SSL" else {}),
    }


@pytest.mark.parametrize(("protocol", "mechanism"), [("SSL", ""), *(("SASL_SSL", each) for each in MECHANISMS)])
def test_rows_go_through_once(spark, access, tmp_path, protocol, mechanism):
    plain, secured = access.listeners["PLAINTEXT"], access.listeners[protocol]
    source, sink = new_topic(plain, 2), new_topic(plain, 3)
    fill(plain, source, range(1000))
    options = options_of(access, protocol, mechanism)
    rows = reading(spark, secured, source, **options).select("key", "value")
    run(writing(rows, secured, tmp_path, topic=sink, **options))
    check_exactly(plain, sink, range(1000))


def test_a_wrong_password_and_a_missing_permission_are_said_in_a_sentence(spark, access, tmp_path):
    plain, secured = access.listeners["PLAINTEXT"], access.listeners["SASL_SSL"]
    topic = new_topic(plain, 1)
    fill(plain, topic, range(10))
    wrong = options_of(access, "SASL_SSL", password="not-the-password")
    with pytest.raises(StreamingQueryException) as refused:
        run(writing(reading(spark, secured, topic, **wrong), secured, tmp_path / "a", topic=topic, **wrong))
    assert "refused user 'exacta' by SCRAM-SHA-512: Authentication failed" in str(refused.value)
    assert "not-the-password" not in str(refused.value)
    stranger = options_of(access, "SASL_SSL", user="stranger")
    with pytest.raises(StreamingQueryException) as refused:
        run(writing(reading(spark, secured, topic, **stranger), secured, tmp_path / "b", topic=topic, **stranger))
    assert f"user 'stranger' needs the permission Describe on topic '{topic}'" in str(refused.value)


def test_a_check_says_what_is_not_permitted_and_leaves_nothing(spark, access):
    plain, secured = access.listeners["PLAINTEXT"], access.listeners["SASL_SSL"]
    topic = new_topic(plain, 1)
    rows = spark.range(1).selectExpr("string(id) as value")
    named = {"kafka.bootstrap.servers": secured, "topic": topic, "transactional.id.prefix": "checked"}
    assert exacta.spark.check(rows, named, **options_of(access, "SASL_SSL")).ok
    report = exacta.spark.check(rows, named, **options_of(access, "SASL_SSL", user="stranger"))
    begin = f"user 'stranger' lacks a permission on {secured}: the sink needs "
    assert report.problems == (
        f"{begin}Describe and Write on transactional ids that begin with 'checked'",
        f"{begin}Describe and Read on groups that begin with 'checked'",
        f"{begin}Describe, Write and Read on topic '{topic}'",
    )
    with Client(plain) as client:
        assert list_transactions(client, "checked", states=()) == list_groups(client, "checked") == []
    (wrong,) = exacta.spark.check(rows, named, **options_of(access, "SASL_SSL", password="no")).problems
    assert "refused user 'exacta' by SCRAM-SHA-512: Authentication failed" in wrong
