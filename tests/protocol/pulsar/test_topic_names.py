"""The names of topics: their forms, and what is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exacta.protocol.pulsar.topic_names import InvalidTopicName, TopicName, parse_topic_name


@pytest.mark.parametrize(
    ("name", "full", "partition"),
    [
        ("orders", "persistent://public/default/orders", None),
        ("shop/north/orders", "persistent://shop/north/orders", None),
        ("persistent://shop/north/orders", "persistent://shop/north/orders", None),
        ("non-persistent://shop/north/orders", "non-persistent://shop/north/orders", None),
        ("orders-partition-3", "persistent://public/default/orders-partition-3", 3),
        ("persistent://a/b/x-partition-1-partition-0", "persistent://a/b/x-partition-1-partition-0", 0),
        ("orders-partition-", "persistent://public/default/orders-partition-", None),
        ("orders-partition-03", "persistent://public/default/orders-partition-03", None),
        ("orders-partition-2147483648", "persistent://public/default/orders-partition-2147483648", None),
        ("-partition-1", "persistent://public/default/-partition-1", None),
        ("a:b=c é", "persistent://public/default/a:b=c é", None),
        ("persistent://pulsar/system/transaction_coordinator_assign-partition-0",) * 2 + (0,),
    ],
)
def test_a_name_has_one_full_form(name: str, full: str, partition: int | None) -> None:
    found = parse_topic_name(name)
    assert (str(found), found.partition) == (full, partition)
    assert parse_topic_name(full) == found
    assert found.topic == full.removesuffix(f"-partition-{partition}")


@pytest.mark.parametrize(
    "name",
    [
        "",
        "a/b",
        "a/b/c/d",
        "persistent://orders",
        "persistent://tenant/cluster/namespace/orders",
        "persistent://a/b/",
        "persistent:///b/c",
        "://a/b/c",
        "a b/c/d",
        "orders\n",
        "a\x00b",
    ],
)
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidTopicName, match="is not a topic's name"):
        parse_topic_name(name)


@given(st.text())
def test_any_text_is_read_or_refused(name: str) -> None:
    try:
        found = parse_topic_name(name)
    except InvalidTopicName:
        return
    assert parse_topic_name(str(found)) == found


def test_equal_topics_have_equal_names() -> None:
    assert parse_topic_name("orders") == TopicName(local_name="orders")
    assert len({parse_topic_name("orders"), parse_topic_name("public/default/orders")}) == 1
