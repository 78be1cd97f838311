"""The reader, called as Spark calls it, against a real broker and without a virtual machine."""

import time

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from pyspark.sql.datasource_internal import _SimpleStreamReaderWrapper
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from exacta.client.errors import ClientError
from exacta.client.fetcher import OffsetOutOfRange, fetch_range
from exacta.spark.error_sentences import ClusterError
from exacta.spark.options import OptionError
from exacta.spark.source.planning import DataLost
from tests.spark.clusters import held_back, new_topic, on_marker_topics
from tests.spark.readers import batch_of, offsets_of, produced, reader_of, rows_between, rows_of


@pytest.fixture
def few_bytes(monkeypatch):
    monkeypatch.setattr("exacta.spark.source.driver_rows._MOST_BYTES", 100)


def transactional(bootstrap: str, name: str) -> Producer:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name, "transaction.timeout.ms": 60_000})
    producer.init_transactions(30)
    return producer


def test_the_columns_of_sparks_kafka_connector(bootstrap):
    topic = new_topic(bootstrap, 1)
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, key=b"k", value=b"v", timestamp=1_700_000_000_123, headers=[("h", b"x"), ("n", None)])
    producer.produce(topic, key=None, value=None, timestamp=1_700_000_000_124)
    producer.flush()
    reader = reader_of(bootstrap, subscribe=topic, includeHeaders="true")
    start = reader.initialOffset()
    assert offsets_of(start) == {topic: {"0": 0}}
    end = reader.latestOffset(start, ReadAllAvailable())
    assert offsets_of(end) == {topic: {"0": 2}}
    first, second = rows_between(reader, start, end)
    assert (first["key"], first["value"], first["topic"], first["partition"], first["offset"]) == (
        b"k",
        b"v",
        topic,
        0,
        0,
    )
    assert first["timestamp"].timestamp() == 1_700_000_000.123
    assert first["timestampType"] == 0
    assert first["headers"] == [{"key": "h", "value": b"x"}, {"key": "n", "value": None}]
    assert (second["key"], second["value"], second["offset"], second["headers"]) == (None, None, 1, None)


@pytest.mark.parametrize("columns", [["value"], ["offset", "key"], ["headers", "topic"], ["timestamp", "partition"]])
def test_columns_that_the_user_has_chosen(bootstrap, columns):
    topic = new_topic(bootstrap, 1)
    producer = Producer({"bootstrap.servers": bootstrap})
    for row in range(3):
        producer.produce(topic, key=b"k%d" % row, value=b"v", timestamp=1_700_000_000_000 + row, headers=[("h", b"x")])
    producer.flush()
    whole = rows_of(batch_of(bootstrap, subscribe=topic, includeHeaders="true"))
    chosen = rows_of(batch_of(bootstrap, subscribe=topic, columns=columns))
    assert [list(row) for row in chosen] == [columns] * 3
    assert chosen == [{name: row[name] for name in columns} for row in whole]


def test_rows_stay_what_they_are_when_the_next_are_fetched(bootstrap):
    topic = new_topic(bootstrap, 1)
    produced(bootstrap, topic, 40)
    reader = batch_of(bootstrap, subscribe=topic, includeHeaders="true", kafka__max__partition__fetch__bytes="200")
    (part,) = reader.partitions()
    batches = list(reader.read(part))
    assert len(batches) > 5
    assert [int(row["value"]) for batch in batches for row in batch.to_pylist()] == list(range(40))


@on_marker_topics
def test_reads_what_is_committed_only_and_plans_no_further(bootstrap):
    topic = new_topic(bootstrap, 1)
    writer, aborter, keeper = (transactional(bootstrap, f"{topic}-{name}") for name in ("writer", "aborter", "keeper"))
    writer.begin_transaction()
    aborter.begin_transaction()
    for row in range(50):
        writer.produce(topic, value=b"good %d" % row)
        aborter.produce(topic, value=b"bad %d" % row)
        if row % 10 == 9:  # interleaved in batches
            writer.flush()
            aborter.flush()
    aborter.abort_transaction(30)
    writer.commit_transaction(30)
    keeper.begin_transaction()
    keeper.produce(topic, value=b"undecided")
    keeper.flush()
    plain = Producer({"bootstrap.servers": bootstrap})
    plain.produce(topic, value=b"behind the undecided one")
    plain.flush()

    reader = reader_of(bootstrap, subscribe=topic)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    assert offsets_of(end) == {topic: {"0": 102}}  # 100 records and two markers
    assert [row["value"] for row in rows_between(reader, start, end)] == [b"good %d" % row for row in range(50)]

    keeper.abort_transaction(30)
    while held_back(bootstrap, topic):
        pass  # Apache Kafka answers before it has ended the transaction everywhere
    everything = reader.latestOffset(end, ReadAllAvailable())
    assert [row["value"] for row in rows_between(reader, end, everything)] == [b"behind the undecided one"]

    dirty = reader_of(bootstrap, subscribe=topic, kafka__isolation__level="read_uncommitted")
    assert len(rows_between(dirty, start, everything)) == 102


def test_ranges_that_begin_and_end_inside_batches(bootstrap):
    topic = new_topic(bootstrap, 1)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 100, "compression.type": "gzip"})
    for row in range(1000):
        producer.produce(topic, value=b"%d" % row)
    producer.flush()
    reader = reader_of(bootstrap, subscribe=topic, maxOffsetsPerTrigger="300")
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxRows(300)
    position, seen = reader.initialOffset(), []
    while True:
        end = reader.latestOffset(position, limit)
        if end == position:
            break
        seen.append([int(row["value"]) for row in rows_between(reader, position, end)])
        position = end
    assert seen == [list(range(300)), list(range(300, 600)), list(range(600, 900)), list(range(900, 1000))]


@on_marker_topics
def test_a_range_without_any_visible_row(bootstrap):
    topic = new_topic(bootstrap, 1)
    aborter = transactional(bootstrap, f"{topic}-aborter")
    aborter.begin_transaction()
    aborter.produce(topic, value=b"bad")
    aborter.flush()
    aborter.abort_transaction(30)
    reader = reader_of(bootstrap, subscribe=topic)
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert offsets_of(end) == {topic: {"0": 2}}
    assert rows_between(reader, reader.initialOffset(), end) == []


def test_an_idle_reader_waits_and_is_woken(bootstrap):
    topic = new_topic(bootstrap, 1)
    reader = reader_of(bootstrap, subscribe=topic)
    start = reader.initialOffset()
    began_s = time.monotonic()
    for _ in range(6):
        assert reader.latestOffset(start, ReadAllAvailable()) == start
    assert time.monotonic() - began_s > 0.4  # the first one answers at once, the others wait 100 ms each
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, value=b"x")
    producer.flush()
    assert offsets_of(reader.latestOffset(start, ReadAllAvailable())) == {topic: {"0": 1}}
    reader.stop()


def test_two_idle_sources_of_one_query_wait_no_longer_than_one(bootstrap):
    topics = new_topic(bootstrap, 1), new_topic(bootstrap, 1)
    readers = [reader_of(bootstrap, subscribe=topic) for topic in topics]
    starts = [reader.initialOffset() for reader in readers]
    rounds_s = []
    for _ in range(6):  # as Spark asks the sources of a query, one after the other
        began_s = time.monotonic()
        for reader, start in zip(readers, starts, strict=True):
            assert reader.latestOffset(start, ReadAllAvailable()) == start
        rounds_s.append(time.monotonic() - began_s)
    # The first round answers at once; from then on a round costs one wait, not none, which would be a busy loop.
    assert sorted(rounds_s[1:])[1] > 0.08
    produced(bootstrap, topics[0], 1)
    produced(bootstrap, topics[1], 1)
    for topic, reader, start in zip(topics, readers, starts, strict=True):
        assert offsets_of(reader.latestOffset(start, ReadAllAvailable())) == {topic: {"0": 1}}
        reader.stop()


def test_available_now_ends_where_it_began(bootstrap):
    topic = new_topic(bootstrap, 1)
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, value=b"before")
    producer.flush()
    reader = reader_of(bootstrap, subscribe=topic)
    start = reader.initialOffset()
    reader.prepareForTriggerAvailableNow()
    producer.produce(topic, value=b"after")
    producer.flush()
    end = reader.latestOffset(start, ReadAllAvailable())
    assert offsets_of(end) == {topic: {"0": 1}}
    assert reader.latestOffset(end, ReadAllAvailable()) == end


def test_starting_offsets_by_partition(bootstrap):
    topic = new_topic(bootstrap, 3)
    producer = Producer({"bootstrap.servers": bootstrap})
    for partition in range(3):
        for _ in range(5):
            producer.produce(topic, value=b"x", partition=partition)
    producer.flush()
    reader = reader_of(bootstrap, subscribe=topic, startingOffsets=f'{{"{topic}": {{"0": -2, "1": 3, "2": -1}}}}')
    assert offsets_of(reader.initialOffset()) == {topic: {"0": 0, "1": 3, "2": 5}}
    with pytest.raises(OptionError, match=f"and {topic}-1 and {topic}-2 are missing: add them"):
        reader_of(bootstrap, subscribe=topic, startingOffsets=f'{{"{topic}": {{"0": 1}}}}').initialOffset()
    assigned = reader_of(bootstrap, assign=f'{{"{topic}": [1, 2]}}')
    assert offsets_of(assigned.latestOffset(assigned.initialOffset(), ReadAllAvailable())) == {topic: {"1": 5, "2": 5}}


def test_an_unknown_topic_is_named(bootstrap):
    with pytest.raises(ClusterError, match="topic 'nowhere' does not exist on"):
        reader_of(bootstrap, subscribe="nowhere").initialOffset()
    reader = reader_of(bootstrap, subscribe="nowhere")
    reader.prepareForTriggerAvailableNow()  # which Spark calls first
    with pytest.raises(ClusterError):
        reader.initialOffset()


def test_what_was_never_there_is_named_under_available_now_too(bootstrap):
    """This is about a query that goes on, which is not asked for its initial offset."""
    topic = new_topic(bootstrap, 1)
    for options, error, sentence in (
        ({"subscribe": f"{topic},nowhere"}, ClusterError, "topic 'nowhere' does not exist on"),
        ({"assign": f'{{"{topic}": [0, 1]}}'}, OptionError, "names partition 1 of topic"),
    ):
        reader = reader_of(bootstrap, **options)
        reader.prepareForTriggerAvailableNow()
        for _ in range(2):  # it is not forgotten where Spark asks again
            with pytest.raises(error, match=sentence):
                reader.latestOffset({topic: {"0": 0}}, ReadAllAvailable())


def test_offsets_that_are_gone(bootstrap):
    topic = new_topic(bootstrap, 1)
    reader = reader_of(bootstrap, subscribe=topic)
    ahead = {topic: {"0": 7}}
    with pytest.raises(DataLost, match="ends at offset 0, before offset 7"):
        reader.latestOffset(ahead, ReadAllAvailable())
    tolerant = reader_of(bootstrap, subscribe=topic, failOnDataLoss="false")
    assert tolerant.latestOffset(ahead, ReadAllAvailable()) == ahead


def test_a_topic_that_is_deleted_under_way(bootstrap, monkeypatch):
    monkeypatch.setattr("exacta.spark.source.source._GONE_AFTER_MS", 300)
    monkeypatch.setattr("exacta.spark.source.reading._GONE_AFTER_MS", 300)
    gone, kept = new_topic(bootstrap, 1), new_topic(bootstrap, 1)
    produced(bootstrap, gone, 2)
    produced(bootstrap, kept, 3)
    strict, tolerant = (
        reader_of(bootstrap, subscribe=f"{gone},{kept}", failOnDataLoss=fail) for fail in ("true", "false")
    )
    start = {gone: {"0": 1}, kept: {"0": 1}}
    planned = strict.partitions(start, {gone: {"0": 2}, kept: {"0": 3}})
    assert strict.latestOffset(start, ReadAllAvailable()) == tolerant.latestOffset(start, ReadAllAvailable())
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([gone])[gone].result(30)
    with pytest.raises(DataLost, match=f"partition {gone}-0 is gone, .*set option 'failOnDataLoss' to false"):
        strict.latestOffset(start, ReadAllAvailable())
    assert offsets_of(tolerant.latestOffset(start, ReadAllAvailable())) == {gone: {"0": 1}, kept: {"0": 3}}
    # Where it was planned before it was deleted:
    with pytest.raises(DataLost, match=f"topic '{gone}' is gone, of which offsets 1 to 2 were still to be read"):
        list(strict.read(planned[0] if planned[0].parts[0].topic == gone else planned[1]))
    assert [row["value"] for part in planned for batch in tolerant.read(part) for row in batch.to_pylist()] == [
        b"1",
        b"2",
    ]
    # A new query that names it is told at once.
    with pytest.raises(ClusterError, match=gone):
        reader_of(bootstrap, subscribe=f"{gone},{kept}", failOnDataLoss="false").initialOffset()


def test_a_range_whose_beginning_was_deleted(bootstrap, monkeypatch):
    topic = new_topic(bootstrap, 1)
    produced(bootstrap, topic, 5)
    log_start = 3  # as after retention, which not every broker of these tests can be asked for

    def fetch(client, partition, start, end, **settings):
        if start < log_start:
            raise OffsetOutOfRange(partition, start)
        yield from fetch_range(client, partition, start, end, **settings)

    monkeypatch.setattr("exacta.spark.source.reading.fetch_range", fetch)
    monkeypatch.setattr(
        "exacta.spark.source.reading.list_offsets", lambda _, partitions, __: {partitions[0]: log_start}
    )
    start, end = {topic: {"0": 1}}, {topic: {"0": 5}}
    with pytest.raises(DataLost, match=f"offset 1 of {topic}-0 is not there, the first is 3"):
        rows_between(reader_of(bootstrap, subscribe=topic), start, end)
    tolerant = reader_of(bootstrap, subscribe=topic, failOnDataLoss="false")
    assert [row["offset"] for row in rows_between(tolerant, start, end)] == [3, 4]


def test_a_cluster_that_cannot_be_reached():
    from exacta.client.routing import Client

    with pytest.raises(ClientError, match=r"cannot connect to 127\.0\.0\.1:1"):
        Client("127.0.0.1:1", call_timeout_ms=50).nodes()


def planned(reader, start, end):
    """Return what Spark's runner takes from a plan: the tasks, and the rows that come along, if any."""
    tasks = reader.partitions(start, end)
    came_along = reader.getCache(start, end) if isinstance(reader, _SimpleStreamReaderWrapper) else None
    assert not isinstance(reader, _SimpleStreamReaderWrapper)
    return tasks, came_along


def values(batches):
    return [int(row["value"]) for batch in batches for row in batch.to_pylist()]


def test_a_small_batch_comes_along_with_its_plan(bootstrap):
    topic = new_topic(bootstrap, 2)
    produced(bootstrap, topic, 5, partition=0)
    produced(bootstrap, topic, 5, partition=1)
    reader = reader_of(bootstrap, subscribe=topic, **{"driver.rows": "10"})
    start, end = reader.initialOffset(), {topic: {"0": 5, "1": 5}}
    (task,), rows = planned(reader, start, end)
    assert sorted(values(rows)) == sorted([*range(5)] * 2)
    # Where Spark has lost them, the task finds the same.
    assert sorted(values(reader.read(task))) == sorted([*range(5)] * 2)
    # A reader goes on as what it was; also behind a batch with nothing to read in it.
    assert reader.latestOffset(end, ReadAllAvailable()) == end
    assert planned(reader, end, end) == ([], None)
    produced(bootstrap, topic, 1, partition=1)
    tasks, rows = planned(reader, start, {topic: {"0": 5, "1": 6}})
    assert (len(tasks), rows) == (2, None), "eleven are not small"


def test_few_rows_that_are_large_are_left_to_tasks(bootstrap, few_bytes, monkeypatch):
    topic = new_topic(bootstrap, 1)
    produced(bootstrap, topic, 100)
    reader = reader_of(bootstrap, subscribe=topic, **{"driver.rows": "100"})
    tasks, rows = planned(reader, reader.initialOffset(), {topic: {"0": 100}})
    assert (len(tasks), rows) == (1, None)
    assert values(reader.read(tasks[0])) == [*range(100)]
    # Then fewer are tried, and more again as long as they are small.
    for count, small in [(51, False), (1, True), (51, True)]:
        _, rows = planned(reader, {topic: {"0": 0}}, {topic: {"0": count}})
        monkeypatch.setattr("exacta.spark.source.driver_rows._MOST_BYTES", 1 << 20)
        assert (rows is not None) == small
