"""Only real Spark shows these sides of reading: batches, its calls, limits under its triggers, sentences, progress."""

import json
import logging
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.errors import AnalysisException

from exacta.spark import watch_offsets
from tests.spark.clusters import new_topic
from tests.spark.source.test_topic_identity import committed

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


def fill(bootstrap, topic, partition, rows):
    producer = Producer({"bootstrap.servers": bootstrap})
    for row in rows:
        producer.produce(topic, value=b"%d" % row, partition=partition, headers=[("row", b"%d" % row)])
    producer.flush()


def optioned(reader, bootstrap, options):
    reader = reader.format("exacta").option("kafka.bootstrap.servers", bootstrap)
    for name, value in options.items():
        reader = reader.option(name, value)
    return reader.load()


def run(rows, checkpoint, **trigger):
    """Run a query to its end; return it and the values in the order of its batches."""
    seen = []

    def note(batch, _):
        seen.append(sorted(int(row.value) for row in batch.select("value").collect()))

    query = rows.writeStream.option("checkpointLocation", str(checkpoint)).foreachBatch(note).trigger(**trigger).start()
    query.awaitTermination()
    return query, seen


def test_a_batch(spark, bootstrap):
    topic = new_topic(bootstrap, 2)
    fill(bootstrap, topic, 0, range(60))
    fill(bootstrap, topic, 1, range(60, 100))
    options = {"subscribe": topic, "includeHeaders": "true", "minPartitions": 4}
    rows = optioned(spark.read, bootstrap, options)
    assert rows.rdd.getNumPartitions() == 4
    found = rows.selectExpr("cast(value as string) v", "headers[0].value = value same", "partition", "offset").collect()
    assert sorted(int(row.v) for row in found) == list(range(100))
    assert all(row.same for row in found)
    ends = {"startingOffsets": json.dumps({topic: {0: 50, 1: -2}}), "endingOffsets": json.dumps({topic: {0: -1, 1: 5}})}
    assert optioned(spark.read, bootstrap, {"subscribe": topic, **ends}).count() == 15
    assert optioned(spark.read, bootstrap, {"subscribe": topic}).where("partition = 1").count() == 40
    assert optioned(spark.read, bootstrap, {"subscribe": new_topic(bootstrap, 2)}).collect() == []
    chosen = optioned(spark.read.schema("offset long, value binary"), bootstrap, {"subscribe": topic})
    assert chosen.columns == ["offset", "value"]
    assert {int(row.value) for row in chosen.collect()} == set(range(100))
    with pytest.raises(AnalysisException, match="column 'value' is binary, not string: read it as it is, and cast it"):
        optioned(spark.read.schema("value string"), bootstrap, {"subscribe": topic}).collect()


def test_available_now_keeps_the_limit_and_tells_the_group_of_its_last_batch(spark, bootstrap, tmp_path):
    topic = new_topic(bootstrap, 1)
    fill(bootstrap, topic, 0, range(50))
    options = {
        "subscribePattern": f"{topic[:-1]}.",
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": 20,
        "minOffsetsPerTrigger": 15,
        "commit.group.id": topic,
    }
    listener = watch_offsets(spark)
    records: list[Any] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[assignment,method-assign]
    logger = logging.getLogger("exacta.spark")
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        rows = optioned(spark.readStream, bootstrap, options)
        query, seen = run(rows, tmp_path / "c", availableNow=True)
        assert seen == [list(range(20)), list(range(20, 40)), list(range(40, 50))]
        assert committed(bootstrap, topic, topic) == 50
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    finally:
        spark.streams.removeListener(listener)
        logger.removeHandler(handler)
    assert [record.args[3] for record in records if str(record.args[0]) == str(query.id)] == [30, 10, 0]
    assert str(query.id) not in listener.last
    # It goes on; and one who goes on with nothing new runs no batch.
    fill(bootstrap, topic, 0, range(50, 53))
    assert run(rows, tmp_path / "c", availableNow=True)[1] == [[50, 51, 52]]
    assert run(rows, tmp_path / "c", availableNow=True)[1] == []
    assert committed(bootstrap, topic, topic) == 53


def test_a_checkpoint_of_sparks_own_form_goes_on_without_an_empty_batch(spark, bootstrap, tmp_path):
    topic = new_topic(bootstrap, 1)
    fill(bootstrap, topic, 0, range(5))
    rows = optioned(spark.readStream, bootstrap, {"subscribe": topic, "startingOffsets": "earliest"})
    assert run(rows, tmp_path / "c", availableNow=True)[1] == [[0, 1, 2, 3, 4]]
    log = tmp_path / "c" / "offsets" / "0"
    version, metadata, offsets = log.read_text().splitlines()
    assert any(name.startswith(f"{topic}#") for name in json.loads(offsets))
    log.write_text("\n".join([version, metadata, json.dumps({topic: {"0": 5}})]))
    (tmp_path / "c" / "offsets" / ".0.crc").unlink(missing_ok=True)
    assert run(rows, tmp_path / "c", availableNow=True)[1] == []
    fill(bootstrap, topic, 0, [5])
    assert run(rows, tmp_path / "c", availableNow=True)[1] == [[5]]


STREAMS = 10
"""This is more than a test has begun when it looks: a stream for each run of its query, and a number for each look."""


def forget_rows_at_hand(spark):
    """Take from Spark's driver the rows that came along with plans; return how many batches had some."""
    storage, scheduler = spark._jvm.org.apache.spark.storage, spark._jsc.sc().dagScheduler()
    # By way of a field: `SparkEnv`, which has it too, names classes that PySpark leaves out.
    field = scheduler.getClass().getDeclaredField("blockManagerMaster")
    field.setAccessible(True)
    master = field.get(scheduler)
    # The virtual machine numbers its streams; the last ones before the next number are this test's.
    end = spark._jvm.org.apache.spark.sql.execution.datasources.v2.python.PythonMicroBatchStream.nextStreamId()
    streams = range(max(0, end - STREAMS), end)
    blocks = [storage.PythonStreamBlockId(stream, block) for stream in streams for block in range(1, 5)]
    found = [block for block in blocks if master.getLocations(block).nonEmpty()]
    for block in found:
        master.removeBlock(block)
    return len(found)


@pytest.mark.parametrize("lost", [False, True])
def test_small_batches_read_by_the_driver(spark, bootstrap, tmp_path, lost):
    topic = new_topic(bootstrap, 2)
    fill(bootstrap, topic, 0, range(30))
    fill(bootstrap, topic, 1, range(30, 60))
    options = {
        "subscribe": topic,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": 20,
        "driver.rows": 20,
        "includeHeaders": "true",
    }
    rows = optioned(spark.readStream, bootstrap, options)
    seen, tasks, forgotten = [], [], []

    def note(batch, _):
        forgotten.append(forget_rows_at_hand(spark) if lost else 0)
        tasks.append(batch.rdd.getNumPartitions())
        found = batch.selectExpr("int(string(value)) value", "headers[0].value = value same").collect()
        assert all(row.same for row in found)
        seen.append(sorted(row.value for row in found))

    query = rows.writeStream.option("checkpointLocation", str(tmp_path / "c")).foreachBatch(note)
    query = query.trigger(availableNow=True).start()
    query.awaitTermination()
    assert seen == [[*range(at, at + 10), *range(30 + at, 40 + at)] for at in (0, 10, 20)]
    assert tasks == [1, 1, 1]
    assert sum(forgotten) == (3 if lost else 0)
    # The progress report says how far the topics reach, as of any other reader.
    (source,) = query.lastProgress["sources"]
    assert json.loads(source["latestOffset"])[topic] == {"0": 30, "1": 30}
    assert forget_rows_at_hand(spark) == 0, "they are kept until the next batch, and no longer than the query"


def test_a_batch_is_held_back_until_enough_is_there(spark, bootstrap, tmp_path):
    topic = new_topic(bootstrap, 1)
    fill(bootstrap, topic, 0, range(3))
    options = {"subscribe": topic, "startingOffsets": "earliest", "minOffsetsPerTrigger": 5, "maxTriggerDelay": "1h"}
    rows = optioned(spark.readStream, bootstrap, options)
    query = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c")).start()
    try:
        query.processAllAvailable()
        assert query.lastProgress["numInputRows"] == 3
        fill(bootstrap, topic, 0, range(3, 6))
        fill(bootstrap, topic, 0, range(6, 9))
        batches: set[Any] = set()
        while sum(count for _, count in batches) < 9:
            batches = {(each["batchId"], each["numInputRows"]) for each in query.recentProgress}
        assert {count for _, count in batches if count} <= {3, 6}
    finally:
        query.stop()


def test_what_goes_wrong_is_said_in_a_sentence(spark, bootstrap, tmp_path):
    topic = new_topic(bootstrap, 1)
    fill(bootstrap, topic, 0, range(3))

    def refusal(options, name):
        with pytest.raises(Exception, match=r"\S") as raised:  # Spark wraps them in several ways
            run(optioned(spark.readStream, bootstrap, options), tmp_path / name, availableNow=True)
        return str(raised.value)

    assert f"topic 'nowhere' does not exist on {bootstrap}: create it, or look at its name" in refusal(
        {"subscribe": "nowhere"}, "a"
    )
    assert f"names offset 7 of {topic}-0, which holds offsets 0 to 3" in refusal(
        {"subscribe": topic, "startingOffsets": json.dumps({topic: {0: 7}})}, "b"
    )
    ends = {"subscribe": topic, "endingOffsets": "latest"}
    assert "'endingOffsets' is for batches: a stream has no use for it" in refusal(ends, "c")
    with pytest.raises(Exception, match=r"'commit\.group\.id' is for streams: a batch has no use for it"):
        optioned(spark.read, bootstrap, {"subscribe": topic, "commit.group.id": "g"}).count()
    with pytest.raises(Exception, match="exactly one of the options 'subscribe'"):
        optioned(spark.read, bootstrap, {})
