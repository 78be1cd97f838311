"""kafka-get-offsets and kafka-delete-records."""

import json
from pathlib import Path

from tests.tools.bench import FOR_EVER, Bench

FIRST_MS = 1_700_000_000_000


def at(bench: Bench, topic: str, time: str) -> list[str]:
    """Return offsets by partition; a partition without one is left out."""
    result = bench.good("kafka-get-offsets", "--topic", topic, "--time", time)
    assert result.err == ""
    return [line.removeprefix(f"{topic}:") for line in result.lines]


def test_offsets_at_all_times(bench: Bench) -> None:
    topic = bench.topic(3, **FOR_EVER)
    bench.fill(topic, 10, first_time=FIRST_MS)
    bench.fill(topic, 4, partition=1, first_time=FIRST_MS)
    for latest in ("-1", "latest"):
        assert at(bench, topic, latest) == ["0:10", "1:4", "2:0"]
    for earliest in ("-2", "earliest", "-4", "earliest-local"):
        assert at(bench, topic, earliest) == ["0:0", "1:0", "2:0"], earliest
    for newest in ("-3", "max-timestamp"):
        assert at(bench, topic, newest) == ["0:9", "1:3"]
    for tiered in ("-5", "latest-tiered"):
        assert at(bench, topic, tiered) == []
    assert at(bench, topic, str(FIRST_MS)) == ["0:0", "1:0"]
    assert at(bench, topic, str(FIRST_MS + 2_500)) == ["0:3", "1:3"]
    assert at(bench, topic, str(FIRST_MS + 5_000)) == ["0:5"]
    assert at(bench, topic, str(FIRST_MS + 9_001)) == []


def test_offsets_of_chosen_partitions(bench: Bench) -> None:
    topic = bench.topic(3)
    chosen = ("kafka-get-offsets", "--topic-partitions", f"{topic}:1-3")
    assert bench.good(*chosen).lines == [f"{topic}:1:0", f"{topic}:2:0"]
    assert bench.good("kafka-get-offsets", "--topic", topic, "--partitions", "0,2").lines == [
        f"{topic}:0:0",
        f"{topic}:2:0",
    ]
    missing = bench.name("missing")
    assert "Could not match any topic-partitions" in bench.bad("kafka-get-offsets", "--topic", missing)


def test_markers_and_open_transactions_count_among_offsets(bench: Bench) -> None:
    topic = bench.topic()
    producer = bench.producer(bench.name("id"))
    producer.begin_transaction()
    producer.produce(topic, b"v")
    producer.commit_transaction()
    bench.until(lambda: at(bench, topic, "-1"), lambda found: found == ["0:2"])
    producer.begin_transaction()
    producer.produce(topic, b"open")
    producer.flush()
    assert at(bench, topic, "-1") == ["0:3"]
    producer.abort_transaction()
    bench.until(lambda: at(bench, topic, "-1"), lambda found: found == ["0:4"])


def deleted(bench: Bench, folder: Path, topic: str, *offsets: int) -> tuple[int, list[str]]:
    """Delete records before an offset of each partition, from 0 on; return status and what is said of each."""
    wanted = [{"topic": topic, "partition": index, "offset": offset} for index, offset in enumerate(offsets)]
    file = folder / "offsets.json"
    file.write_text(json.dumps({"version": 1, "partitions": wanted}))
    result = bench.run("kafka-delete-records", "--offset-json-file", str(file))
    assert result.lines[:2] == ["Executing records delete operation", "Records delete operation completed:"]
    return result.status, sorted(line.removeprefix(f"partition: {topic}-") for line in result.lines[2:])


def test_records_are_deleted(bench: Bench, folder: Path) -> None:
    topic = bench.topic(2, **FOR_EVER)
    bench.fill(topic, 10, first_time=FIRST_MS)
    bench.fill(topic, 4, partition=1, first_time=FIRST_MS)
    assert deleted(bench, folder, topic, 3, -1) == (0, ["0\tlow_watermark: 3", "1\tlow_watermark: 4"])
    assert at(bench, topic, "earliest") == ["0:3", "1:4"]
    assert at(bench, topic, "latest") == ["0:10", "1:4"]
    assert at(bench, topic, str(FIRST_MS)) == ["0:3"]
    read = ("--topic", topic, "--partition", "0", "--offset", "earliest", "--max-messages", "1")
    assert bench.good("kafka-console-consumer", *read).lines == ["v3"]
    # Again is harmless, and an offset before is no way back.
    assert deleted(bench, folder, topic, 2, 4) == (0, ["0\tlow_watermark: 3", "1\tlow_watermark: 4"])


def test_records_that_are_not_there_cannot_be_deleted(bench: Bench, folder: Path) -> None:
    topic = bench.topic()
    bench.fill(topic, 2)
    _, (said,) = deleted(bench, folder, topic, 3)
    assert "OffsetOutOfRangeException" in said
    assert at(bench, topic, "earliest") == ["0:0"]
