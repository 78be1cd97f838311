"""Write an alert for each measurement that is too hot, once, whichever process dies.

    python -m examples.alerts.service --bootstrap-servers 127.0.0.1:9092

Start several instances if you like: each partition has a transactional id, and its new owner fences the old one.
"""

import argparse
import asyncio
from contextlib import aclosing

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

import exacta
from exacta.transform.aio import AsyncExactlyOnce

LIMIT = 100.0


async def step(once: AsyncExactlyOnce, alerts: str = "alerts", timeout_s: float = 1.0) -> bool:
    """Look at some measurements; return whether their alerts are committed."""
    async with once as transaction:
        for message in await transaction.consume(100, timeout_s):
            if float(message.value) > LIMIT:
                await transaction.send(alerts, message.value, message.key)
    return transaction.committed


def clients(
    servers: str, measurements: str = "measurements", group: str = "alerts"
) -> tuple[AIOKafkaConsumer, AsyncExactlyOnce]:
    """Return a consumer that is to be started, and its transactions."""

    def producer_for(partition: TopicPartition) -> AIOKafkaProducer:
        transactional_id = f"{group}-{partition.topic}-{partition.partition}"
        return AIOKafkaProducer(bootstrap_servers=servers, transactional_id=transactional_id)

    consumer = AIOKafkaConsumer(
        measurements,
        bootstrap_servers=servers,
        group_id=group,
        enable_auto_commit=False,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
    )
    return consumer, exacta.exactly_once(consumer, producer_for)


async def main(servers: str) -> None:
    """Work until the process is killed."""
    consumer, transactions = clients(servers)
    async with consumer, aclosing(transactions) as once:
        while True:
            await step(once)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap-servers", required=True)
    asyncio.run(main(parser.parse_args().bootstrap_servers))
