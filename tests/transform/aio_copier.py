"""A program that copies messages by `exacta.exactly_once` and aiokafka: `python -m tests.transform.aio_copier`.

It prints a line for each block that has committed messages. An error ends it, and its supervisor starts it again.
"""

import asyncio
import contextlib
import json
import sys
from typing import Any

import aiokafka

import exacta


async def main() -> None:
    """Copy for ever, as the settings in the first argument say."""
    given: dict[str, Any] = json.loads(sys.argv[1])
    address, source, target = given["address"], given["source"], given["target"]

    def producer_of(partition: Any) -> aiokafka.AIOKafkaProducer:
        return aiokafka.AIOKafkaProducer(
            bootstrap_servers=address,
            transactional_id=f"copy-{partition.topic}-{partition.partition}",
            transaction_timeout_ms=10_000,
            retry_backoff_ms=50,
        )

    consumer = aiokafka.AIOKafkaConsumer(
        source,
        bootstrap_servers=address,
        group_id="copy",
        enable_auto_commit=False,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        heartbeat_interval_ms=200,
        retry_backoff_ms=50,
        **given["consumer"],
    )
    async with consumer, contextlib.aclosing(exacta.exactly_once(consumer, producer_of)) as once:
        while True:
            async with once as transaction:
                messages = await transaction.consume(20, 0.2)
                for message in messages:
                    await transaction.send(target, message.value, partition=message.partition)
            if messages and transaction.committed:
                print("COMMITTED", len(messages), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
