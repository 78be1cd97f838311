"""Run the shop, kill it again and again until it is sold out, and compare books and messages.

    python -m examples.shop.verify

Needs nothing but `exacta-log[verify]`: the broker is an embedded one, and the books are in SQLite. With
`--database 'host=… dbname=…'` they are in a PostgreSQL, in which the tables must not be there yet.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

import exacta
from examples.shop.shop import ORDERS, STOCK

ORDERS_BEFORE_A_KILL = 7
ROOT = Path(__file__).parents[2]
SETTINGS = {"transaction.two.phase.commit.enable": True}

Order = tuple[int, str, int]
"""An order's number, item and count."""


def main(arguments: list[str] | None = None) -> int:
    """Return 0 where books and messages tell the same, and all of the stock is sold once."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--database", help="a connection string of PostgreSQL; without it a new file of SQLite is used")
    given = parser.parse_args(arguments).database
    with tempfile.TemporaryDirectory(prefix="shop-") as folder, exacta.Broker(config=SETTINGS) as broker:
        database = given or str(Path(folder) / "shop.db")
        kills = sell_out(broker.bootstrap_servers, database)
        books, messages = sorted(rows(database)), sorted(shipped(broker.bootstrap_servers))
    sold = {item: sum(count for _, each, count in books if each == item) for item in STOCK}
    print(f"{kills} kills; {len(books)} orders in the books, {len(messages)} messages; sold {sold}")
    wrong = {
        "in the books only": set(books) - set(messages),
        "shipped only": set(messages) - set(books),
        "shipped twice": {order for order in messages if messages.count(order) > 1},
    }
    for what, orders in wrong.items():
        print(f"{what}: {len(orders)}", *sorted(orders)[:5])
    return 0 if sold == STOCK and kills > 0 and not any(wrong.values()) else 1


def sell_out(servers: str, database: str) -> int:
    """Run the shop until it ends by itself; return how often it was killed."""
    command = [sys.executable, "-m", "examples.shop.shop", "--bootstrap-servers", servers, "--database", database]
    kills = 0
    while True:
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as shop:
            assert shop.stdout is not None
            sold = 0
            for line in shop.stdout:
                sold += line.startswith("sold")
                if sold == ORDERS_BEFORE_A_KILL:
                    shop.kill()  # it is somewhere in the next order by now
        if sold < ORDERS_BEFORE_A_KILL:
            if shop.returncode != 0:
                raise RuntimeError("the shop has failed")
            return kills
        kills += 1


def rows(database: str) -> list[Order]:
    """Return the orders in the books."""
    with closing(books_at(database)) as books:
        found = books.execute("SELECT number, item, count FROM orders").fetchall()
        return [(number, item, count) for number, item, count in found]


def books_at(database: str) -> Any:
    """Connect to the books by the database's own driver."""
    if "=" not in database:
        return sqlite3.connect(database)
    import psycopg

    return psycopg.connect(database)


def shipped(servers: str) -> list[Order]:
    """Return the orders that a shipper sees, with a reader that shares no code with ours (librdkafka)."""
    reader = Consumer({"bootstrap.servers": servers, "group.id": "shipping", "enable.partition.eof": True})
    found: list[Order] = []
    try:
        partitions = list(reader.list_topics(ORDERS, 10).topics[ORDERS].partitions)
        reader.assign([TopicPartition(ORDERS, index, OFFSET_BEGINNING) for index in partitions])
        ended = 0
        while ended < len(partitions):
            message: Any = reader.poll(10)
            if message is None:
                raise RuntimeError("the log is silent")
            if message.error() is None:
                order = json.loads(message.value())
                found.append((order["number"], order["item"], order["count"]))
            elif message.error().code() == KafkaError._PARTITION_EOF:
                ended += 1
    finally:
        reader.close()
    return found


if __name__ == "__main__":
    sys.exit(main())
