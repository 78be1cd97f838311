"""Fill a data directory: the engine and the local journal as the server has them, without a network in between.

`python -m benchmarks.storage.filling DIRECTORY GIGABYTES PARTITIONS` ends by SIGKILL when it is done, so that whoever
starts next recovers.
"""

import asyncio
import os
import signal
import sys
import uuid
from pathlib import Path

from aiokafka.record.default_records import DefaultRecordBatchBuilder

from exacta.adapters.local import LocalJournal
from exacta.config import Configuration
from exacta.core.commands import AppendBatch, Command, CreateTopic
from exacta.core.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from exacta.engine.clock import Clock
from exacta.engine.engine import Answer, Engine, EngineFailed
from exacta.kafka.record_format import KafkaRecordFormat
from exacta.server import JOURNAL_DIRECTORY

BATCH_BYTES = 4096
PARTITIONS_PER_TOPIC = 100
BATCHES_AT_ONCE = 500
NO_SEQUENCE = -1


async def fill(data: Path, size_bytes: int, partition_count: int) -> None:
    """Write batches to all partitions in turn until the log has this size."""
    loop = asyncio.get_running_loop()
    configuration, clock = Configuration(), Clock()
    journal = LocalJournal.open(data / JOURNAL_DIRECTORY, loop.call_soon_threadsafe)
    engine = Engine(
        journal,
        KafkaRecordFormat(),
        scheduler=loop,
        clock=clock.now_ms,
        limits=configuration.limits(),
        on_failure=_failed,
    )

    async def submit(commands: list[Command], payloads: list[bytes | None] | None = None) -> None:
        done: asyncio.Future[list[Answer]] = loop.create_future()
        engine.submit(commands, done.set_result, payloads)
        await done

    topics = [f"filled-{number}" for number in range(max(1, partition_count // PARTITIONS_PER_TOPIC))]
    for topic in topics:
        partitions = min(partition_count, PARTITIONS_PER_TOPIC)
        await submit([CreateTopic(topic=topic, topic_id=uuid.uuid4().bytes, partition_count=partitions)])
    places = [(topic, index) for topic in topics for index in range(min(partition_count, PARTITIONS_PER_TOPIC))]
    batch = _batch(clock.wall_ms())
    at = 0
    while journal.position < size_bytes:
        commands: list[Command] = []
        for _ in range(BATCHES_AT_ONCE):
            topic, index = places[at % len(places)]
            at += 1
            commands.append(
                AppendBatch(
                    topic=topic,
                    partition=index,
                    record_count=1,
                    size=len(batch),
                    max_timestamp_ms=clock.wall_ms(),
                    producer_id=NO_PRODUCER_ID,
                    producer_epoch=NO_PRODUCER_EPOCH,
                    base_sequence=NO_SEQUENCE,
                )
            )
        await submit(commands, [batch] * BATCHES_AT_ONCE)
    os.kill(os.getpid(), signal.SIGKILL)


def _batch(timestamp_ms: int) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=False,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
        base_sequence=NO_SEQUENCE,
        batch_size=2 * BATCH_BYTES,
    )
    builder.append(offset=0, timestamp=timestamp_ms, key=None, value=os.urandom(BATCH_BYTES), headers=[])
    return bytes(builder.build())


def _failed(failure: EngineFailed) -> None:
    raise SystemExit(str(failure))


if __name__ == "__main__":
    asyncio.run(fill(Path(sys.argv[1]), int(float(sys.argv[2]) * 1e9), int(sys.argv[3])))
