"""Queries of one Spark session: what is written, what is refused, and faults that leave the driver alive."""

import pytest
from confluent_kafka import Producer
from pyspark.errors import StreamingQueryException

from exacta.spark import check, one_task_per_partition
from tests.conformance.brokers import broker_process
from tests.spark import faults
from tests.spark.clusters import check_exactly, new_topic, read_committed
from tests.spark.queries import fill, reading, run, writing

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


def test_restarted_from_its_checkpoint(spark, bootstrap, tmp_path):
    source, sink = new_topic(bootstrap, 2), new_topic(bootstrap, 3)
    for first in (0, 1000):
        fill(bootstrap, source, range(first, first + 1000))
        rows = reading(spark, bootstrap, source, maxOffsetsPerTrigger=400)
        query = run(writing(rows.select("key", "value"), bootstrap, tmp_path / "checkpoint", topic=sink))
        assert sum(progress["numInputRows"] for progress in query.recentProgress) == 1000
    check_exactly(bootstrap, sink, range(2000))
    # The keys go where the Java client's partitioner, which librdkafka names so, would put them.
    reference = new_topic(bootstrap, 3)
    producer = Producer({"bootstrap.servers": bootstrap, "partitioner": "murmur2_random"})
    for row in range(97):
        producer.produce(reference, key=b"%d" % row)
    producer.flush()
    wanted = {key: partition for partition, key, _ in read_committed(bootstrap, reference)}
    assert {key: partition for partition, key, _ in read_committed(bootstrap, sink)} == wanted


@pytest.mark.parametrize("action", [faults.DIE, faults.RAISE])
def test_a_task_that_is_lost_after_its_marker(spark, bootstrap, tmp_path, action):
    source, sink = new_topic(bootstrap, 2), new_topic(bootstrap, 3)
    fill(bootstrap, source, range(1000))
    faults.arm(tmp_path, faults.MARKER_WRITTEN, action)
    rows = reading(spark, bootstrap, source).select("key", "value")
    options = {"topic": sink, "fault.directory": str(tmp_path)}
    run(writing(rows, bootstrap, tmp_path / "checkpoint", form="faulty", **options))
    assert [strike.point for strike in faults.struck(tmp_path)] == [faults.MARKER_WRITTEN]
    check_exactly(bootstrap, sink, range(1000))


def test_a_commit_that_fails_after_the_decision(spark, bootstrap, tmp_path):
    source, sink = new_topic(bootstrap, 2), new_topic(bootstrap, 3)
    fill(bootstrap, source, range(1000))
    faults.arm(tmp_path, faults.DECIDED, faults.RAISE)
    rows = reading(spark, bootstrap, source).select("key", "value")
    options = {"topic": sink, "fault.directory": str(tmp_path)}
    with pytest.raises(StreamingQueryException, match="because a test wants it to"):
        run(writing(rows, bootstrap, tmp_path / "checkpoint", form="faulty", **options))
    run(writing(rows, bootstrap, tmp_path / "checkpoint", form="faulty", **options))
    check_exactly(bootstrap, sink, range(1000))


def test_a_batch_in_one_transaction_is_shuffled_by_partition(spark, bootstrap, tmp_path):
    source, sink = new_topic(bootstrap, 3), new_topic(bootstrap, 4)
    fill(bootstrap, source, range(2000))
    rows = reading(spark, bootstrap, source, maxOffsetsPerTrigger=900).select("key", "value")
    options = {"kafka.bootstrap.servers": bootstrap, "topic": sink}
    placed = one_task_per_partition(rows, options)
    run(writing(placed, bootstrap, tmp_path / "one", **options, **{"transaction.scope": "batch"}))
    check_exactly(bootstrap, sink, range(2000))
    # Where the tasks write anywhere, the batch is refused whole.
    other = new_topic(bootstrap, 1)
    options = {"topic": other, "transaction.scope": "batch"}
    with pytest.raises(StreamingQueryException, match="one_task_per_partition"):
        run(writing(rows, bootstrap, tmp_path / "two", **options))
    check_exactly(bootstrap, other, [])


def test_a_task_that_fails_in_a_transaction_that_all_share_fails_the_batch(spark, bootstrap, tmp_path):
    source, sink = new_topic(bootstrap, 2), new_topic(bootstrap, 2)
    fill(bootstrap, source, range(500))
    rows = reading(spark, bootstrap, source).selectExpr("key", "value", "partition")
    options = {"topic": sink, "transaction.scope": "batch", "fault.directory": str(tmp_path)}
    faults.arm(tmp_path, faults.MARKER_WRITTEN, faults.RAISE)
    with pytest.raises(StreamingQueryException, match="no task can be repeated: the batch is given up"):
        run(writing(rows, bootstrap, tmp_path / "checkpoint", form="faulty", **options))
    run(writing(rows, bootstrap, tmp_path / "checkpoint", form="faulty", **options))
    check_exactly(bootstrap, sink, range(500))


def test_a_deleted_checkpoint_is_refused_where_the_job_has_a_name(spark, bootstrap, tmp_path):
    import shutil

    source, sink = new_topic(bootstrap, 1), new_topic(bootstrap, 1)
    fill(bootstrap, source, range(100))
    rows = reading(spark, bootstrap, source).select("key", "value")
    options = {"topic": sink, "transactional.id.prefix": f"job-{sink}"}
    run(writing(rows, bootstrap, tmp_path / "checkpoint", **options))
    shutil.rmtree(tmp_path / "checkpoint")
    with pytest.raises(StreamingQueryException, match="was the old one deleted"):
        run(writing(rows, bootstrap, tmp_path / "checkpoint", **options))
    check_exactly(bootstrap, sink, range(100))


def test_at_least_once_repeats_what_a_failed_task_wrote(spark, bootstrap, tmp_path):
    source, sink = new_topic(bootstrap, 1), new_topic(bootstrap, 1)
    fill(bootstrap, source, range(100))
    rows = reading(spark, bootstrap, source).select("key", "value")
    options = {"topic": sink, "delivery.guarantee": "at-least-once", "fault.directory": str(tmp_path)}
    faults.arm(tmp_path, faults.MARKER_WRITTEN, faults.RAISE)
    run(writing(rows, bootstrap, tmp_path / "checkpoint", form="faulty", **options))
    assert sorted(int(value) for _, _, value in read_committed(bootstrap, sink)) == sorted([*range(100)] * 2)


def test_a_broker_that_is_killed_while_the_query_runs(spark, tmp_path):
    with broker_process(tmp_path) as broker:
        bootstrap = broker.bootstrap
        source, sink = new_topic(bootstrap, 2), new_topic(bootstrap, 3)
        fill(bootstrap, source, range(3000))
        rows = reading(spark, bootstrap, source, maxOffsetsPerTrigger=300).select("key", "value")
        query = writing(rows, bootstrap, tmp_path / "checkpoint", topic=sink).start()
        crashes = 0
        while not query.awaitTermination(0.02):
            # Only while the query gets on: each crash meets another step of it. Its batches take a tenth of a second.
            if query.recentProgress and crashes < 4:
                broker.restart_killed()
                crashes += 1
        assert crashes > 0
        check_exactly(bootstrap, sink, range(3000))


def test_topic_partition_and_headers_by_row(spark, bootstrap, tmp_path):
    source, sink, other = new_topic(bootstrap, 1), new_topic(bootstrap, 3), new_topic(bootstrap, 2)
    fill(bootstrap, source, range(6))
    rows = reading(spark, bootstrap, source).selectExpr(
        f"if(cast(value as string) < '3', '{sink}', '{other}') as topic",
        "cast(null as binary) as key",
        "cast(value as string) as value",
        "cast(value as string) % 2 as part",
        "array(named_struct('key', 'h', 'value', value)) as headers",
    )
    rows = rows.selectExpr("topic", "key", "value", "cast(part as int) as partition", "headers")
    run(writing(rows, bootstrap, tmp_path / "checkpoint", **{"transaction.marker.topic": sink}))
    assert sorted(read_committed(bootstrap, sink)) == [(0, None, b"0"), (0, None, b"2"), (1, None, b"1")]
    assert sorted(read_committed(bootstrap, other)) == [(0, None, b"4"), (1, None, b"3"), (1, None, b"5")]
    back = reading(spark, bootstrap, other, includeHeaders="true").select("value", "headers")
    query = back.writeStream.format("memory").queryName("back").trigger(availableNow=True).start()
    query.awaitTermination()
    found = spark.sql("select * from back").collect()
    assert all(row.headers[0].value == row.value and row.headers[0].key == "h" for row in found)
    assert len(found) == 3


def test_what_is_refused_is_said_in_a_sentence(spark, bootstrap, tmp_path):
    source, sink = new_topic(bootstrap, 1), new_topic(bootstrap, 1)
    rows = reading(spark, bootstrap, source).select("key", "value")

    def refusal(writer):
        with pytest.raises(Exception) as refused:  # noqa: PT011 - Spark wraps them in several ways
            run(writer)
        return str(refused.value)

    checkpoint = tmp_path / "a"
    assert "writing needs a topic: set option 'topic'" in refusal(writing(rows, bootstrap, checkpoint))
    strange = writing(rows, bootstrap, tmp_path / "b", topic=sink, topicc="x", **{"kafka.acks": "1"})
    said = refusal(strange)
    assert "OptionError: there are 2 problems:\n- " in said
    assert "\n- format \"exacta\" does not know option 'topicc' for writing; did you mean 'topic'?\n" in said
    assert "\n- option 'kafka.acks' can only be all or -1, not '1': exactly once depends on it\n" in said
    report = check(rows.selectExpr("value as valeu"), {"kafka.bootstrap.servers": bootstrap, "topic": sink})
    assert [problem.split(" ")[0:2] for problem in report.problems] == [["writing", "needs"], ["column", "'valeu'"]]
    update = writing(rows, bootstrap, tmp_path / "c", topic=sink).outputMode("update")
    assert "does not support Update mode" in refusal(update)
    numbers = rows.selectExpr("1 as value")
    assert "column 'value' must be of type string or binary, not int" in refusal(
        writing(numbers, bootstrap, tmp_path / "d", topic=sink)
    )
    spark.conf.set("spark.sql.streaming.checkpointLocation", str(tmp_path / "default"))
    try:
        default = rows.writeStream.format("exacta").option("kafka.bootstrap.servers", bootstrap).option("topic", sink)
        assert "writing needs option 'checkpointLocation' as an .option(...)" in refusal(
            default.trigger(availableNow=True)
        )
    finally:
        spark.conf.unset("spark.sql.streaming.checkpointLocation")
    nowhere = reading(spark, bootstrap, "nowhere").select("value")
    assert "topic 'nowhere' does not exist on" in refusal(writing(nowhere, bootstrap, tmp_path / "e", topic=sink))
    with pytest.raises(Exception, match="reading needs exactly one of the options 'subscribe'"):
        spark.readStream.format("exacta").option("kafka.bootstrap.servers", bootstrap).load()


def test_a_copied_checkpoint_is_refused_and_harms_nothing(spark, bootstrap, tmp_path):
    import shutil

    source, sink = new_topic(bootstrap, 1), new_topic(bootstrap, 1)
    fill(bootstrap, source, range(100))
    rows = reading(spark, bootstrap, source).select("key", "value")
    run(writing(rows, bootstrap, tmp_path / "one", topic=sink))
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    fill(bootstrap, source, range(100, 200))
    with pytest.raises(StreamingQueryException, match=r"two' is a copy: query .* has committed from") as refused:
        run(writing(rows, bootstrap, tmp_path / "two", topic=sink))
    assert "serialize" not in str(refused.value)  # though Spark was just pickling
    run(writing(rows, bootstrap, tmp_path / "one", topic=sink))
    check_exactly(bootstrap, sink, range(200))
    fill(bootstrap, source, range(200, 300))
    shutil.move(tmp_path / "one", tmp_path / "three")
    moved_from = {"checkpoint.moved.from": str(tmp_path / "one")}
    run(writing(rows, bootstrap, tmp_path / "three", topic=sink, **moved_from))
    check_exactly(bootstrap, sink, range(300))


def test_a_checkpoint_that_lost_its_last_files_does_not_lose_rows_in_silence(spark, bootstrap, tmp_path):
    """Spark plans the last batch again, and it is another one: with more rows."""
    source, sink = new_topic(bootstrap, 1), new_topic(bootstrap, 1)
    fill(bootstrap, source, range(100))
    rows = reading(spark, bootstrap, source).select("key", "value")
    run(writing(rows, bootstrap, tmp_path / "one", topic=sink))
    for log in ("offsets", "commits"):
        for name in ("0", ".0.crc"):
            (tmp_path / "one" / log / name).unlink(missing_ok=True)
    fill(bootstrap, source, range(100, 200))
    with pytest.raises(StreamingQueryException, match="batch 0 of this query is committed, but it covered other"):
        run(writing(rows, bootstrap, tmp_path / "one", topic=sink))
    check_exactly(bootstrap, sink, range(100))
