"""Sell what is in stock: each order takes its items out of the stock, is a row, and is a message for the shippers.

    python -m examples.shop.shop --bootstrap-servers 127.0.0.1:9092 --database shop.db

The three happen in one transaction over database and log. Kill the program whenever you like and start it again: no
order is shipped that is not in the books, none is in the books that is not shipped, and no item is sold twice. With
`--database 'host=… dbname=…'` the books are in PostgreSQL. The broker needs `transaction.two.phase.commit.enable=true`.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

import exacta

ORDERS = "orders"
MOST_PER_ORDER = 3
# Values stand in the statements, because sqlite3 and psycopg write parameters differently. All of them are our own.
TABLES = (
    "CREATE TABLE IF NOT EXISTS stock (item TEXT PRIMARY KEY, count INTEGER NOT NULL CHECK (count >= 0))",
    "CREATE TABLE IF NOT EXISTS orders (number INTEGER PRIMARY KEY, item TEXT NOT NULL, count INTEGER NOT NULL)",
)
STOCK = {"apples": 120, "pears": 45, "plums": 80}


def main() -> int:
    """Sell until nothing is left."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--database", required=True, help="a file of SQLite, or a connection string of PostgreSQL")
    options = parser.parse_args()
    database = exacta.Postgres(options.database) if "=" in options.database else exacta.Sqlite(options.database)
    with exacta.two_phase(options.bootstrap_servers, transactional_id="shop-1", database=database) as both:
        if both.recovered:
            print(f"the last order of the run before is {both.recovered}", flush=True)
        with both.transaction() as transaction:
            open_shop(transaction)
        while True:
            with both.transaction() as transaction:
                number = sell(transaction)
            if number is None:
                return 0
            print(f"sold order {number}", flush=True)


def open_shop(transaction: Any) -> None:
    """Create the tables and fill the stock, unless a run before has done so."""
    for table in TABLES:
        transaction.execute(table)
    if transaction.execute("SELECT count(*) FROM stock").fetchone()[0] == 0:
        for item, count in STOCK.items():
            transaction.execute(f"INSERT INTO stock VALUES ('{item}', {count})")


def sell(transaction: Any) -> int | None:
    """Sell some of the item of which most is left; return the order's number, or None if nothing is left."""
    left = transaction.execute("SELECT item, count FROM stock WHERE count > 0 ORDER BY count DESC, item").fetchone()
    if left is None:
        return None
    (last,) = transaction.execute("SELECT coalesce(max(number), 0) FROM orders").fetchone()
    number, item, count = last + 1, left[0], min(left[1], 1 + last % MOST_PER_ORDER)
    transaction.execute(f"UPDATE stock SET count = count - {count} WHERE item = '{item}'")
    transaction.execute(f"INSERT INTO orders VALUES ({number}, '{item}', {count})")
    transaction.produce(ORDERS, json.dumps({"number": number, "item": item, "count": count}), key=item)
    return int(number)


if __name__ == "__main__":
    sys.exit(main())
