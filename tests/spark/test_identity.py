"""A query whose sink changes its name or guarantee in the middle of a batch: nothing comes twice unasked.

The middle of a batch is made by hand: the sink has committed it, and what Spark noted of that is removed.
"""

import itertools
import json

import pytest
from pyspark.errors import StreamingQueryException

import exacta.spark
from exacta.client.routing import Client
from exacta.spark.cleaning import clean
from exacta.spark.sink.checkpoint_files import SparkFiles
from tests.spark.clusters import check_exactly, new_topic, tally
from tests.spark.queries import fill, reading, run, writing
from tests.spark.sink.test_checkpoint_files import check_contract

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

ROWS = 400
PREFIX, SINK, GUARANTEE = "transactional.id.prefix", "sink.name", "delivery.guarantee"
PREFIXES = [(PREFIX, before, now) for before, now in itertools.permutations((None, "pa", "pb"), 2) if before != "pb"]
GUARANTEES = [(GUARANTEE, None, "at-least-once"), (GUARANTEE, "at-least-once", None)]
SINKS = [(SINK, before, now) for before, now in itertools.permutations((None, "a", "b"), 2) if before != "b"]


class Query:
    """A query with one batch of rows, run by one of the two ways to write."""

    def __init__(self, spark, bootstrap, way, checkpoint):
        self.spark, self.bootstrap, self.way, self.checkpoint = spark, bootstrap, way, checkpoint
        self.source, self.sink = new_topic(bootstrap, 2), new_topic(bootstrap, 3)
        self.add(range(ROWS))

    def add(self, rows):
        fill(self.bootstrap, self.source, rows)

    def run(self, **options):
        """Run the query until it has read what there is."""
        rows = reading(self.spark, self.bootstrap, self.source).select("key", "value")
        # Two tests must not share a name on the cluster.
        options = {name: f"{value}-{self.sink}" if name == PREFIX else value for name, value in options.items()}
        if self.way == "format":
            run(writing(rows, self.bootstrap, self.checkpoint, topic=self.sink, **options))
            return
        servers, topic, of_driver = self.bootstrap, self.sink, {} if self.way == "driver" else {"driver.rows": 0}
        if options.get(GUARANTEE) == "at-least-once":
            of_driver = {}

        def write(batch_df, batch_id):
            given = {"kafka.bootstrap.servers": servers, "topic": topic, **of_driver, **options}
            exacta.spark.write(batch_df, batch_id, given)

        writer = rows.writeStream.foreachBatch(write).option("checkpointLocation", str(self.checkpoint))
        run(writer.trigger(availableNow=True))

    def forget_that_it_is_done(self):
        """Remove Spark's note that its last batch is done."""
        commits = self.checkpoint / "commits"
        last = max(int(each.name) for each in commits.iterdir() if each.name.isdecimal())
        for name in (str(last), f".{last}.crc"):
            (commits / name).unlink(missing_ok=True)


@pytest.fixture
def query(spark, bootstrap, tmp_path, request):
    return Query(spark, bootstrap, request.param, tmp_path / "checkpoint")


def given(name, value):
    return {} if value is None else {name: value}


@pytest.mark.parametrize(
    ("query", "option", "before", "now"),
    [
        *(("format", *change) for change in (*PREFIXES, *GUARANTEES)),  # the streaming sink is one: it has no name
        *((way, *change) for way in ("driver", "tasks") for change in (*PREFIXES, *GUARANTEES, *SINKS)),
    ],
    indirect=["query"],
)
def test_a_changed_option_is_refused_until_its_batch_is_adopted(query, option, before, now):
    query.run(**given(option, before))
    query.forget_that_it_is_done()
    with pytest.raises(StreamingQueryException) as refused:
        query.run(**given(option, now))
    assert f"option '{option}' was " in str(refused.value)
    assert "set option 'checkpoint.adopt.batch' to '0'" in str(refused.value)
    check_exactly(query.bootstrap, query.sink, range(ROWS))
    if before == "at-least-once":
        # It has no name to go back to under which the batch is known.
        query.run(**given(option, now), **{"checkpoint.adopt.batch": 0})
        assert tally(query.bootstrap, query.sink, range(ROWS)) == (0, ROWS, 0)
        query.forget_that_it_is_done()
        query.run(**given(option, now))
        assert tally(query.bootstrap, query.sink, range(ROWS)) == (0, ROWS, 0)
        return
    query.run(**given(option, before))
    check_exactly(query.bootstrap, query.sink, range(ROWS))
    query.add(range(ROWS, ROWS + 10))
    query.run(**given(option, before))
    check_exactly(query.bootstrap, query.sink, range(ROWS + 10))


@pytest.mark.parametrize("query", ["format", "driver", "tasks"], indirect=True)
def test_records_that_the_cluster_has_forgotten(query):
    query.run()
    query.forget_that_it_is_done()
    query_id = json.loads((query.checkpoint / "metadata").read_text())["id"]
    with Client(query.bootstrap) as client:
        clean(client, query_id)
        with pytest.raises(StreamingQueryException, match="the cluster has forgotten"):
            query.run()
        check_exactly(query.bootstrap, query.sink, range(ROWS))
        query.run(**{"checkpoint.adopt.batch": 0})
        assert tally(query.bootstrap, query.sink, range(ROWS)) == (0, ROWS, 0)
        # Spark has noted that batch: the next one was never decided, and goes on whatever the cluster has forgotten.
        clean(client, query_id)
    query.add(range(ROWS, ROWS + 10))
    query.run()
    assert tally(query.bootstrap, query.sink, range(ROWS + 10)) == (0, ROWS, 0)


@pytest.mark.parametrize("query", ["format", "driver"], indirect=True)
def test_a_query_that_wrote_with_another_sink_is_refused_once(query):
    rows = reading(query.spark, query.bootstrap, query.source).select("key", "value")
    for _ in range(2):  # two batches, by something that is not ours
        run(
            rows.writeStream.format("noop")
            .option("checkpointLocation", str(query.checkpoint))
            .trigger(availableNow=True)
        )
        query.add(range(ROWS, ROWS + 10))
    with pytest.raises(StreamingQueryException, match=r"has come to batch 2 without this sink.*adopt\.batch' to '2'"):
        query.run()
    query.run(**{"checkpoint.adopt.batch": 2})
    query.add(range(ROWS + 10, ROWS + 20))
    query.run()
    check_exactly(query.bootstrap, query.sink, range(ROWS, ROWS + 20))


def test_a_further_sink_joins_a_query_in_mid_life(spark, bootstrap, tmp_path):
    query = Query(spark, bootstrap, "driver", tmp_path / "checkpoint")
    query.run()
    other, servers, topic = new_topic(bootstrap, 1), bootstrap, query.sink
    query.add(range(ROWS, ROWS + 10))

    def write(batch_df, batch_id):
        options = {"kafka.bootstrap.servers": servers, "topic": topic}
        exacta.spark.write(batch_df, batch_id, options)
        exacta.spark.write(batch_df, batch_id, {**options, "topic": other, "sink.name": "second"})

    rows = reading(spark, bootstrap, query.source).select("key", "value")
    writer = rows.writeStream.foreachBatch(write).option("checkpointLocation", str(query.checkpoint))
    run(writer.trigger(availableNow=True))
    check_exactly(bootstrap, query.sink, range(ROWS + 10))
    check_exactly(bootstrap, other, range(ROWS, ROWS + 10))


def test_a_checkpoint_behind_sparks_own_file_system(spark, bootstrap, tmp_path):
    """One that only Hadoop reaches, and pyarrow does not: a mount table of Hadoop's stands for a store."""
    (tmp_path / "files").mkdir()
    spark.conf.set("fs.viewfs.mounttable.exacta.link./place", tmp_path.as_uri())
    check_contract(SparkFiles(spark, "viewfs://exacta/place/files"))
    check_contract(SparkFiles(spark, (tmp_path / "more").as_uri()))
    query = Query(spark, bootstrap, "tasks", tmp_path / "checkpoint")
    query.checkpoint = "viewfs://exacta/place/checkpoint"
    query.run(**{PREFIX: "pa"})
    assert (tmp_path / "checkpoint" / "exacta" / "sink.json").exists()
    (tmp_path / "checkpoint" / "commits" / "0").unlink()
    with pytest.raises(StreamingQueryException, match=r"'transactional\.id\.prefix' was removed"):
        query.run()
    query.run(**{PREFIX: "pa"})
    check_exactly(bootstrap, query.sink, range(ROWS))
    # The streaming sink's own processes do not reach it, and say so.
    query.way = "format"
    query.add(range(ROWS, ROWS + 10))
    with pytest.raises(StreamingQueryException, match=r"through pyarrow.*exacta\.spark\.write"):
        query.run(**{PREFIX: "pa"})
