"""kafka-configs: of topics, brokers and what else can be configured."""

import re

from tests.tools.bench import Bench


def settings(bench: Bench, topic: str) -> list[str]:
    """Return what is set for a topic, but for what an Apache Kafka of several nodes would need."""
    lines = bench.good("kafka-configs", "--describe", "--entity-type", "topics", "--entity-name", topic).lines
    assert lines[0] == f"Dynamic configs for topic {topic} are:"
    return [line.split()[0] for line in lines[1:] if not line.strip().startswith("min.insync.replicas")]


def test_settings_of_a_topic(bench: Bench) -> None:
    topic = bench.topic()
    of_topic = ("--entity-type", "topics", "--entity-name", topic)
    done = [f"Completed updating config for topic {topic}."]
    assert settings(bench, topic) == []
    changed = "max.message.bytes=123456,message.timestamp.type=LogAppendTime"
    assert bench.good("kafka-configs", "--alter", *of_topic, "--add-config", changed).lines == done
    both = ["max.message.bytes=123456", "message.timestamp.type=LogAppendTime"]
    bench.until(lambda: settings(bench, topic), lambda found: found == both)
    bench.good("kafka-configs", "--alter", *of_topic, "--delete-config", "max.message.bytes")
    bench.until(lambda: settings(bench, topic), lambda found: found == both[1:])
    # What was not set may be deleted.
    assert bench.good("kafka-configs", "--alter", *of_topic, "--delete-config", "max.message.bytes").lines == done
    described = bench.good("kafka-configs", "--describe", "--all", *of_topic).out
    assert "synonyms={DYNAMIC_TOPIC_CONFIG:message.timestamp.type=LogAppendTime, " in described
    names = set(re.findall(r"^  ([a-z.]+)=", described, re.MULTILINE))
    assert {"cleanup.policy", "compression.type", "max.message.bytes", "retention.ms"} <= names


def test_what_is_set_has_its_effect(bench: Bench) -> None:
    topic = bench.topic()
    change = ("--alter", "--entity-type", "topics", "--entity-name", topic, "--add-config")
    bench.good("kafka-configs", *change, "message.timestamp.type=LogAppendTime,max.message.bytes=1000")
    bench.until(lambda: len(settings(bench, topic)), lambda found: found == 2)

    def times() -> list[int]:
        bench.fill(topic, 1, first_time=1_000_000)
        shown = ("--formatter-property", "print.timestamp=true", "--timeout-ms", "500", "--from-beginning")
        lines = bench.run("kafka-console-consumer", "--topic", topic, *shown).lines
        return [int(line.split("\t")[0].removeprefix("LogAppendTime:")) for line in lines if "LogAppendTime" in line]

    # Apache Kafka's log may still have the old settings when they can be read already.
    assert bench.until(times, bool)[-1] > 1_000_000
    errors: list[object] = []
    producer = bench.producer()
    producer.produce(topic, b"x" * 2000, on_delivery=lambda error, _: errors.append(error.name()))
    producer.flush(30)
    assert errors == ["MSG_SIZE_TOO_LARGE"]


def test_wrong_settings_are_refused_by_name(bench: Bench) -> None:
    topic = bench.topic()
    change = ("kafka-configs", "--alter", "--entity-type", "topics", "--entity-name")
    refused = bench.bad(*change, topic, "--add-config", "no.such=1")
    assert "InvalidConfigurationException: Unknown topic config name: no.such" in refused
    assert "InvalidConfigurationException" in bench.bad(*change, topic, "--add-config", "max.message.bytes=many")
    missing = bench.bad(*change, bench.name("missing"), "--add-config", "max.message.bytes=1")
    assert "UnknownTopicOrPartitionException" in missing
    assert settings(bench, topic) == []


def test_what_has_no_settings(bench: Bench) -> None:
    describe = ("kafka-configs", "--describe", "--entity-type")
    named = ("--entity-name", bench.node)
    assert bench.good(*describe, "brokers", *named).lines == [f"Dynamic configs for broker {bench.node} are:"]
    every = bench.good(*describe, "brokers", "--all", *named).out
    assert "message.max.bytes=1048588 sensitive=false synonyms={" in every
    assert bench.good(*describe, "clients").lines == []
    assert bench.good(*describe, "users").lines == []
