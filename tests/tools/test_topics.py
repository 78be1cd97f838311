"""kafka-topics: create, list, describe, alter, delete."""

import re

from tests.tools.bench import Bench


def described(bench: Bench, topic: str) -> list[str]:
    """Return what is said of a topic, but for its id and for what an Apache Kafka of several nodes would need."""
    lines = bench.good("kafka-topics", "--describe", "--topic", topic).lines
    return [re.sub(r"TopicId: \S+|min\.insync\.replicas=1,?", "", line).strip().rstrip(",") for line in lines]


def test_a_topic_from_its_creation_to_its_end(bench: Bench) -> None:
    topic, node = bench.name("topic"), bench.node
    settings = ("--partitions", "2", "--config", "max.message.bytes=2000000")
    assert bench.good("kafka-topics", "--create", "--topic", topic, *settings).lines == [f"Created topic {topic}."]
    assert "already exists" in bench.bad("kafka-topics", "--create", "--topic", topic)
    assert bench.good("kafka-topics", "--create", "--topic", topic, "--if-not-exists").lines == []
    bench.until(lambda: bench.good("kafka-topics", "--list").lines, lambda found: topic in found)
    of_partition = (
        f"Topic: {topic}\tPartition: {{}}\tLeader: {node}\tReplicas: {node}\tIsr: {node}\tElr: \tLastKnownElr:"
    )
    head = f"Topic: {topic}\t\tPartitionCount: {{}}\tReplicationFactor: 1\tConfigs: max.message.bytes=2000000"
    assert described(bench, topic) == [head.format(2), *(of_partition.format(index) for index in range(2))]

    assert bench.good("kafka-topics", "--alter", "--topic", topic, "--partitions", "4").lines == []
    bench.until(
        lambda: described(bench, topic),
        lambda found: found == [head.format(4), *(of_partition.format(index) for index in range(4))],
    )
    assert "partition" in bench.bad("kafka-topics", "--alter", "--topic", topic, "--partitions", "2")

    assert bench.good("kafka-topics", "--delete", "--topic", topic).lines == []
    bench.until(lambda: bench.good("kafka-topics", "--list").lines, lambda found: topic not in found)
    assert f"Topic '{topic}' does not exist" in bench.bad("kafka-topics", "--delete", "--topic", topic)
    assert f"Topic '{topic}' does not exist" in bench.bad("kafka-topics", "--describe", "--topic", topic)
    assert bench.good("kafka-topics", "--delete", "--topic", topic, "--if-exists").lines == []


def test_several_topics_at_once(bench: Bench) -> None:
    plain, special = bench.topic(), bench.topic(max_message_bytes="1234567")
    listed = bench.good("kafka-topics", "--list", "--exclude-internal").lines
    assert {plain, special} <= set(listed)
    overridden = "\n".join(bench.good("kafka-topics", "--describe", "--topics-with-overrides").lines)
    assert f"Topic: {special}\t" in overridden
    pattern = f"{plain}|{special}"
    assert bench.good("kafka-topics", "--describe", "--topic", pattern).out.count("PartitionCount: 1") == 2
    for trouble in ("under-replicated", "unavailable", "under-min-isr", "at-min-isr"):
        found = bench.good("kafka-topics", "--describe", "--topic", pattern, f"--{trouble}-partitions").lines
        assert len(found) == (2 if trouble == "at-min-isr" else 0), trouble


def test_partitions_are_assigned_by_hand(bench: Bench) -> None:
    topic = bench.name("topic")
    bench.good("kafka-topics", "--create", "--topic", topic, "--replica-assignment", f"{bench.node},{bench.node}")
    bench.until(lambda: described(bench, topic), lambda found: len(found) == 3)
    assigned = ("--partitions", "3", "--replica-assignment", f"{bench.node},{bench.node},{bench.node}")
    bench.good("kafka-topics", "--alter", "--topic", topic, *assigned)
    bench.until(lambda: described(bench, topic), lambda found: len(found) == 4)


def test_what_one_broker_cannot_do_is_refused(bench: Bench) -> None:
    topic = bench.name("topic")
    create = ("kafka-topics", "--create", "--topic", topic)
    assert "replication factor" in bench.bad(*create, "--replication-factor", "3").lower()
    bench.bad(*create, "--replica-assignment", "77")
    assert "Unknown topic config name: no.such" in bench.bad(*create, "--config", "no.such=1")
    assert "max.message.bytes" in bench.bad(*create, "--config", "max.message.bytes=-1")
    bench.bad(*create, "--partitions", "0")
    bench.bad("kafka-topics", "--create", "--topic", "a/b")
    assert topic not in bench.good("kafka-topics", "--list").lines
