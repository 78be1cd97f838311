"""`exacta.spark.write` and batch jobs in a real Spark: what only Spark shows."""

from collections import Counter
from contextlib import suppress
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.errors import StreamingQueryException

import exacta.spark
from exacta.spark.foreach_batch import _rows_up_to
from exacta.spark.sink.running_query import partitions_of
from tests.spark.clusters import check_exactly, held_back, new_topic, read_committed

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


@pytest.fixture
def options(bootstrap, tmp_path):
    return {"kafka.bootstrap.servers": bootstrap, "checkpointLocation": str(tmp_path / "checkpoint")}


def fill(bootstrap, topic, rows):
    producer = Producer({"bootstrap.servers": bootstrap})
    for row in rows:
        producer.produce(topic, key=b"%d" % (row % 7), value=b"%d" % row)
    producer.flush()


def reading(spark, bootstrap, topic, limit):
    return (
        spark.readStream.format("exacta")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", limit)
        .load()
    )


def run(rows, options, function, mode="append"):
    writer = rows.writeStream.outputMode(mode).option("checkpointLocation", options["checkpointLocation"])
    writer.foreachBatch(function).trigger(availableNow=True).start().awaitTermination()


def values(bootstrap, topic):
    return Counter(value.decode() for _, _, value in read_committed(bootstrap, topic))


@pytest.mark.parametrize("few", [True, False])
def test_what_the_driver_asks_for_has_a_bound(spark, few):
    rows = spark.range(0, 40, numPartitions=4).selectExpr("cast(id as string) as value").filter("value != '0'")
    cut = _rows_up_to(rows, 2, few=few)
    assert cut is not None
    assert cut.cut
    assert cut.table.num_rows == 4 * 3  # one more of each: so it shows
    whole = _rows_up_to(rows, 64, few=few)
    assert whole is not None
    assert not whole.cut
    assert sorted(map(int, whole.table["value"].to_pylist())) == list(range(1, 40))


def test_update_mode_to_two_sinks_by_the_driver_and_by_tasks(spark, bootstrap, options):
    source, first, second = new_topic(bootstrap, 2), new_topic(bootstrap, 3), new_topic(bootstrap, 2)
    fill(bootstrap, source, range(1000))
    counted = reading(spark, bootstrap, source, 250).groupBy("key").count()
    seen: Counter[str] = Counter()
    done: list[Any] = []

    def write(batch_df, batch_id):
        rows = batch_df.selectExpr("key", "concat(string(key), ':', count) as value").persist()
        seen.update(row.value for row in rows.collect())
        by_driver = exacta.spark.write(rows, batch_id, options, topic=first)
        by_tasks = exacta.spark.write(rows, batch_id, {**options, "sink.name": "b", "driver.rows": 0}, topic=second)
        done.append((by_driver, by_tasks))
        rows.unpersist()

    run(counted, options, write, "update")
    assert len(done) == 4
    assert all(by_driver.alone and by_driver.rows == 7 for by_driver, _ in done)
    assert all(by_tasks.tasks >= 1 and by_tasks.rows == 7 for _, by_tasks in done)
    assert values(bootstrap, first) == values(bootstrap, second) == seen


def test_a_batch_that_is_repeated_is_not_written_again_whichever_way_it_went(spark, bootstrap, options):
    """It is computed: Spark fails a batch whose state stores have not committed, and the next needs its state."""
    source, sink = new_topic(bootstrap, 2), new_topic(bootstrap, 3)
    fill(bootstrap, source, range(800))
    rows = reading(spark, bootstrap, source, 200).dropDuplicates(["value"]).select("key", "value")
    done: list[Any] = []

    def write(batch_df, batch_id):
        # Every batch is repeated once, by a query that would go the other way.
        replay = any(batch == batch_id for batch, _ in done)
        by_driver = (batch_id % 2 == 0) != replay
        written = exacta.spark.write(batch_df, batch_id, options, topic=sink, **{"driver.rows": 500 * by_driver})
        done.append((batch_id, written))
        if not replay:
            raise RuntimeError("this function fails because a test wants it to")

    for _ in range(20):
        with suppress(StreamingQueryException):
            run(rows, options, write)
            break
    first, again = done[::2], done[1::2]
    assert len(first) == len(again) >= 4
    assert [written.alone for _, written in first] == [batch_id % 2 == 0 for batch_id in range(len(first))]
    for (batch_id, written), replay in zip(first, again, strict=True):
        assert replay == (batch_id, exacta.spark.WrittenBatch(rows=written.rows, tasks=0, replayed=True))
    check_exactly(bootstrap, sink, range(800))


def test_a_large_batch_goes_by_tasks_and_keeps_the_state_whole(spark, bootstrap, options):
    """The driver's attempt reads every partition to its end: a state store commits only then."""
    source, sink = new_topic(bootstrap, 2), new_topic(bootstrap, 3)
    fill(bootstrap, source, range(900))
    distinct = reading(spark, bootstrap, source, 300).dropDuplicates(["value"]).select("key", "value")
    ways = []

    def write(batch_df, batch_id):
        assert partitions_of(batch_df) == 2
        # The second batch shows only when asked that it is too large; the third is not asked for.
        most = [500, 10, 10][batch_id]
        ways.append(exacta.spark.write(batch_df, batch_id, options, topic=sink, **{"driver.rows": most}).alone)

    run(distinct, options, write)
    assert ways == [True, False, False]
    check_exactly(bootstrap, sink, range(900))


def test_the_query_is_found_by_itself_and_what_is_not_its_own_is_refused(spark, bootstrap, options, tmp_path):
    source, sink = new_topic(bootstrap, 1), new_topic(bootstrap, 1)
    fill(bootstrap, source, range(100))
    rows = reading(spark, bootstrap, source, 100).select("key", "value")
    brokers = {"kafka.bootstrap.servers": bootstrap, "topic": sink}
    run(rows, options, lambda batch_df, batch_id: exacta.spark.write(batch_df, batch_id, brokers))
    fill(bootstrap, source, range(100, 200))

    def refused(function, sentence):
        with pytest.raises(StreamingQueryException, match=sentence):
            run(rows, options, function)

    refused(lambda batch_df, batch_id: exacta.spark.write(batch_df, batch_id + 1, brokers), "while Spark runs batch 1")
    elsewhere = {**options, "checkpointLocation": str(tmp_path / "other")}
    run(rows, elsewhere, lambda *_: None)
    refused(
        lambda batch_df, batch_id: exacta.spark.write(batch_df, batch_id, {**brokers, **elsewhere}),
        "leads to the checkpoint of query .* give the writer the location",
    )

    def twice(batch_df, batch_id):
        exacta.spark.write(batch_df.limit(1), batch_id, brokers, **dict[str, Any]({"sink.name": "x"}))
        exacta.spark.write(batch_df, batch_id, brokers)
        exacta.spark.write(batch_df, batch_id, brokers)

    refused(twice, "batch 1 was written to sink .* before, in this run of the query")
    # The streaming sink goes on where `write` was.
    writer = rows.writeStream.format("exacta").option("topic", sink).trigger(availableNow=True)
    for name, value in options.items():
        writer = writer.option(name, value)
    writer.start().awaitTermination()
    assert len(values(bootstrap, sink)) == 200
    assert sum(values(bootstrap, sink).values()) == 201


def job(rows, bootstrap, topic, **options):
    writer = rows.write.format("exacta").mode("append").option("kafka.bootstrap.servers", bootstrap)
    return writer.option("topic", topic).options(**options)


def test_a_batch_job_is_written_whole_or_not_at_all(spark, bootstrap):
    sink = new_topic(bootstrap, 3)
    rows = spark.range(1000).repartition(4).selectExpr("id", "string(id) as value")
    for scope in ("task", "batch"):
        placed = rows.select("value")
        if scope == "batch":
            placed = exacta.spark.one_task_per_partition(placed, {"kafka.bootstrap.servers": bootstrap}, topic=sink)
        job(placed, bootstrap, sink, **{"transaction.scope": scope}).save()
    assert values(bootstrap, sink) == Counter({str(row): 2 for row in range(1000)})
    failing = rows.selectExpr("if(id = 999, string(raise_error('a test wants it')), value) as value")
    with pytest.raises(Exception, match="a test wants it"):
        job(failing, bootstrap, sink).save()
    # Nobody reads its rows, and nobody waits for their end.
    assert held_back(bootstrap, sink) == {}
    assert sum(values(bootstrap, sink).values()) == 2000


def test_what_is_wrong_is_said_in_a_sentence(spark, bootstrap):
    sink = new_topic(bootstrap, 1)
    rows = spark.range(3).selectExpr("string(id) as value")

    def said(writer, save="save"):
        with pytest.raises(Exception) as refused:  # noqa: PT011 - Spark wraps them in several ways
            getattr(writer, save)()
        assert "Traceback" not in str(refused.value)
        return str(refused.value)

    assert "a topic cannot be overwritten" in said(job(rows, bootstrap, sink).mode("overwrite"))
    assert "option 'checkpointLocation' has no effect on a batch" in said(
        job(rows, bootstrap, sink, checkpointLocation="/c")
    )
    assert "lower option 'kafka.transaction.timeout.ms'" in said(
        job(rows, bootstrap, sink, **{"kafka.transaction.timeout.ms": "2000000000"})
    )
    assert "the cluster at 127.0.0.1:1 did not answer as it should for 0.5 s" in said(
        job(rows, "127.0.0.1:1", sink, **{"kafka.delivery.timeout.ms": "500"})
    )
    assert "a topic's name has at most 249 characters" in said(
        job(rows, bootstrap, sink, **{"transaction.marker.topic": "no where"})
    )
