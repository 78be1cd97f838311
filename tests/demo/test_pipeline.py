"""The pipeline's logic in Spark, on a batch of the same rows, against pandas."""

import sys
import threading

import msgspec
import pytest
from pyspark.errors import StreamingQueryException

import exacta
from exacta.demo import expectation, flights, topics
from exacta.demo.records import AirportHour, EnrichedFlight, Flight
from exacta.spark import register
from tests.spark.shared_session import end_shared_session

pytestmark = pytest.mark.spark

FLIGHTS = 5_000
SLOW_AT_FIRST = """#!/bin/sh
case "$*" in
  *python_streaming_source_runner*) if [ ! -e '{seen}' ]; then touch '{seen}'; sleep 12; exit 1; fi ;;
esac
exec '{python}' "$@"
"""


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    from exacta.demo import pipeline
    from exacta.spark.java import java_home

    end_shared_session()  # the pipeline's own settings are under test
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_HOME", str(java_home()))
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        session = pipeline.start_session(tmp_path_factory.mktemp("scratch"))
        yield session
        session.stop()


@pytest.fixture(scope="module")
def frame():
    return flights.read_flights(flights.data_directory(), FLIGHTS)


@pytest.fixture(scope="module")
def rows(spark, frame):
    """The input as Spark's source gives it, with a closing event at its end."""
    closing = Flight(flight_id=-1, scheduled="2013-06-01T00:00:00Z")
    messages = [*flights.messages(frame), flights.Message(key=b"closing", value=msgspec.json.encode(closing))]
    return spark.createDataFrame(
        [(bytearray(message.key), bytearray(message.value)) for message in messages], "key BINARY, value BINARY"
    )


def test_enriched_flights_are_those_of_pandas_and_are_not_shuffled(rows, frame):
    from exacta.demo import pipeline

    tables = flights.data_directory()
    enriched = pipeline.enriched_flights(rows, tables)
    computed = [(bytes(row.key), msgspec.json.decode(row.value, type=EnrichedFlight)) for row in enriched.collect()]
    assert computed == list(expectation.enriched_flights(frame, tables).rows.values())
    assert "Exchange hashpartitioning" not in enriched._jdf.queryExecution().toString()


def test_delays_are_those_of_pandas(rows, frame):
    from exacta.demo import pipeline

    found = {bytes(row.key): row.value for row in pipeline.delays_by_airport_and_hour(rows).collect()}
    # As a batch, without a watermark, the closing event's own hour comes out as well.
    del found[b"2013-06-01T00:00:00Z"]
    hours = [(key, msgspec.json.decode(value, type=AirportHour)) for key, value in found.items()]
    computed = {(hour.airport, hour.hour): (key, hour) for key, hour in hours}
    assert computed == dict(expectation.delays_by_airport_and_hour(frame).rows)


def test_a_query_whose_python_worker_is_too_slow_to_start_is_started_again(spark, tmp_path, monkeypatch):
    """On an overloaded machine Spark's 10 s pass; no setting makes them more."""
    from exacta.demo import pipeline

    slow = tmp_path / "python"
    slow.write_text(SLOW_AT_FIRST.format(python=sys.executable, seen=tmp_path / "seen"))
    slow.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(slow))
    register(spark)
    with exacta.Broker() as broker:
        broker.create_topic("input", partitions=1)
        topics.load(broker.bootstrap_servers, "input", [flights.Message(key=b"k", value=b"1")], lambda _: None)
        frame = (
            spark.readStream.format("exacta")
            .option("kafka.bootstrap.servers", broker.bootstrap_servers)
            .option("subscribe", "input")
            .option("startingOffsets", "earliest")
            .load()
        )
        ended = threading.Event()
        starts: list[int] = []
        batches: list[bytes] = []

        def take(batch, _):
            batches.extend(bytes(row.value) for row in batch.collect())
            ended.set()

        def start():
            starts.append(1)
            writer = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path / "checkpoint"))
            return writer.start()

        pipeline.keep_running(spark, [start], ended)
        for query in spark.streams.active:
            query.stop()
    assert (len(starts), batches) == (2, [b"1"])


def test_a_query_that_fails_otherwise_ends_the_pipeline(spark, tmp_path):
    from exacta.demo import pipeline

    def fail(*_):
        raise ValueError("no good")

    def start():
        return spark.readStream.format("rate").load().writeStream.foreachBatch(fail).start()

    with pytest.raises(StreamingQueryException, match="no good"):
        pipeline.keep_running(spark, [start], threading.Event())
