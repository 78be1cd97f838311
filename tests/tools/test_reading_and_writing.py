"""Console producer and consumer, and the tools that measure: what one writes the other reads, and transactions hold."""

import re

from tests.spark.clusters import read_committed
from tests.tools.bench import Bench


def read(bench: Bench, topic: str, count: int, *options: str) -> list[str]:
    """Return the first lines, this many, that the console consumer prints."""
    from_start = ("--topic", topic, "--from-beginning", "--timeout-ms", "30000")
    return bench.good("kafka-console-consumer", *from_start, "--max-messages", str(count), *options).lines


def test_what_is_typed_is_read(bench: Bench) -> None:
    topic = bench.topic()
    keyed = ("--reader-property", "parse.key=true", "--reader-property", "parse.headers=true")
    bench.good("kafka-console-producer", "--topic", topic, *keyed, stdin="h:1\tk\tone\nh:2\tl\ttwo\n")
    bench.good("kafka-console-producer", "--topic", topic, "--compression-codec=zstd", stdin="three\n")
    assert read(bench, topic, 3) == ["one", "two", "three"]
    shown = [
        text
        for name in ("key", "headers", "offset", "partition")
        for text in ("--formatter-property", f"print.{name}=true")
    ]
    assert read(bench, topic, 2, *shown) == [
        "Partition:0\tOffset:0\th:1\tk\tone",
        "Partition:0\tOffset:1\th:2\tl\ttwo",
    ]
    some = bench.good(
        "kafka-console-consumer", "--topic", topic, "--partition", "0", "--offset", "1", "--max-messages", "1"
    )
    assert (some.lines, some.err.strip()) == (["two"], "Processed a total of 1 messages")


def test_a_group_of_the_console_consumer_goes_on_where_it_was(bench: Bench) -> None:
    topic, group = bench.topic(), bench.name("group")
    bench.fill(topic, 3)
    together = ("--group", group, "--max-messages")
    first = bench.good("kafka-console-consumer", "--topic", topic, "--from-beginning", *together, "2")
    second = bench.good("kafka-console-consumer", "--topic", topic, *together, "1")
    assert first.lines + second.lines == ["v0", "v1", "v2"]


def test_the_level_of_isolation(bench: Bench) -> None:
    topic = bench.topic()
    producer = bench.producer(bench.name("id"))
    for value, end in ((b"aborted", producer.abort_transaction), (b"committed", producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.flush()
        end()
    producer.begin_transaction()
    producer.produce(topic, b"open")
    producer.flush()
    stable = ("--isolation-level", "read_committed")
    assert read(bench, topic, 3, "--isolation-level", "read_uncommitted") == ["aborted", "committed", "open"]
    assert read(bench, topic, 1, *stable) == ["committed"]
    waiting = ("--topic", topic, "--partition", "0", "--offset", "earliest", "--timeout-ms", "1000")
    assert "open" not in bench.run("kafka-console-consumer", *waiting, *stable).lines
    producer.commit_transaction()
    assert read(bench, topic, 2, *stable) == ["committed", "open"]


def test_performance_of_producer_and_consumer(bench: Bench) -> None:
    topic, transactional_id = bench.topic(), bench.name("id")
    much = ("--topic", topic, "--num-records", "3000", "--record-size", "100", "--throughput", "-1")
    plain = bench.good("kafka-producer-perf-test", *much)
    assert plain.lines[-1].startswith("3000 records sent, ")
    transactional = ("--transactional-id", transactional_id, "--transaction-duration-ms", "20")
    assert bench.good("kafka-producer-perf-test", *much, *transactional).lines[-1].startswith("3000 records sent, ")

    def ended() -> str:
        return bench.good("kafka-transactions", "describe", "--transactional-id", transactional_id).rows[1][4]

    bench.until(ended, lambda state: state == "CompleteCommit")
    head, figures = bench.good("kafka-consumer-perf-test", "--topic", topic, "--num-records", "6000").lines
    assert int(dict(zip(head.split(", "), figures.split(", "), strict=True))["data.consumed.in.nMsg"]) == 6000
    assert len(read_committed(bench.bootstrap, topic)) == 6000


def test_latency_from_end_to_end(bench: Bench) -> None:
    each = ("--topic", bench.topic(), "--num-records", "100", "--producer-acks", "all", "--record-size", "20")
    measured = bench.good("kafka-e2e-latency", *each)
    assert re.search(r"Avg latency: [\d.]+ ms", measured.out)
