"""Readers of streams and batches find where they begin and end, which topics they read, and how to cut the work."""

import json
import time

import pytest
from confluent_kafka import Producer
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

from exacta.client.routing import Client
from exacta.spark.datasource import ExactaDataSource
from exacta.spark.error_sentences import ClusterError
from exacta.spark.options import OptionError
from exacta.spark.source import source as source_module
from exacta.spark.source import subscription
from exacta.spark.source.planning import DataLost
from tests.spark.clusters import held_back, new_topic, on_marker_topics
from tests.spark.readers import batch_of, offsets_of, produced, reader_of, rows_between, rows_of

DAY_MS = 1_700_000_000_000


def timed(bootstrap, topic, times_by_partition):
    producer = Producer({"bootstrap.servers": bootstrap})
    for partition, times_ms in times_by_partition.items():
        for time_ms in times_ms:
            producer.produce(topic, value=b"%d" % time_ms, partition=partition, timestamp=DAY_MS + time_ms)
            producer.flush()  # a batch for each


def json_of(topic, values):
    return json.dumps({topic: values})


def test_a_stream_begins_at_a_time(bootstrap):
    topic = new_topic(bootstrap, 2)
    timed(bootstrap, topic, {0: [0, 10, 20], 1: [5, 15]})
    at = {"startingTimestamp": str(DAY_MS + 10)}
    assert offsets_of(reader_of(bootstrap, subscribe=topic, **at).initialOffset()) == {topic: {"0": 1, "1": 1}}
    at = {"startingOffsetsByTimestamp": json_of(topic, {0: DAY_MS + 11, 1: DAY_MS})}
    assert offsets_of(reader_of(bootstrap, subscribe=topic, **at).initialOffset()) == {topic: {"0": 2, "1": 0}}
    late = {"startingTimestamp": str(DAY_MS + 16)}
    with pytest.raises(OptionError, match=rf"'startingTimestamp': {topic}-1 has no record as late as that; set option"):
        reader_of(bootstrap, subscribe=topic, **late).initialOffset()
    tolerant = reader_of(bootstrap, subscribe=topic, **late, startingOffsetsByTimestampStrategy="latest")
    assert offsets_of(tolerant.initialOffset()) == {topic: {"0": 2, "1": 2}}
    missing = f"'startingOffsetsByTimestamp' must name every partition that is read, and {topic}-1 is missing: add it"
    with pytest.raises(OptionError, match=missing):
        reader_of(bootstrap, subscribe=topic, startingOffsetsByTimestamp=json_of(topic, {0: DAY_MS})).initialOffset()


def test_times_divide_a_compressed_batch(bootstrap):
    topic = new_topic(bootstrap, 1)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 500, "compression.type": "lz4"})
    for number in range(200):
        producer.produce(topic, value=b"%d" % number, partition=0, timestamp=DAY_MS + number)
    assert producer.flush() == 0
    times = {"startingTimestamp": str(DAY_MS + 50), "endingTimestamp": str(DAY_MS + 150)}
    assert [row["value"] for row in rows_of(batch_of(bootstrap, subscribe=topic, **times))] == [
        b"%d" % number for number in range(50, 150)
    ]


def test_a_stream_is_told_that_its_offsets_are_not_there(bootstrap):
    topic = new_topic(bootstrap, 1)
    produced(bootstrap, topic, 3)
    with pytest.raises(DataLost, match=rf"names offset 4 of {topic}-0, which holds offsets 0 to 3; name one of these"):
        reader_of(bootstrap, subscribe=topic, startingOffsets=json_of(topic, {0: 4})).initialOffset()
    tolerant = reader_of(bootstrap, subscribe=topic, startingOffsets=json_of(topic, {0: 4}), failOnDataLoss="false")
    assert offsets_of(tolerant.initialOffset()) == {topic: {"0": 3}}


@on_marker_topics
def test_offsets_of_an_open_transaction_are_not_lost(bootstrap):
    topic = new_topic(bootstrap, 1)
    writer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    writer.init_transactions(30)
    writer.begin_transaction()
    for row in range(5):
        writer.produce(topic, value=b"%d" % row, partition=0)
    writer.flush()
    inside = json_of(topic, {0: 3})
    readers = [
        reader_of(bootstrap, subscribe=topic, startingOffsets=inside, failOnDataLoss=fail) for fail in ("true", "false")
    ]
    start = {topic: {"0": 3}}
    for reader in readers:
        assert offsets_of(reader.initialOffset()) == start
        assert offsets_of(reader.latestOffset(reader.initialOffset(), ReadAllAvailable())) == start
    undecided = {"startingOffsets": json_of(topic, {0: 0}), "endingOffsets": json_of(topic, {0: 4})}
    assert rows_of(batch_of(bootstrap, subscribe=topic, **undecided)) == []
    with pytest.raises(DataLost, match="ends at offset 5, before offset 6"):
        readers[0].latestOffset({topic: {"0": 6}}, ReadAllAvailable())
    writer.commit_transaction(30)
    while held_back(bootstrap, topic):
        pass  # Apache Kafka answers before it has ended the transaction everywhere
    for reader in readers:
        end = reader.latestOffset(start, ReadAllAvailable())
        assert [row["offset"] for row in rows_between(reader, start, end)] == [3, 4]
        reader.stop()
    assert [row["offset"] for row in rows_of(batch_of(bootstrap, subscribe=topic, **undecided))] == [0, 1, 2, 3]


def test_topics_that_match_an_expression_and_those_that_come_later(bootstrap, monkeypatch):
    stem = new_topic(bootstrap, 1)
    first, other = new_topic(bootstrap, 1, f"{stem}-in"), new_topic(bootstrap, 1, f"{stem}-out")
    produced(bootstrap, first, 2)
    produced(bootstrap, other, 1)
    reader = reader_of(bootstrap, subscribePattern=rf"{stem}-in\S*", startingOffsets="latest")
    start = reader.initialOffset()
    assert offsets_of(start) == {first: {"0": 2}}
    second = new_topic(bootstrap, 2, f"{stem}-in")
    produced(bootstrap, second, 3)
    monkeypatch.setattr(subscription, "_AGE_S", 0.0)
    end = reader.latestOffset(start, ReadAllAvailable())
    # What is new is read from its beginning.
    assert offsets_of(end) == {first: {"0": 2}, second: {"0": 3, "1": 0}}
    assert [row["topic"] for row in rows_between(reader, start, end)] == [second] * 3
    # The whole name counts.
    assert reader_of(bootstrap, subscribePattern=f"{stem}-i").initialOffset() == {}


def test_a_batch_reads_all_that_is_committed(bootstrap):
    topic = new_topic(bootstrap, 2)
    produced(bootstrap, topic, 3)
    writer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    writer.init_transactions(30)
    writer.begin_transaction()
    writer.produce(topic, value=b"undecided", partition=1)
    writer.flush()
    reader = batch_of(bootstrap, subscribe=topic)
    parts = reader.partitions()
    produced(bootstrap, topic, 1)
    assert [row["value"] for part in parts for batch in reader.read(part) for row in batch.to_pylist()] == [
        b"0",
        b"1",
        b"2",
    ]
    assert len(rows_of(reader)) == 4
    writer.abort_transaction(30)


def test_a_batch_between_offsets_and_between_times(bootstrap):
    topic = new_topic(bootstrap, 2)
    timed(bootstrap, topic, {0: [0, 10, 20], 1: [5, 15, 25]})

    def values(**options):
        return [int(row["value"]) for row in rows_of(batch_of(bootstrap, subscribe=topic, **options))]

    offsets = {"startingOffsets": json_of(topic, {0: 1, 1: -2}), "endingOffsets": json_of(topic, {0: -1, 1: 2})}
    assert values(**offsets) == [10, 20, 5, 15]
    assert values(startingTimestamp=str(DAY_MS + 10), endingTimestamp=str(DAY_MS + 20)) == [10, 15]
    by_partition = {"endingOffsetsByTimestamp": json_of(topic, {0: DAY_MS + 1, 1: DAY_MS + 99})}
    assert values(**by_partition) == [0, 5, 15, 25]
    assert values(startingTimestamp=str(DAY_MS + 15), endingTimestamp=str(DAY_MS)) == []
    with pytest.raises(DataLost, match=f"'endingOffsets' names offset 9 of {topic}-0, which holds offsets 0 to 3"):
        values(endingOffsets=json_of(topic, {0: 9, 1: 1}))
    assert values(endingOffsets=json_of(topic, {0: 9, 1: 1}), failOnDataLoss="false") == [0, 10, 20, 5]
    with pytest.raises(OptionError) as refused:
        values(endingOffsets=json_of(topic, {0: 1, 2: 4, 3: 4}))
    assert refused.value.problems == (
        f"option 'endingOffsets' must name every partition that is read, and {topic}-1 is missing: add it",
        f"option 'endingOffsets' names {topic}-2 and {topic}-3, which are not read: leave them out",
    )
    with pytest.raises(ClusterError, match=r"topic 'nowhere' does not exist on .*: create it, or look at its name"):
        batch_of(bootstrap, subscribe="nowhere").partitions()


def test_more_tasks_than_partitions(bootstrap):
    topic = new_topic(bootstrap, 2)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 100})
    for row in range(90):
        producer.produce(topic, value=b"%d" % row, partition=0)
    producer.flush()
    reader = reader_of(bootstrap, subscribe=topic, minPartitions="4", maxRecordsPerPartition="50")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    parts = [part for each in reader.partitions(start, end) for part in each.parts]
    assert [(part.start, part.end) for part in parts] == [(0, 22), (22, 45), (45, 67), (67, 90)]
    assert [int(row["value"]) for row in rows_between(reader, start, end)] == list(range(90))
    batch = batch_of(bootstrap, subscribe=topic, maxRecordsPerPartition="30")
    assert len(batch.partitions()) == 3
    assert [int(row["value"]) for row in rows_of(batch)] == list(range(90))


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_of_a_real_producer(bootstrap, codec):
    topic = new_topic(bootstrap, 1)
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 100})
    for row in range(500):
        producer.produce(topic, key=b"%d" % row, value=b"x" * (row % 150), headers=[("h", b"%d" % row)])
    producer.flush()
    rows = rows_of(batch_of(bootstrap, subscribe=topic, includeHeaders="true"))
    assert [(row["key"], len(row["value"]), row["headers"]) for row in rows] == [
        (b"%d" % row, row % 150, [{"key": "h", "value": b"%d" % row}]) for row in range(500)
    ]


def test_a_batch_waits_for_enough_but_not_for_ever(bootstrap, monkeypatch):
    topic = new_topic(bootstrap, 1)
    clock = [1000.0]
    slept: list[float] = []
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(time, "sleep", slept.append)
    reader = reader_of(bootstrap, subscribe=topic, minOffsetsPerTrigger="5", maxTriggerDelay="10m")
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMinRows(5)
    start = reader.initialOffset()
    produced(bootstrap, topic, 1)
    # The first batch of a run does not wait.
    begun = reader.latestOffset(start, limit)
    assert offsets_of(begun) == {topic: {"0": 1}}
    produced(bootstrap, topic, 4)
    assert reader.latestOffset(begun, limit) == begun
    assert slept == []
    clock[0] += 0.01
    assert reader.latestOffset(begun, limit) == begun
    assert slept == [0.1]  # polled again at once, it costs nothing
    # Trigger.Once reads all there is.
    assert offsets_of(reader.latestOffset(begun, ReadAllAvailable())) == {topic: {"0": 5}}
    clock[0] += 1
    produced(bootstrap, topic, 1)
    enough = reader.latestOffset(begun, limit)
    assert offsets_of(enough) == {topic: {"0": 6}}
    produced(bootstrap, topic, 1)
    assert reader.latestOffset(enough, limit) == enough
    clock[0] += 600
    late = reader.latestOffset(enough, limit)
    assert offsets_of(late) == {topic: {"0": 7}}
    # Under Trigger.AvailableNow the rest is read, however little it is.
    produced(bootstrap, topic, 1)
    reader.prepareForTriggerAvailableNow()
    assert offsets_of(reader.latestOffset(late, limit)) == {topic: {"0": 8}}


def test_available_now_keeps_the_limit_and_ends_where_the_topic_ended(bootstrap):
    topic = new_topic(bootstrap, 2)
    producer = Producer({"bootstrap.servers": bootstrap})
    for partition, count in ((0, 70), (1, 30)):
        for _ in range(count):
            producer.produce(topic, value=b"x", partition=partition)
    producer.flush()
    reader = reader_of(bootstrap, subscribe=topic, maxOffsetsPerTrigger="20", minOffsetsPerTrigger="15")
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxRows(20)
    reader.prepareForTriggerAvailableNow()
    position = reader.initialOffset()
    batches = []
    while True:
        produced(bootstrap, topic, 1)
        end = reader.latestOffset(position, limit)
        if end == position:
            break
        batches.append([end[topic][each] - position[topic][each] for each in ("0", "1")])
        position = end
    assert batches == [[14, 6]] * 5
    assert offsets_of(position) == {topic: {"0": 70, "1": 30}}


def test_nobody_there_is_said_in_a_sentence(monkeypatch):
    monkeypatch.setattr(source_module, "client_of", lambda servers: Client(servers, call_timeout_ms=50))
    with pytest.raises(
        ClusterError, match=r"^the cluster at 127\.0\.0\.1:1 did not answer .* is 'kafka\.bootstrap"
    ) as said:
        reader_of("127.0.0.1:1", subscribe="t").initialOffset()
    assert said.value.__suppress_context__


def test_a_batch_of_no_partition_has_no_rows(bootstrap):
    """Spark runs one task then, which it gives a partition of its own."""
    reader = batch_of(bootstrap, subscribe=new_topic(bootstrap, 1))
    assert reader.partitions() == []
    assert list(reader.read(InputPartition(None))) == []


def test_what_a_stream_refuses_is_said_when_spark_first_asks(bootstrap):
    """Spark hides an error that `streamReader` itself raises behind an error of its own."""
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": "t", "endingOffsets": "latest"}
    reader = ExactaDataSource(options).streamReader(None)
    for asked in (reader.initialOffset, lambda: reader.latestOffset({}, ReadAllAvailable())):
        with pytest.raises(OptionError, match="'endingOffsets' is for batches"):
            asked()
    with pytest.raises(OptionError, match="'endingOffsets' is for batches"):
        reader.partitions({}, {})
