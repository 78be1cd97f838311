"""Compute with pandas what the pipeline's outputs must be.

This module owns the second, independent computation of both outputs, from the same CSV files. It shares no code with
the pipeline: joins, windows and sums are written again, on another engine. It does not read any topic.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd
from msgspec import Struct

from exacta.demo.flights import plain, read_table
from exacta.demo.records import LATE_FROM_MINUTES, AirportHour, EnrichedFlight


class Expected(Struct, frozen=True, kw_only=True):
    """Hold the rows that an output must contain: identity -> (message key, contents)."""

    rows: dict[Any, tuple[bytes, Any]]


def enriched_flights(frame: pd.DataFrame, directory: Path) -> Expected:
    """Compute output (a), identified by `flight_id`."""
    airlines = read_table(directory, "airlines").set_index("carrier")["name"]
    airports = read_table(directory, "airports").set_index("faa")["name"]
    weather = read_table(directory, "weather")[["origin", "time_hour", "temp", "wind_speed", "precip", "visib"]]
    joined = frame.merge(weather, how="left", on=["origin", "time_hour"], validate="many_to_one")
    columns: dict[str, list[Any]] = {
        name: plain(joined[name], int)
        for name in ("flight_id", "flight", "distance", "dep_delay", "arr_delay", "air_time")
    }
    columns |= {name: plain(joined[name], str) for name in ("scheduled", "carrier", "origin", "dest", "tailnum")}
    columns |= {name: plain(joined[name], float) for name in ("temp", "wind_speed", "precip", "visib")}
    columns["airline"] = plain(joined["carrier"].map(airlines), str)
    columns["origin_name"] = plain(joined["origin"].map(airports), str)
    columns["dest_name"] = plain(joined["dest"].map(airports), str)
    contents = (EnrichedFlight(**row) for row in _rows(columns))
    return Expected(rows={row.flight_id: (key.encode(), row) for key, row in zip(joined["key"], contents, strict=True)})


def delays_by_airport_and_hour(frame: pd.DataFrame) -> Expected:
    """Compute output (b), identified by (airport, hour)."""
    delay = frame["dep_delay"]
    prepared = pd.DataFrame(
        {
            "airport": frame["origin"],
            "hour": frame["scheduled_at"].dt.floor("h").dt.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "cancelled": delay.isna().astype("int64"),
            "late": (delay >= LATE_FROM_MINUTES).astype("int64"),
            "minutes_late": delay.clip(lower=0).fillna(0).astype("int64"),
            "dep_delay": delay,
        }
    )
    grouped = (
        prepared.groupby(["airport", "hour"], sort=True)
        .agg(
            flights=("cancelled", "size"),
            cancelled=("cancelled", "sum"),
            late=("late", "sum"),
            minutes_late=("minutes_late", "sum"),
            longest_delay=("dep_delay", "max"),
        )
        .reset_index()
    )
    columns: dict[str, list[Any]] = {name: plain(grouped[name], str) for name in ("airport", "hour")}
    columns |= {
        name: plain(grouped[name], int) for name in ("flights", "cancelled", "late", "minutes_late", "longest_delay")
    }
    rows = (AirportHour(**row) for row in _rows(columns))
    return Expected(rows={(row.airport, row.hour): (f"{row.airport}|{row.hour}".encode(), row) for row in rows})


def _rows(columns: dict[str, list[Any]]) -> Iterable[dict[str, Any]]:
    names = tuple(columns)
    return (dict(zip(names, values, strict=True)) for values in zip(*columns.values(), strict=True))
