"""The demo's messages: what goes into the pipeline and what must come out.

This module owns the JSON form of the three kinds of message. It does not know where flights come from (`flights`), what
the outputs should be (`expectation`) or how Spark computes them (`pipeline`).

Theory of operation: every value is an integer, a string, or a floating point number that is only copied, never computed
with; so the outputs of Spark and of pandas are compared for equality, without a tolerance. A missing value is an absent
field, as Spark's `to_json` writes it. Times are text, in UTC, to the second.
"""

import msgspec

CLOSING_FLIGHT_ID = -1
LATE_FROM_MINUTES = 15


class Flight(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Describe one flight as the input topic carries it; `flight_id` is its position in the input."""

    flight_id: int
    scheduled: str
    carrier: str = ""
    flight: int = 0
    origin: str = ""
    dest: str = ""
    distance: int = 0
    tailnum: str | None = None
    dep_delay: int | None = None
    arr_delay: int | None = None
    air_time: int | None = None


class EnrichedFlight(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Describe one flight with the names of its airline and airports and the weather at its origin."""

    flight_id: int
    scheduled: str
    carrier: str
    flight: int
    origin: str
    dest: str
    distance: int
    tailnum: str | None = None
    dep_delay: int | None = None
    arr_delay: int | None = None
    air_time: int | None = None
    airline: str | None = None
    origin_name: str | None = None
    dest_name: str | None = None
    temp: float | None = None
    wind_speed: float | None = None
    precip: float | None = None
    visib: float | None = None


class AirportHour(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Describe the departures of one airport that were scheduled within one hour."""

    airport: str
    hour: str
    flights: int
    cancelled: int
    late: int
    minutes_late: int
    longest_delay: int | None = None
