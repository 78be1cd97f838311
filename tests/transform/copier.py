"""A program that copies messages by `exacta.exactly_once`, for tests that kill it: `python -m tests.transform.copier`.

It prints a line for each block that has committed messages. A fatal error ends it, and its supervisor starts it again.
"""

import json
import sys
from typing import Any

from confluent_kafka import Consumer, Producer

import exacta
from tests.transform.conftest import CALL_S, consuming, servers


def main() -> None:
    """Copy for ever, as the settings in the first argument say."""
    given: dict[str, Any] = json.loads(sys.argv[1])
    address, source, target = given["address"], given["source"], given["target"]
    consumer = Consumer(consuming(address, **given["consumer"]))
    consumer.subscribe([source])
    producer = Producer(
        servers(address) | {"transactional.id": given["transactional_id"], "transaction.timeout.ms": 10_000}
    )
    producer.init_transactions(CALL_S)
    once = exacta.exactly_once(consumer, producer)
    while True:
        with once as transaction:
            messages = transaction.consume(20, 0.2)
            for message in messages:
                producer.produce(target, message.value(), partition=message.partition())
        if messages and transaction.committed:
            print("COMMITTED", len(messages), flush=True)


if __name__ == "__main__":
    main()
