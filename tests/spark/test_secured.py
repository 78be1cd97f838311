"""Source and sink on a secured Exacta, and on the secured Apache Kafka that `EXACTA_TEST_SECURE` names.

`python -m benchmarks.kafka --secure` is such a one.
"""

from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException

import exacta.spark
from exacta.client.group_administration import list_groups
from exacta.client.routing import Client
from exacta.client.transactions import list_transactions
from tests.client.secured import MECHANISMS, REAL, Access
from tests.client.secured_exacta import secured_exacta
from tests.spark.clusters import check_exactly, new_topic
from tests.spark.queries import fill, reading, run, writing
from tests.spark.secured_options import options_of

pytestmark = [pytest.mark.spark, pytest.mark.timeout(200)]


@pytest.fixture(scope="module", params=["exacta", "real"])
def access(request, tmp_path_factory):
    if request.param == "exacta":
        with secured_exacta(tmp_path_factory.mktemp("secured")) as broker:
            yield broker.access
    elif REAL is None:
        pytest.skip("EXACTA_TEST_SECURE names no secured Apache Kafka")
    else:
        yield Access.of(Path(REAL))


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
