"""GET_TOPICS_OF_NAMESPACE: which topics are listed, patterns, hashes and bounds; consumers of a pattern."""

import re
from typing import Any

import pulsar
import pytest

import exacta
from exacta.ports.authorizer import Operation
from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.frames import build_frame
from exacta.pulsar.topic_names import names_in
from tests.kafka.access_rules import Rules
from tests.pulsar.by_hand import Broker, send_frame
from tests.pulsar.wire import Wire, client, running

NAMESPACE = "persistent://public/default"


def topics(wire: Wire, **fields: Any) -> Any:
    """Ask for the topics of a namespace; return the answer."""
    fields.setdefault("namespace", "public/default")
    return wire.request(pb.CommandGetTopicsOfNamespace(**fields))


def local_names(wire: Wire, **fields: Any) -> list[str]:
    return [each.rpartition("/")[2] for each in topics(wire, **fields).topics]


@pytest.fixture
def named(broker: exacta.Broker, wire: Wire) -> Wire:
    """A connection to a broker that has topics of three namespaces, and the cluster's own."""
    for number, name in enumerate(("b", "a", "acme/shop/c", "acme/sho/d", "public/default/e=f")):
        wire.open_producer(name, number)
    return wire


def test_the_topics_of_a_namespace_are_listed(named: Wire) -> None:
    answer = topics(named)
    assert answer.topics == [f"{NAMESPACE}/a", f"{NAMESPACE}/b", f"{NAMESPACE}/e=f"]
    assert (answer.filtered, answer.changed) == (False, True)
    assert topics(named, namespace="acme/shop").topics == ["persistent://acme/shop/c"]
    assert topics(named, namespace="acme/absent").topics == []
    mode = pb.CommandGetTopicsOfNamespace
    assert local_names(named, mode=mode.ALL) == ["a", "b", "e=f"]
    assert local_names(named, mode=mode.NON_PERSISTENT) == []


@pytest.mark.parametrize("namespace", ["", "public", "public/", "/default", "public/default/a"])
def test_what_is_no_namespace_is_refused(wire: Wire, namespace: str) -> None:
    refused = topics(wire, namespace=namespace)
    assert (type(refused), refused.error) == (pb.CommandError, pb.ServerError.InvalidTopicName)
    assert "tenant/namespace" in refused.message


def test_every_partition_is_listed_and_a_pattern_means_the_topic() -> None:
    with running(num_partitions=2) as broker:
        wire = Wire(broker.pulsar_url)
        wire.open_producer("orders")
        expected = ["orders-partition-0", "orders-partition-1"]
        assert local_names(wire) == expected
        assert local_names(wire, topics_pattern=f"{NAMESPACE}/orders") == expected
        assert local_names(wire, topics_pattern=f"{NAMESPACE}/orders-partition-1") == []
        wire.close()


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (f"{NAMESPACE}/(a|x)", ["a"]),
        ("public/default/[ab]", ["a", "b"]),
        (".*", ["a", "b", "e=f"]),
        (rf"\Q{NAMESPACE}/a\E", ["a"]),
        ("a", []),
        ("public/default/A", []),
    ],
)
def test_a_pattern_is_compared_with_whole_names(named: Wire, pattern: str, expected: list[str]) -> None:
    answer = topics(named, topics_pattern=pattern)
    assert [each.rpartition("/")[2] for each in answer.topics] == expected
    assert answer.filtered


@pytest.mark.parametrize("pattern", ["(", "public/default/(?!a).*", "(a{1,500}){1,500}"])
def test_a_pattern_that_re2_does_not_take_filters_nothing(named: Wire, pattern: str) -> None:
    answer = topics(named, topics_pattern=pattern)
    assert (len(answer.topics), answer.filtered) == (3, False)


def test_a_client_that_knows_the_list_is_told_so(named: Wire) -> None:
    first = topics(named)
    again = topics(named, topics_hash=first.topics_hash)
    assert (list(again.topics), again.changed, again.topics_hash) == ([], False, first.topics_hash)
    named.open_producer("new", 9)
    later = topics(named, topics_hash=first.topics_hash)
    assert (len(later.topics), later.changed) == (4, True)


def test_hashes_are_those_of_apache_pulsar(wire: Wire) -> None:
    """They were given by Apache Pulsar 4.2.4."""
    assert topics(wire).topics_hash == "00000000"
    wire.open_producer("public/lsn1/b")
    assert topics(wire, namespace="public/lsn1").topics_hash == "3511c52f"


def test_an_answer_is_no_longer_than_a_frame() -> None:
    with running(pulsar_max_message_size=1 << 16, num_partitions=150) as broker:
        wire = Wire(broker.pulsar_url)
        for number in range(2):
            wire.open_producer(f"{'x' * 200}{number}", number)
        refused = topics(wire)
        assert (type(refused), refused.error) == (pb.CommandError, pb.ServerError.NotAllowedError)
        assert "the 300 topics and partitions of public/default take more than the 65536 bytes" in refused.message
        assert len(topics(wire, topics_pattern=".*x1").topics) == 150
        wire.close()


def test_a_list_waits_until_what_was_sent_before_it_is_answered(wire: Wire) -> None:
    """It may be long, so that one connection has one of them in memory."""
    wire.open_producer("t")
    asked = pb.CommandGetTopicsOfNamespace(request_id=7, namespace="public/default")
    wire.send_bytes(send_frame(b"x") + b"".join(map(build_frame, (asked, asked))) + send_frame(b"y", sequence=1))
    kinds = [type(wire.receive()).__name__ for _ in range(4)]
    listed = "CommandGetTopicsOfNamespaceResponse"
    assert kinds == ["CommandSendReceipt", listed, listed, "CommandSendReceipt"]


def test_names_of_the_log_that_mean_something_else_are_left_out() -> None:
    """A written name that is none, and one that Pulsar's clients take for a partition."""
    written = [f"pulsar..acme..shop..{each}" for each in ("c", "d.zz", "e.2Ff", "f-partition-1")]
    names = ["a", "pulsar..x", "a-partition-1", "a-partition-x", *written]
    assert [local for _, local in names_in("public", "default", names)] == [
        "a",
        "pulsar..x",
        "a-partition-x",
        "pulsar..acme..shop..d.zz",
    ]
    assert list(names_in("acme", "shop", names)) == [("pulsar..acme..shop..c", "c")]


def test_the_real_client_subscribes_to_a_pattern() -> None:
    with running(num_partitions=2) as broker, client(broker.pulsar_url) as opened:
        for name in ("orders-1", "orders-2", "other"):
            producer = opened.create_producer(name)
            producer.send(name.encode())
            producer.close()
        consumer = opened.subscribe(
            re.compile(f"{NAMESPACE}/orders-.*"), "s", initial_position=pulsar.InitialPosition.Earliest
        )
        assert {consumer.receive(10_000).data() for _ in range(2)} == {b"orders-1", b"orders-2"}


def test_what_a_client_may_not_see_is_left_out() -> None:
    broker = Broker(Rules(lambda operation, resource: (operation, resource.name) != (Operation.DESCRIBE, "hidden")))
    client = broker.connect()
    for number, name in enumerate(("hidden", "seen")):
        client.ask(pb.CommandProducer(topic=name, producer_id=number, request_id=number))
    answer = client.ask(pb.CommandGetTopicsOfNamespace(request_id=9, namespace="public/default"))
    assert answer.topics == [f"{NAMESPACE}/seen"]
    broker.end()
