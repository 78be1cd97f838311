"""The size in memory, and in a snapshot, of each thing that the broker knows: `python -m benchmarks.state`.

It is measured in-process, by Python's own account of memory (tracemalloc): an engine over a journal in memory, whose
groups are thrown away. Records are on disk, and cost their index there (see `benchmarks.storage`).
"""

import argparse
import asyncio
import gc
import time
import tracemalloc
from collections.abc import Awaitable, Callable

from exacta.adapters.memory import MemoryJournal, MemoryStorage
from exacta.core.commands import (
    AddPartitions,
    AppendBatch,
    Command,
    CommitOffsets,
    CreateTopic,
    EndTransaction,
    InitProducerId,
    OffsetToCommit,
)
from exacta.core.ids import Offset, ProducerEpoch, ProducerId
from exacta.core.replies import ProducerBoundReply, Reply
from exacta.core.snapshot import fold, snapshot
from exacta.core.state.state import State
from exacta.core.values.limits import Limits
from exacta.core.writers import IdempotentWriter
from exacta.engine.engine import Engine
from exacta.engine.upkeep import Retention, Schedule
from exacta.ports.log import Answer
from exacta.protocol.kafka.batch_building import control_batch
from exacta.records.compaction import compaction
from exacta.server.assembly import assemble_engine

PARTITIONS_PER_TOPIC = 100
BATCH = control_batch(0, 1, 0, commit=True, coordinator_epoch=0, timestamp_ms=0)
"""Any batch: nobody reads it."""


class World:
    """An engine, asked for one thing after another."""

    def __init__(self) -> None:
        self._storage = MemoryStorage()
        self._loop = asyncio.get_running_loop()
        self._engine: Engine = assemble_engine(
            MemoryJournal(self._storage, self._loop.call_soon),
            self._loop,
            clock=lambda: time.time_ns() // 1_000_000,
            limits=Limits(max_partitions=1 << 30, max_groups=1 << 30, max_producers_per_partition=1 << 30),
            on_failure=lambda failure: None,
            schedule=Schedule(rules=lambda configs: Retention(), rewriter=compaction),
        )

    @property
    def state(self) -> State:
        """The engine's."""
        return self._engine._state  # which it shows nobody else

    async def send(self, command: Command, payload: bytes | None = None) -> Reply:
        """Return the answer, which must be no rejection."""
        answered: asyncio.Future[list[Answer]] = self._loop.create_future()
        self._engine.submit((command,), answered.set_result, [payload])
        (answer,) = await answered
        assert isinstance(answer, Reply), answer
        return answer

    async def bind(self, transactional_id: str | None) -> tuple[ProducerId, ProducerEpoch]:
        """Return a new producer's pair."""
        reply = await self.send(InitProducerId(transactional_id=transactional_id, transaction_timeout_ms=60_000))
        assert isinstance(reply, ProducerBoundReply)
        return reply.producer_id, reply.producer_epoch

    def forget_journal(self) -> None:
        """Throw away what a disk would keep."""
        self._storage.groups.clear()
        self._engine._journal._batches.clear()  # type: ignore[attr-defined]


def topic(number: int) -> Command:
    """Make the command that creates a topic."""
    return CreateTopic(
        topic=f"topic-{number:06d}", topic_id=number.to_bytes(16, "big"), partition_count=PARTITIONS_PER_TOPIC
    )


async def partitions(world: World, count: int) -> None:
    """Create this many, in topics of a hundred."""
    for number in range(count // PARTITIONS_PER_TOPIC):
        await world.send(topic(number))


async def append(world: World, pair: tuple[ProducerId, ProducerEpoch], transactional_id: str | None = None) -> None:
    """Let a producer write a batch into the first partition."""
    await world.send(
        AppendBatch(
            topic="topic-000000",
            partition=0,
            record_count=1,
            size=len(BATCH),
            max_timestamp_ms=0,
            writer=IdempotentWriter(
                producer_id=pair[0],
                producer_epoch=pair[1],
                base_sequence=0,
                transactional_id=transactional_id,
            ),
        ),
        BATCH,
    )


async def producers(world: World, count: int) -> None:
    """Let this many idempotent producers write into one partition."""
    await world.send(topic(0))
    for _ in range(count):
        await append(world, await world.bind(None))


async def transactional_ids(world: World, count: int) -> None:
    """Let this many transactional ids be known, each with one transaction behind it, in one partition."""
    await world.send(topic(0))
    for number in range(count):
        transactional_id = f"pipeline-{number:08d}"
        pair = await world.bind(transactional_id)
        named = {"transactional_id": transactional_id, "producer_id": pair[0], "producer_epoch": pair[1]}
        await world.send(AddPartitions(partitions=(("topic-000000", 1 + number % 99),), **named))  # type: ignore[arg-type]
        await world.send(EndTransaction(commit=True, **named))  # type: ignore[arg-type]


async def open_transactions(world: World, count: int) -> None:
    """Let this many transactions be open, each with a batch in one partition."""
    await world.send(topic(0))
    for number in range(count):
        transactional_id = f"pipeline-{number:08d}"
        pair = await world.bind(transactional_id)
        named = {"transactional_id": transactional_id, "producer_id": pair[0], "producer_epoch": pair[1]}
        await world.send(AddPartitions(partitions=(("topic-000000", 0),), **named))  # type: ignore[arg-type]
        await append(world, pair, transactional_id)


async def groups(world: World, count: int) -> None:
    """Let this many groups have committed ten offsets each."""
    await world.send(topic(0))
    for number in range(count):
        offsets = tuple(OffsetToCommit(topic="topic-000000", partition=each, offset=Offset(7)) for each in range(10))
        await world.send(CommitOffsets(group_id=f"group-{number:08d}", offsets=offsets))


CASES: dict[str, Callable[[World, int], Awaitable[None]]] = {
    "partition": partitions,
    "idempotent producer of a partition": producers,
    "transactional id, known": transactional_ids,
    "transaction, open in one partition": open_transactions,
    "group with ten offsets": groups,
}


async def measured(case: Callable[[World, int], Awaitable[None]], count: int) -> tuple[float, float, float]:
    """Return bytes in memory and in a snapshot for each, and microseconds to fold one of them into a snapshot."""
    await case(World(), PARTITIONS_PER_TOPIC)  # whatever is made once
    gc.collect()
    tracemalloc.start()
    world = World()
    await case(world, count)
    world.forget_journal()
    gc.collect()
    memory = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    blob = snapshot(world.state)
    began = time.perf_counter()
    fold(blob, iter(()))
    return memory / count, len(blob) / count, (time.perf_counter() - began) / count * 1e6


def main() -> int:
    """Print a line for each thing."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.state", description="Measure what the broker keeps.")
    parser.add_argument("--count", type=int, default=20_000, help="how many of each (default: 20,000)")
    count = parser.parse_args().count
    print("| of each | bytes in memory | bytes in a snapshot | folding it, µs |")
    print("|---|---|---|---|")
    for name, case in CASES.items():
        memory, stored, micros = asyncio.run(measured(case, count))
        print(f"| {name} | {memory:,.0f} | {stored:,.0f} | {micros:.1f} |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
