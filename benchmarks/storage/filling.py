"""Fill a data directory: the engine and the local journal as the server has them, without a network in between.

`python -m benchmarks.storage.filling DIRECTORY GIGABYTES PARTITIONS` ends by SIGKILL when it is done, so that a program
that starts next recovers.
"""

import asyncio
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from benchmarks.batches import batch
from exacta.adapters.local import LocalJournal
from exacta.config.configuration import Configuration
from exacta.core.commands import AppendBatch, Command, CreateTopic
from exacta.engine.clock import Clock
from exacta.engine.engine import Answer, Engine, EngineFailed
from exacta.engine.schema import SCHEMA
from exacta.server.assembly import assemble_engine
from exacta.server.identity import JOURNAL_DIRECTORY

RECORD_BYTES = 4096
PARTITIONS_PER_TOPIC = 100
BATCHES_AT_ONCE = 500

Place = tuple[str, int]


class Filler:
    """An engine over the journal of a data directory, asked for one thing after another."""

    def __init__(self, data: Path) -> None:
        """Open the journal; needs a running event loop."""
        self._loop = asyncio.get_running_loop()
        configuration, self._clock = Configuration(), Clock()
        self.journal = LocalJournal.open(data / JOURNAL_DIRECTORY, self._loop.call_soon_threadsafe, schema=SCHEMA)
        self._engine: Engine = assemble_engine(
            self.journal,
            self._loop,
            clock=self._clock.now_ms,
            limits=configuration.limits(),
            on_failure=_failed,
        )
        self._batch = batch(self.now_ms(), size=RECORD_BYTES)

    @classmethod
    def in_process(cls, command: Sequence[str]) -> None:
        """Run a program that fills by `run`; raises RuntimeError if it ended otherwise."""
        status = subprocess.run([sys.executable, "-m", *command], check=False).returncode
        if status != -signal.SIGKILL:
            raise RuntimeError(f"{' '.join(command)} ended with status {status}")

    @classmethod
    async def run(cls, data: Path, fill: Callable[["Filler"], Awaitable[None]]) -> None:
        """Fill a directory, and end this process by SIGKILL."""
        await fill(cls(data))
        os.kill(os.getpid(), signal.SIGKILL)

    def now_ms(self) -> int:
        """Return the time of day, as records have it."""
        return self._clock.wall_ms()

    async def submit(self, commands: list[Command], payloads: list[bytes | None] | None = None) -> list[Answer]:
        """Return the answers, once what they promise is durable."""
        done: asyncio.Future[list[Answer]] = self._loop.create_future()
        self._engine.submit(commands, done.set_result, payloads)
        return await done

    async def append(self, places: Sequence[Place]) -> None:
        """Append a batch of 4 kB to each of these partitions."""
        commands: list[Command] = [
            AppendBatch(
                topic=topic,
                partition=index,
                record_count=1,
                size=len(self._batch),
                max_timestamp_ms=self.now_ms(),
            )
            for topic, index in places
        ]
        await self.submit(commands, [self._batch] * len(commands))


def new_topic(topic: str, partition_count: int) -> CreateTopic:
    """Return the command that creates a topic."""
    return CreateTopic(topic=topic, topic_id=uuid.uuid4().bytes, partition_count=partition_count)


async def fill(filler: Filler, size_bytes: int, partition_count: int) -> None:
    """Write batches to all partitions in turn until the log has this size."""
    partitions = min(partition_count, PARTITIONS_PER_TOPIC)
    topics = [f"filled-{number}" for number in range(max(1, partition_count // PARTITIONS_PER_TOPIC))]
    for topic in topics:
        await filler.submit([new_topic(topic, partitions)])
    places = [(topic, index) for topic in topics for index in range(partitions)]
    at = 0
    while filler.journal.position < size_bytes:
        await filler.append([places[(at + number) % len(places)] for number in range(BATCHES_AT_ONCE)])
        at += BATCHES_AT_ONCE


def _failed(failure: EngineFailed) -> None:
    raise SystemExit(str(failure))


if __name__ == "__main__":
    filling = partial(fill, size_bytes=int(float(sys.argv[2]) * 1e9), partition_count=int(sys.argv[3]))
    asyncio.run(Filler.run(Path(sys.argv[1]), filling))
