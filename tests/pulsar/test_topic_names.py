"""The names of topics in the log: legal for Kafka, the same for all forms of a name, and never one for two topics."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exacta.protocol.pulsar.topic_names import InvalidTopicName, TopicName, parse_topic_name
from exacta.pulsar.topic_names import coordinator_partition, kafka_name, pulsar_name

_PARTS = st.text(alphabet="ab.-_=:", min_size=1, max_size=4)
_LOCALS = st.one_of(
    st.text(alphabet="ab._-/2Eé", min_size=1, max_size=6),
    st.builds("pulsar..public..default..{}".format, st.text(alphabet="ab._-2E", max_size=5)),
    st.builds("pulsar..{}..{}..{}".format, _PARTS, _PARTS, _PARTS),
)
_NAMES = st.builds(
    lambda tenant, namespace, local: TopicName(tenant=tenant, namespace=namespace, local_name=local),
    st.one_of(st.just("public"), _PARTS),
    st.one_of(st.just("default"), _PARTS),
    _LOCALS,
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("orders", "orders"),
        ("public/default/orders", "orders"),
        ("persistent://public/default/orders", "orders"),
        ("persistent://public/default/orders-partition-3", "orders"),
        ("persistent://acme/shop/orders", "pulsar..acme..shop..orders"),
        ("persistent://acme/shop/a.b", "pulsar..acme..shop..a.2Eb"),
        ("persistent://public/default/..", "pulsar..public..default...2E.2E"),
        ("persistent://public/default/über", "pulsar..public..default...C3.BCber"),
        (
            "persistent://public/default/pulsar..acme..shop..orders",
            "pulsar..public..default..pulsar.2E.2Eacme.2E.2Eshop.2E.2Eorders",
        ),
        ("persistent://public/default/pulsar..acme..shop", "pulsar..acme..shop"),
    ],
)
def test_a_topic_has_one_name_in_the_log(name: str, expected: str) -> None:
    assert kafka_name(parse_topic_name(name)) == expected


@given(_NAMES, _NAMES)
def test_two_topics_never_have_one_name(first: TopicName, second: TopicName) -> None:
    assert (kafka_name(first) == kafka_name(second)) is (first == second)


@given(_NAMES)
def test_the_way_back_leads_to_the_same_topic(name: TopicName) -> None:
    written = kafka_name(name)
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,249}", written)
    assert written not in (".", "..")
    assert pulsar_name(written) == name


@pytest.mark.parametrize("name", ["non-persistent://public/default/x", "a/b/" + "x" * 250, "é" * 80])
def test_names_that_no_topic_of_the_log_has(name: str) -> None:
    with pytest.raises(InvalidTopicName):
        kafka_name(parse_topic_name(name))


@pytest.mark.parametrize("suffix", ["", "-partition-0"])
def test_the_coordinators_topic_is_known(suffix: str) -> None:
    assert coordinator_partition(parse_topic_name(f"persistent://pulsar/system/transaction_coordinator_assign{suffix}"))
    assert not coordinator_partition(parse_topic_name(f"transaction_coordinator_assign{suffix}"))
