"""Write an invoice for each order, once, whichever process dies.

    python -m examples.invoices.service --bootstrap-servers 127.0.0.1:9092 --instance 1

Start as many instances as `orders` has partitions, each with its own number, and kill them whenever you like.
"""

import argparse
import json
from typing import Any

from confluent_kafka import Consumer, Producer

import exacta

PRICES = {"apples": 3, "pears": 4}


class Service:
    """One instance: its clients, and its transactions."""

    def __init__(self, servers: str, instance: str, orders: str = "orders", invoices: str = "invoices") -> None:
        """Join the group, and fence the process that had the number of this instance before."""
        common = {"bootstrap.servers": servers, "metadata.recovery.strategy": "none"}
        reading = {"group.id": "invoices", "enable.auto.commit": False, "auto.offset.reset": "earliest"}
        self.invoices = invoices
        self.consumer = Consumer({**common, **reading, "isolation.level": "read_committed"})
        self.consumer.subscribe([orders])
        self.producer = Producer({**common, "transactional.id": f"invoices-{instance}"})
        self.producer.init_transactions()
        self.once = exacta.exactly_once(self.consumer, self.producer)

    def step(self, timeout_s: float = 1.0) -> bool:
        """Write the invoices for some orders; return whether they are committed."""
        with self.once as transaction:
            for message in transaction.consume(100, timeout_s):
                invoice = invoice_for(json.loads(message.value()))
                self.producer.produce(self.invoices, json.dumps(invoice), key=message.key())
        return bool(transaction.committed)


def invoice_for(order: dict[str, Any]) -> dict[str, Any]:
    """Return what an order costs."""
    return {"order": order["number"], "total": sum(PRICES[item] * count for item, count in order["items"].items())}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--instance", required=True)
    given = parser.parse_args()
    service = Service(given.bootstrap_servers, given.instance)
    while True:
        service.step()
