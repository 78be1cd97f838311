"""The memory that a start takes whose state is as full as its bounds allow: `python -m benchmarks.full_state`.

A journal is filled in-process by the commands that the fronts send, table after table, until a bound refuses more.
Then `exacta serve` starts on it twice. The first start replays every event, as after a kill before any snapshot. The
second reads the snapshot that its clean end has left. Of each the peak of resident memory is read (Linux's VmHWM) once
the broker listens, beside what the tables weigh and how many bytes the snapshot has.
"""

import argparse
import asyncio
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec.structs import replace

from benchmarks.state import BATCH
from exacta.adapters.local import LocalJournal
from exacta.core.commands import (
    AppendBatch,
    Command,
    CommitOffsets,
    CreateTopic,
    InitProducerId,
    OffsetToCommit,
    Subscribe,
)
from exacta.core.ids import Offset
from exacta.core.rejections import Rejection
from exacta.core.replies import ProducerBoundReply
from exacta.core.values.limits import Limits
from exacta.core.values.subscriptions import SubscriptionType
from exacta.core.values.usage import Table
from exacta.core.writers import IdempotentWriter
from exacta.engine.engine import Engine
from exacta.engine.schema import SCHEMA
from exacta.ports.log import Answer
from exacta.server.assembly import assemble_engine

AT_ONCE = 500
PARTITIONS = 100
MIB = 1 << 20


class Filling:
    """An engine over a journal in files."""

    def __init__(self, journal: LocalJournal, limits: Limits) -> None:
        self._loop = asyncio.get_running_loop()
        self.engine: Engine = assemble_engine(
            journal,
            self._loop,
            clock=lambda: time.time_ns() // 1_000_000,
            limits=limits,
            on_failure=lambda failure: None,
            fold_every_ms=1 << 40,
        )

    async def send(self, commands: list[Command], payloads: list[bytes | None] | None = None) -> list[Answer]:
        """Return the answers."""
        answered: asyncio.Future[list[Answer]] = self._loop.create_future()
        self.engine.submit(commands, answered.set_result, payloads)
        return await answered

    async def fill(self, table: Table) -> int:
        """Let entries come until one is refused; return how many there are."""
        number = 0
        while True:
            commands = [make(number + each) for make in (COMMANDS[table],) for each in range(AT_ONCE)]
            answers = await self.send(commands)
            if table is Table.PRODUCERS:
                bound = [each for each in answers if isinstance(each, ProducerBoundReply)]
                batches: list[Command] = [_batch(number + k, each.producer_id) for k, each in enumerate(bound)]
                answers = await self.send(batches, [BATCH] * len(batches))
            taken = sum(not isinstance(each, Rejection) for each in answers)
            number += taken
            if taken < AT_ONCE:
                return number


def _batch(number: int, producer_id: int) -> Command:
    writer = IdempotentWriter(producer_id=producer_id, producer_epoch=0, base_sequence=0)  # type: ignore[arg-type]
    made = AppendBatch(topic="topic-000000", partition=0, record_count=1, size=len(BATCH), max_timestamp_ms=0)
    return replace(made, partition=number % PARTITIONS, writer=writer)


def _offsets(number: int) -> Command:
    offsets = (
        OffsetToCommit(topic="topic-000000", partition=each, offset=Offset(7), metadata="m") for each in range(10)
    )
    return CommitOffsets(group_id=f"group-{number:08d}", offsets=tuple(offsets))


COMMANDS: dict[Table, Callable[[int], Command]] = {
    Table.TOPICS: lambda number: CreateTopic(
        topic=f"topic-{number:06d}", topic_id=number.to_bytes(16, "big"), partition_count=PARTITIONS
    ),
    Table.TRANSACTIONAL_IDS: lambda number: InitProducerId(
        transactional_id=f"pipeline-{number:08d}", transaction_timeout_ms=60_000
    ),
    Table.OFFSETS: _offsets,
    Table.PRODUCERS: lambda number: InitProducerId(transactional_id=None, transaction_timeout_ms=60_000),
    Table.SUBSCRIPTIONS: lambda number: Subscribe(
        topic="topic-000001",
        partition=number % PARTITIONS,
        subscription=f"subscription-{number:08d}",
        subscription_type=SubscriptionType.SHARED,
    ),
}


async def filled(directory: Path, share: float) -> int:
    """Fill a journal up to this share of the bounds; return the bytes that all tables weigh."""
    limits = Limits()
    names = [*(table.value for table in COMMANDS), "max_partitions", "max_groups", "max_subscriptions"]
    limits = replace(limits, **{name: int(getattr(limits, name) * share) for name in names})
    loop = asyncio.get_running_loop()
    journal = LocalJournal.open(directory, loop.call_soon_threadsafe, schema=SCHEMA)
    filling = Filling(journal, limits)
    for table in COMMANDS:
        count = await filling.fill(table)
        weight = filling.engine._state.volatile.usage[table].total
        print(
            f"{table.name}: {count:,}, {weight / MIB:,.0f} MiB of {getattr(limits, table.value) / MIB:,.0f}", flush=True
        )
    usage = filling.engine._state.volatile.usage
    total = sum(each.total for table, each in usage.items() if table is not Table.HANDLES)
    filling.engine.abandon()
    journal.close()
    return total


def started(data: Path) -> Iterator[tuple[int, float]]:
    """Start a server, and yield its peak memory in bytes and the seconds; then end it cleanly."""
    began = time.monotonic()
    command = [sys.executable, "-m", "exacta.cli", "serve", "--data", str(data), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        server.stdout.readline()
        status = Path(f"/proc/{server.pid}/status").read_text()
        [peak] = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")]
        yield int(peak) * 1024, time.monotonic() - began
        server.send_signal(signal.SIGTERM)


def main() -> int:
    """Print what was filled, and a line for each start."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.full_state", description="Measure a full start.")
    parser.add_argument("--share", type=float, default=1.0, help="fill so much of each bound (default: 1.0)")
    share = parser.parse_args().share
    with tempfile.TemporaryDirectory(prefix="exacta-full-") as folder:
        data = Path(folder) / "data"
        list(started(data))
        weight = asyncio.run(filled(data / "journal", share))
        print("| the start | tables, MiB | snapshot, MiB | peak of resident memory, MiB | seconds |")
        print("|---|---|---|---|---|")
        for name in ("replays all events", "reads a snapshot of all"):
            snapshot = max((each.stat().st_size for each in (data / "journal").glob("*.snapshot")), default=0)
            for peak, seconds in started(data):
                figures = f"{weight / MIB:,.0f} | {snapshot / MIB:,.0f} | {peak / MIB:,.0f} | {seconds:.1f}"
                print(f"| {name} | {figures} |", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
