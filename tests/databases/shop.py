"""The program under test: it numbers orders, one transaction each, and goes on where the database has ended.

Each transaction reads the last number, inserts the next one, sends a message with it, and commits it as the offset of a
consumer group. So rows, messages and offset tell the same story, whatever is killed: 1, 2, 3, ...

    python -m tests.databases.shop PLACE

goes on for ever, whatever fails, at the place that the JSON names. It prints a line for each order and each failure.
"""

import json
import random
import sqlite3
import sys
import time
from typing import Any, NamedTuple

import psycopg

import exacta
from exacta.client.group_offsets import fetch_offsets
from exacta.client.routing import Client
from exacta.client.transactions import TopicPartition
from exacta.databases.database import Database
from tests.spark.clusters import read_committed

GROUP = "shop"
TABLE = "CREATE TABLE orders (number INTEGER PRIMARY KEY)"


class Place(NamedTuple):
    """A database by its kind and address, and the log with its topic: enough to make both sides again."""

    kind: str
    address: str
    servers: str
    topic: str
    timeout_ms: float = 60_000

    def database(self) -> Database:
        return exacta.Sqlite(self.address) if self.kind == "sqlite" else exacta.Postgres(self.address)

    def both(self) -> Any:
        return exacta.two_phase(
            self.servers, transactional_id=self.topic, database=self.database(), timeout_ms=self.timeout_ms
        )


def order(both: Any, place: Place) -> int:
    """Place the next order, and return its number."""
    with both.transaction() as transaction:
        (last,) = transaction.execute("SELECT coalesce(max(number), 0) FROM orders").fetchone()
        number = last + 1
        transaction.execute(f"INSERT INTO orders VALUES ({number})")
        transaction.produce(place.topic, str(number), key=b"k")
        transaction.send_offsets(f"{GROUP}-{place.topic}", {(place.topic, 0): number})
    return number


def life(place: Place, orders: int) -> None:
    """Start, place this many orders, and end."""
    with place.both() as both:
        for _ in range(orders):
            order(both, place)


def rows(place: Place) -> list[int]:
    """Return the numbers in the database."""
    database = place.database()
    database.open(place.timeout_ms)
    try:
        return [number for (number,) in database.ask("SELECT number FROM orders ORDER BY number")]
    finally:
        database.close()


def make_table(place: Place) -> None:
    """Create the program's own table."""
    database = place.database()
    database.open(place.timeout_ms)
    with database.own_transaction():
        database.change(TABLE)
    database.close()


def offset(place: Place) -> int:
    """Return the group's offset; raises `KafkaError` while a transaction holds it."""
    with Client(place.servers) as client:
        found = fetch_offsets(client, f"{GROUP}-{place.topic}", stable=True, wait=False)
    at = found.get(TopicPartition(place.topic, 0))
    return 0 if at is None else at.offset


def messages(place: Place) -> list[int]:
    """Return the numbers in the log, as a reader of committed messages sees them."""
    return [int(value) for _, _, value in read_committed(place.servers, place.topic) if value is not None]


def check(place: Place) -> int:
    """Check that database and log tell the same, exactly once and in order; return how many orders there are."""
    found = rows(place)
    assert found == list(range(1, len(found) + 1))
    assert messages(place) == found
    assert offset(place) == len(found)
    return len(found)


def check_quickly(place: Place) -> int:
    """Check what can be asked in a moment: that nothing is open, and the last number."""
    found = rows(place)
    assert found == list(range(1, len(found) + 1))
    assert offset(place) == len(found)
    return len(found)


def run(place: Place) -> None:
    """Place orders until somebody kills the process."""
    while True:
        try:
            with place.both() as both:
                print(f"STARTED {both.recovered}", flush=True)
                while True:
                    print(f"ORDER {order(both, place)}", flush=True)
        except (exacta.TwoPhaseError, exacta.OutcomeUnknown, sqlite3.Error, psycopg.Error) as error:
            print(f"FAILED {type(error).__name__}: {' '.join(str(error).split())}", flush=True)
            time.sleep(random.uniform(0, 0.2))  # two instances that restart at once would only fence each other


if __name__ == "__main__":
    run(Place(*json.loads(sys.argv[1])))
