"""The computation in pandas, against values worked out by hand."""

import pandas as pd

from exacta.demo import expectation, flights
from exacta.demo.records import AirportHour, EnrichedFlight


def departures(*rows):
    frame = pd.DataFrame(rows, columns=["origin", "scheduled_at", "dep_delay"])
    frame["scheduled_at"] = pd.to_datetime(frame["scheduled_at"], utc=True)
    return frame


def test_delays_are_counted_by_airport_and_hour():
    frame = departures(
        ("JFK", "2013-05-01T10:00:00Z", -4.0),
        ("JFK", "2013-05-01T10:59:00Z", 15.0),
        ("JFK", "2013-05-01T10:30:00Z", None),
        ("JFK", "2013-05-01T10:30:00Z", 14.0),
        ("JFK", "2013-05-01T11:00:00Z", None),
        ("LGA", "2013-05-01T10:00:00Z", -1.0),
    )
    rows = expectation.delays_by_airport_and_hour(frame).rows
    assert list(rows.values()) == [
        (
            b"JFK|2013-05-01T10:00:00Z",
            AirportHour(
                airport="JFK",
                hour="2013-05-01T10:00:00Z",
                flights=4,
                cancelled=1,
                late=1,
                minutes_late=29,
                longest_delay=15,
            ),
        ),
        (
            b"JFK|2013-05-01T11:00:00Z",
            AirportHour(airport="JFK", hour="2013-05-01T11:00:00Z", flights=1, cancelled=1, late=0, minutes_late=0),
        ),
        (
            b"LGA|2013-05-01T10:00:00Z",
            AirportHour(
                airport="LGA",
                hour="2013-05-01T10:00:00Z",
                flights=1,
                cancelled=0,
                late=0,
                minutes_late=0,
                longest_delay=-1,
            ),
        ),
    ]


def test_flights_are_enriched():
    tables = flights.data_directory()
    rows = expectation.enriched_flights(flights.read_flights(tables, 100), tables).rows
    assert list(rows) == list(range(100))
    assert rows[0] == (
        b"N14228",
        EnrichedFlight(
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
            airline="United Air Lines Inc.",
            origin_name="Newark Liberty Intl",
            dest_name="George Bush Intercontinental",
            temp=39.02,
            wind_speed=12.658579999999999,  # as the file has it
            precip=0.0,
            visib=10.0,
        ),
    )
    to_puerto_rico = next(row for _, row in rows.values() if row.dest == "BQN")
    assert to_puerto_rico.dest_name is None  # the package's table of airports does not know it
