"""The pipeline's logic in Spark, on a batch of the same rows, against pandas."""

import sys

import msgspec
import pytest

from exacta.demo import expectation, flights
from exacta.demo.records import AirportHour, EnrichedFlight, Flight
from tests.spark.shared_session import end_shared_session

pytestmark = pytest.mark.spark

FLIGHTS = 5_000


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
